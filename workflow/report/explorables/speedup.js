// Eq. (1) and Theorem 3.8 under three sliders, with one method's measurements over them.
const { open, state, number, times, theory } = globalThis.specledger;
const page = open("speedup");
const SVG = "http://www.w3.org/2000/svg";

function start({ form, data, words }) {
  const sliders = ["alpha", "c", "gamma"].map((name) => form.elements[name]);
  const { first, step, floor } = data.drawing;
  const across = (gamma) => (first + step * (gamma - 1)).toFixed(2);
  const drawings = [...form.querySelectorAll("[data-drawing]")].map((svg) => {
    const { unit } = data.drawing[svg.dataset.drawing];
    return { name: svg.dataset.drawing, svg, up: (value) => (floor - unit * value).toFixed(2) };
  });

  const place = (node, attributes) => Object.entries(attributes).forEach(([name, value]) => node.setAttribute(name, value));
  const shape = (name, attributes) => {
    const made = document.createElementNS(SVG, name);
    place(made, attributes);
    return made;
  };
  const method = () => data.methods[form.elements.method?.value];

  function points({ name, svg, up }) {
    const column = name === "clock" ? "speedup" : "tokens_per_round";
    const found = (method()?.points ?? []).filter((point) => point[column] !== null);
    const group = svg.querySelector(".measured");
    group.setAttribute("class", `measured drafter-${method()?.drafter}`);
    group.replaceChildren(...found.flatMap((point) => {
      const [x, lo, hi] = [across(point.gamma), point[`${column}_lo`], point[`${column}_hi`]];
      const y = Number(up(point[column]));
      const mark = shape("rect", { x: (x - 4).toFixed(2), y: (y - 4).toFixed(2), width: 8, height: 8 });
      if (lo === null) return [mark];
      return [shape("line", { x1: x, x2: x, y1: Math.max(4, up(hi)).toFixed(2), y2: Math.min(floor, up(lo)).toFixed(2) }), mark];
    }));
    const costs = name === "clock" ? (method()?.points ?? []).filter((point) => point.cost_model !== null) : [];
    svg.querySelector(".cost").setAttribute("points", costs.map((p) => `${across(p.gamma)},${up(p.cost_model)}`).join(" "));
  }

  function show() {
    const [alpha, c, gamma] = sliders.map((input) => input.valueAsNumber);
    const best = theory.bestGamma(alpha, c, data.gammas);
    const curves = {
      tokens: data.gammas.map((one) => theory.tokensARound(alpha, one)),
      clock: data.gammas.map((one) => theory.speedup(alpha, one, c)),
    };
    for (const { name, svg, up } of drawings) {
      const curve = curves[name];
      svg.querySelector(".theory").setAttribute("points", curve.map((value, at) => `${across(at + 1)},${up(value)}`).join(" "));
      place(svg.querySelector(".here"), { cx: across(gamma), cy: up(curve[gamma - 1]) });
      place(svg.querySelector(".best"), { cx: across(best), cy: up(curve[best - 1]) });
    }
    const outcomes = {
      eq1: [curves.tokens[gamma - 1], (value) => number(value, 2)],
      theorem38: [curves.clock[gamma - 1], times],
      best: [best, (value) => `${value} (${times(curves.clock[best - 1])})`],
    };
    for (const [name, [value, text]] of Object.entries(outcomes)) {
      const output = form.querySelector(`[data-outcome="${name}"]`);
      output.textContent = text(value);
      output.dataset.value = value;
    }
    for (const input of sliders) {
      form.querySelector(`output[for="${input.id}"]`).textContent = number(input.valueAsNumber, input.name === "gamma" ? 0 : 2);
    }
  }

  function announce() {
    const said = [...form.querySelectorAll(".outcomes div")].map((item) => item.textContent.trim().replace(/\s+/g, " "));
    form.querySelector("[role=status]").textContent = said.join(", ");
    state.keep("speedup", [...sliders.map((input) => input.value), form.elements.method?.value ?? ""]);
  }

  // A method's sliders stand at its fastest row.
  function choose() {
    const found = method().points;
    const row = found.reduce((best, point) => ((point.speedup ?? 0) > (best.speedup ?? 0) ? point : best));
    [row.alpha, Math.min(1, row.c), row.gamma].forEach((value, at) => { sliders[at].value = value; });
    drawings.forEach(points);
    show();
  }

  form.addEventListener("input", show);
  form.addEventListener("change", (event) => {
    if (event.target.name === "method") choose();
    announce();
  });
  state.register("speedup", ([alpha, c, gamma, chosen]) => {
    if (form.elements.method && chosen in data.methods) form.elements.method.value = chosen;
    [alpha, c, gamma].forEach((value, at) => { if (Number.isFinite(Number(value))) sliders[at].value = value; });
    drawings.forEach(points);
    show();
  });
}

if (page) start(page);
