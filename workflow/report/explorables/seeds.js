// Seed by seed, and how wide an interval another number of seeds would give.
const { open, state, number, known, say, among } = globalThis.specledger;
const page = open("seeds");
const SVG = "http://www.w3.org/2000/svg";

function start({ form, data, words }) {
  const fields = form.elements;
  const slider = fields.n;
  const at = (span, value) => (data.left + ((data.right - data.left) * (value - span.low)) / (span.high - span.low)).toFixed(2);

  const method = () => data.methods[fields.method?.value];

  // A circle a seed in place of the path that the page has without a script.
  function points(name, span, values) {
    const strip = form.querySelector(`[data-strip=${name}]`);
    if (!strip) return;
    const circles = values.map((value, index) => {
      if (!known(value)) return null;
      const point = document.createElementNS(SVG, "circle");
      point.dataset.seed = data.seeds[index];
      for (const [key, to] of Object.entries({ r: 4.5, cx: at(span, value), cy: strip.dataset.y })) point.setAttribute(key, to);
      return point;
    });
    strip.replaceChildren(strip.querySelector("line"), ...circles.filter(Boolean));
  }

  function acceptance() {
    const svg = form.querySelector("svg.acceptance");
    if (!svg || !method()) return;
    svg.querySelector(".strip").setAttribute("class", `strip drafter-${method().drafter}`);
    points("acceptance", data.alphas, method().values);
    const interval = svg.querySelector(".interval");
    const { mean, lo, hi } = method();
    const whole = known(mean) && known(lo);
    interval.setAttribute("visibility", whole ? "visible" : "hidden");
    if (!whole) return;
    const [line, mark] = interval.children;
    line.setAttribute("x1", at(data.alphas, lo));
    line.setAttribute("x2", at(data.alphas, hi));
    mark.setAttribute("x", (at(data.alphas, mean) - 4).toFixed(2));
  }

  // The picked seed's own numbers, strip by strip.
  function picked() {
    const index = data.seeds.findIndex((seed) => String(seed) === fields.seed.value);
    if (index < 0) return "";
    const { plain, mtp, module, draft } = data.losses;
    const of = (values, places) => number(values[index], places);
    return say(words.picked, {
      seed: data.seeds[index], plain: of(plain, 4), mtp: of(mtp, 4), module: of(module, 4), draft: of(draft, 4),
      difference: of(data.differences, 4), alpha: method() ? of(method().values, 3) : number(null),
    });
  }

  function show() {
    const n = slider.valueAsNumber;
    const [half, seen] = known(data.sd) && known(data.mean) ? [data.reach.half[n - 2] * data.sd, data.reach.seen[n - 2] * data.sd] : [null, null];
    const span = data.spans.differences;
    const clipped = (value) => at(span, Math.min(span.high, Math.max(span.low, value)));
    if (known(half)) {
      const path = `M${clipped(data.mean - half)} 68v12H${clipped(data.mean + half)}v-12`;
      form.querySelector(".supposed path").setAttribute("d", path);
    }
    const outcomes = { halved: [half, known(half) ? `±${number(half, 4)}` : "–"], seen: [seen, number(seen, 4)] };
    for (const [name, [value, text]] of Object.entries(outcomes)) {
      const output = form.querySelector(`[data-outcome="${name}"]`);
      output.textContent = text;
      output.dataset.value = value;
    }
    form.querySelector("output[for=seeds-n]").textContent = n;
    form.querySelector(".picked").textContent = picked();
    const wanted = fields.seed.value;
    for (const point of form.querySelectorAll("circle[data-seed]")) {
      point.classList.toggle("chosen", point.dataset.seed === wanted);
      point.classList.toggle("faint", wanted !== "" && point.dataset.seed !== wanted);
    }
  }

  function all() {
    acceptance();
    show();
  }

  for (const [name, values] of Object.entries(data.losses)) points(name, data.spans.losses, values);
  points("differences", data.spans.differences, data.differences);
  form.addEventListener("input", all);
  form.addEventListener("change", () => {
    const said = [...form.querySelectorAll(".outcomes div")].map((item) => item.textContent.trim().replace(/\s+/g, " "));
    form.querySelector("[role=status]").textContent = said.join(", ");
    state.keep("seeds", [fields.seed.value, fields.method?.value ?? "", slider.value]);
  });
  form.addEventListener("click", (event) => {
    const point = event.target.closest("circle[data-seed]");
    if (!point) return;
    fields.seed.value = fields.seed.value === point.dataset.seed ? "" : point.dataset.seed;
    fields.seed.dispatchEvent(new Event("change", { bubbles: true }));
    show();
  });
  all();
  state.register("seeds", ([seed, method, n]) => {
    fields.seed.value = among(seed, ["", ...data.seeds], "");
    if (fields.method) fields.method.value = among(method, Object.keys(data.methods), fields.method.value);
    if (Number(n) >= 2) slider.value = n;
    all();
  });
}

if (page) start(page);
