// The MTP module's parts open by themselves; what is open, and the engine of the comparison, lie in the URL.
const { open, state, number, times, interval, element, among } = globalThis.specledger;
const page = open("module");

function start({ form, data }) {
  const parts = [...form.querySelectorAll("details.part")];
  const select = form.elements.engine;

  function cell(one, metric, side) {
    const [value, low, high, mark] = one.sides[side][metric];
    const longest = Math.max(...data.sides.map((name) => one.sides[name][metric][0] ?? 0));
    const places = ["tokens_per_round", "theorem38", "speedup"].includes(metric) ? 2 : 3;
    const isRatio = ["theorem38", "speedup"].includes(metric);
    const spread = interval(low, high, (end) => number(end, places));
    const bar = element("span", { class: "bar2", style: `--share:${longest ? (value ?? 0) / longest : 0}` }, element("i"));
    return element("td", { "data-side": side, class: `drafter-${side}` }, bar, " ",
      element("b", {}, isRatio ? times(value) : number(value, places)),
      ...(spread ? [" ", element("small", {}, spread + mark)] : []));
  }

  function show() {
    const one = data.versus[select?.value];
    if (!one) return;
    for (const row of form.querySelectorAll("[data-metric]")) {
      row.replaceChildren(row.cells[0], ...data.sides.map((side) => cell(one, row.dataset.metric, side)));
    }
  }

  function keep() {
    const opened = parts.find((part) => part.open);
    state.keep("module", [opened?.dataset.part ?? "", select?.value ?? ""]);
  }

  for (const part of parts) part.querySelector("summary").addEventListener("click", () => setTimeout(keep));
  form.addEventListener("change", () => { show(); keep(); });
  show();
  state.register("module", ([name, engine]) => {
    for (const part of parts) part.open = part.dataset.part === name;
    if (select) select.value = among(engine, Object.keys(data.versus), select.value);
    show();
  });
}

if (page) start(page);
