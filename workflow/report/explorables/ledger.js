// Opens a row of the ledger, narrows the table to an engine or a drafter, and keeps its order in the URL.
const { open, state, number, percent, times, interval, milliseconds, raised, say, element, among, known, tables } = globalThis.specledger;
const page = open("ledger");
const table = document.querySelector("#ledger-ledger table");

function start({ form, data, words }) {
  const fields = form.elements;
  const rows = [...table.tBodies[0].rows].sort((a, b) => a.dataset.place - b.dataset.place);
  let chosen = data.row;
  const choices = form.querySelector(".side");

  // The choices narrow the table, so they stand beside its filter; they stay fields of the form.
  const filter = table.closest(".scroll").previousElementSibling;
  if (filter?.classList.contains("filter")) {
    for (const one of choices.querySelectorAll("select")) one.setAttribute("form", form.id);
    filter.append(...choices.querySelectorAll(".control"));
    choices.remove();
  }

  function link(value, name, how, text) {
    return element("li", { class: name === "speedup" && "measured" }, element("b", {}, words[name]), " ",
      element("span", { class: "how" }, how), " ",
      element("span", { class: "track", style: `--value:${value ?? 0}` }, element("i")), " ",
      element("output", { "data-value": name }, text));
  }

  function apart({ tokens, plain, verify, propose, overhead, miss }) {
    const ms = Object.entries({ plain, verify, propose, overhead }).map(([name, value]) => [name, number(value, 3)]);
    return say(words.apart_how, { tokens: number(tokens, 2), miss: percent(miss, 1), ...Object.fromEntries(ms) });
  }

  function chain(row, plain) {
    if (row.drafter === "none") return [element("li", { class: "alone" }, words.plain)];
    const values = {
      alpha: number(row.alpha, 3), gamma: row.gamma, power: raised(row.gamma + 1), positions: row.gamma + 1,
      c: number(row.c, 3), v: number(row.v, 2), overhead: number(row.overhead, 2), tokens: number(row.tokens_per_round, 2),
      eq1: number(row.eq1, 2), wall: number(row.wall_s, 3), plain_wall: number(plain?.wall_s, 3),
    };
    const how = (name) => say(words[`${name}_how`], values);
    const spread = interval(row.speedup_lo, row.speedup_hi, (value) => number(value, 2));
    const formulas = row.shape === "tree" ? [element("li", { class: "alone" }, words.tree)] : [
      element("li", {}, element("b", {}, words.eq1), " ", element("span", { class: "how" }, how("eq1")), " ",
        element("output", { "data-value": "eq1" }, number(row.eq1, 2))),
      link(row.theorem38, "theorem38", how("theorem38"), times(row.theorem38)),
    ];
    return [
      ...(row.lossy ? [element("li", { class: "alone" }, say(words.lossy, { tv: row.lossy }))] : []),
      ...formulas,
      ...["cost_model", "cost_model_overhead"]
        .filter((name) => name !== "cost_model_overhead" || known(row[name]))
        .map((name) => link(row[name], name, how(name), times(row[name]))),
      ...(row.apart ? [link(row.apart.value, "apart", apart(row.apart), times(row.apart.value))] : []),
      link(row.speedup, "speedup", how("speedup"), [times(row.speedup), spread].filter(Boolean).join(" ")),
    ];
  }

  const named = (row, part) => say(words.part, { name: words[`part_${part}`], seconds: milliseconds(row.parts[part]) });

  function stack(row, label, longest) {
    const parts = data.parts.filter((part) => row.parts[part]).map((part) =>
      element("i", { class: `part-${part}`, style: `--seconds:${row.parts[part]}`, title: named(row, part) }));
    return element("p", { class: "stack" }, element("span", {}, label), " ",
      element("span", { class: "parts", style: `--longest:${longest}` }, ...parts));
  }

  function show() {
    const row = data.rows[chosen];
    const plain = data.rows[data.plain[row.engine]];
    const [engine, drafter] = [words[`engine_${row.engine}`], words[`drafter_${row.drafter}`]];
    const isPlain = row.drafter === "none";
    form.querySelector("h4").textContent = say(isPlain ? words.heading_plain : words.heading, { engine, drafter, size: say(words[`size_${row.shape}`], row) });
    const list = form.querySelector(".chain");
    const ends = [row.theorem38, row.cost_model, row.cost_model_overhead, row.speedup_hi ?? row.speedup, row.apart?.value, 1];
    list.style.setProperty("--top", Math.max(...ends.map((value) => value ?? 0)));
    list.replaceChildren(...chain(row, plain));
    const longest = Math.max(row.wall_s ?? 0, plain?.wall_s ?? 0);
    const key = data.parts.filter((part) => row.parts[part]).map((part) => element("li", { class: `part-${part}` }, named(row, part)));
    form.querySelector(".stacks").replaceChildren(...[
      stack(row, words.this, longest), plain && !isPlain ? stack(plain, words.base, longest) : null,
      element("ul", { class: "key" }, ...key),
    ].filter(Boolean));
    rows.forEach((one, at) => {
      one.classList.toggle("opened", at === chosen);
      one.cells[0].querySelector("button").setAttribute("aria-pressed", String(at === chosen));
    });
  }

  function keep() {
    const sorted = tables.order(table);
    state.keep("ledger", [chosen, fields.engine.value, fields.drafter.value, sorted?.column ?? "", sorted?.direction ?? ""]);
  }

  function narrow() {
    const { engine, drafter } = fields;
    tables.filter(table, "methods", (row) => {
      const found = data.rows[row.dataset.place];
      return (!engine.value || found.engine === engine.value) && (!drafter.value || found.drafter === drafter.value);
    });
    if (!rows[chosen].hidden) return;
    const first = [...table.tBodies[0].rows].find((row) => !row.hidden);
    if (first) chosen = Number(first.dataset.place);
    show();
  }

  rows.forEach((row, at) => {
    const button = element("button", { type: "button", class: "open", "aria-controls": "ledger-opened" });
    button.append(...row.cells[0].childNodes);
    row.cells[0].append(button);
    row.addEventListener("click", () => {
      if (!getSelection().isCollapsed) return; // a number was marked to be copied
      chosen = at;
      show();
      form.querySelector("[role=status]").textContent = form.querySelector("h4").textContent;
      keep();
      form.querySelector(".opened").focus({ preventScroll: true });
      form.scrollIntoView({ block: "nearest" });
    });
  });
  form.querySelector(".back").addEventListener("click", () => {
    const hidden = rows[chosen].hidden; // by the filter above the table
    (hidden ? document.querySelector("#ledger-ledger .filter input") : rows[chosen].querySelector("button")).focus();
  });
  for (const one of [fields.engine, fields.drafter]) one.addEventListener("change", () => { narrow(); keep(); });
  table.addEventListener("sorted", keep);
  show();
  state.register("ledger", ([at, engine, drafter, column, direction]) => {
    if (data.rows[at]) chosen = Number(at);
    fields.engine.value = among(engine, [...fields.engine.options].map((one) => one.value), "");
    fields.drafter.value = among(drafter, [...fields.drafter.options].map((one) => one.value), "");
    if (column !== undefined && column !== "") tables.sort(table, Number(column), direction);
    narrow();
    show();
  });
}

if (page && table) start(page);
