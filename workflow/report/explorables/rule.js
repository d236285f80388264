// The acceptance rule at a real position, drawn by hand from a fixed seed: any state can be drawn again from the URL.
const { open, state, number, small, whole, say, element, among, sampling } = globalThis.specledger;
const page = open("rule");
const SEED = 1;
const MOST = 100000; // draws that an address may ask for

// One draw of the rule at gamma = 1: the guess, the uniform that judged it, and the token that came out.
export function drawOnce(p, q, next) {
  const guess = sampling.draw(q, next());
  const [uniform, extra] = [next(), next()];
  const { acceptLength, token } = sampling.verify([p, p], [q], [guess], [uniform], extra);
  return { guess, uniform, accepted: acceptLength === 1, token: acceptLength === 1 ? guess : token };
}

function start({ form, data, words }) {
  const fields = form.elements;
  const position = () => data.positions[fields.position.value];
  const found = () => position().drafters[fields.drafter.value];
  let hand;

  // The same groups as on the page: the likeliest symbols by p or q, then the others as one.
  function groups() {
    const [p, { q }] = [position().p, found()];
    const most = (at) => Math.max(p[at], q[at]);
    const order = p.map((_, at) => at).sort((a, b) => most(b) - most(a) || a - b);
    const named = order.slice(0, data.shown).map((at) => [data.symbols[at], [at]]);
    const others = order.slice(data.shown);
    return others.length ? [...named, [say(words.others, { count: others.length }), others, "others"]] : named;
  }

  const total = (members, value) => members.reduce((sum, at) => sum + value(at), 0);

  function table() {
    const [p, { q, counts, draws }] = [position().p, found()];
    const rows = groups().map(([name, members, looks = ""]) => {
      const kept = total(members, (at) => Math.min(p[at], q[at]));
      const residual = total(members, (at) => Math.max(p[at] - q[at], 0));
      return { name, looks, members, p: total(members, (at) => p[at]), q: total(members, (at) => q[at]), kept, residual };
    });
    const bars = (...parts) => parts.map(([line, second]) =>
      element("span", { class: line }, element("i", { class: "kept" }), element("i", { class: second })));
    const figure = (text, extra = "") => element("td", { class: `number${extra}` }, text);
    form.querySelector(".stage").className = `stage drafter-${fields.drafter.value}`;
    form.querySelector("table").style.setProperty("--largest", Math.max(...rows.flatMap((row) => [row.p, row.q])));
    form.querySelector("thead .run").textContent = say(words.run, { draws: whole(draws) });
    form.querySelector("tbody").replaceChildren(...rows.map((row) => {
      const style = `--p:${row.p};--q:${row.q};--kept:${row.kept};--residual:${row.residual}`;
      const yours = figure("–", " needs-script yours");
      yours.members = row.members;
      return element("tr", {}, element("th", { scope: "row", class: row.looks }, row.name),
        element("td", { class: "both", style }, ...bars(["p", "residual"], ["q", "trimmed"])),
        figure(number(row.kept, 4)), figure(number(row.residual, 4)), figure(number(row.kept + row.residual, 4)),
        figure(number(total(row.members, (at) => counts[at]) / draws, 4)), yours);
    }));
  }

  function put(outcomes) {
    for (const [name, [value, text]] of Object.entries(outcomes)) {
      const output = form.querySelector(`[data-outcome="${name}"]`);
      output.textContent = text;
      output.dataset.value = value;
    }
  }

  function theory() {
    const [p, { q, counts, draws, accepted }] = [position().p, found()];
    const run = sampling.totalVariation(counts.map((count) => count / draws), p);
    const [beta, alone] = [sampling.beta(p, q), sampling.totalVariation(q, p)];
    put({
      beta: [beta, number(beta, 4)], acceptance: [accepted / draws, number(accepted / draws, 4)],
      tv_run: [run, small(run, 4)], tv_draft: [alone, small(alone, 4)],
    });
  }

  function again() {
    const size = position().p.length;
    hand = { next: sampling.uniforms(SEED), n: 0, accepted: 0, counts: new Array(size).fill(0), trace: [], last: null };
  }

  const distance = () => sampling.totalVariation(hand.counts.map((count) => count / hand.n), position().p);

  function drawSome(times) {
    const [p, { q }] = [position().p, found()];
    for (let done = 0; done < times; done += 1) {
      hand.last = drawOnce(p, q, hand.next);
      hand.n += 1;
      hand.accepted += hand.last.accepted;
      hand.counts[hand.last.token] += 1;
      // Points stand evenly on the trace's logarithmic axis.
      if (hand.n >= (hand.trace.at(-1)?.[0] ?? 0) * 1.04) hand.trace.push([hand.n, distance()]);
    }
  }

  function trace() {
    const svg = form.querySelector(".hand svg");
    const alone = sampling.totalVariation(found().q, position().p);
    const points = hand.n ? [...hand.trace.filter(([n]) => n < hand.n), [hand.n, distance()]] : [];
    const top = Math.max(alone, ...points.filter(([n]) => n >= 10).map(([, tv]) => tv), 1e-6) * 1.15;
    const decades = Math.max(3, Math.ceil(Math.log10(Math.max(hand.n, 1))));
    const x = (n) => (46 + (410 * Math.log10(n)) / decades).toFixed(2);
    const y = (tv) => Math.max(4, 122 - (112 * tv) / top).toFixed(2);
    svg.querySelector(".theory").setAttribute("points", points.map(([n, tv]) => `${x(n)},${y(tv)}`).join(" "));
    const line = svg.querySelector("line.alone");
    line.setAttribute("y1", y(alone));
    line.setAttribute("y2", y(alone));
    svg.querySelector("text.alone").setAttribute("y", Math.max(14, y(alone) - 5));
    const tick = (power) => `<text class="${power === decades ? "right" : ""}" x="${x(10 ** power)}" y="144">${whole(10 ** power)}</text>`;
    svg.querySelector(".ticks").innerHTML = Array.from({ length: decades + 1 }, (_, power) => tick(power)).join("");
  }

  function step() {
    if (!hand.last) return words.step_none;
    const { guess, uniform, accepted, token } = hand.last;
    const [p, q] = [position().p[guess], found().q[guess]];
    return say(accepted ? words.step_kept : words.step_redrawn, {
      n: whole(hand.n), guess: data.symbols[guess], token: data.symbols[token], p: number(p, 4), q: number(q, 4),
      keep: number(Math.min(1, p / q), 3), uniform: number(uniform, 3),
    });
  }

  function yours() {
    const { n, accepted, counts } = hand;
    put({
      n: [n, whole(n)], yours_accepted: [n ? accepted / n : null, number(n ? accepted / n : null, 4)],
      tv_yours: [n ? distance() : null, small(n ? distance() : null, 4)],
    });
    for (const cell of form.querySelectorAll(".yours")) {
      cell.textContent = number(n ? total(cell.members, (at) => counts[at]) / n : null, 4);
    }
    form.querySelector(".step").textContent = step();
    trace();
  }

  function all() {
    again();
    table();
    theory();
    yours();
  }

  const keep = () => state.keep("rule", [fields.position.value, fields.drafter.value, hand.n]);
  form.addEventListener("change", () => { all(); keep(); });
  form.addEventListener("click", (event) => {
    const button = event.target.closest("button.act");
    if (!button) return;
    if (button.value === "0") again();
    else drawSome(Number(button.value));
    yours();
    form.querySelector("[role=status]").textContent = step();
    keep();
  });
  all();
  state.register("rule", ([place, drafter, draws]) => {
    fields.position.value = among(place, Object.keys(data.positions), fields.position.value);
    fields.drafter.value = among(drafter, data.drafters, fields.drafter.value);
    all();
    drawSome(Math.min(MOST, Math.max(0, Math.floor(Number(draws)) || 0)));
    yours();
  });
}

globalThis.specledger.drawOnce = drawOnce;
if (page) start(page);
