// From forwards saved to time saved, for the best and the worst method of each engine.
const { open, state, number, times, element, among } = globalThis.specledger;
const page = open("waterfall");

function start({ form, data, words }) {
  const select = form.elements.case;

  function step({ step: name, before, after }) {
    const factor = number(after / before, 3); // what prints as 1.000 neither gains nor loses
    const [looks, glyph] = factor === number(1, 3) ? ["same", "="] : after > before ? ["gain", "↑"] : ["loss", "↓"];
    const span = element("span", { style: `--from:${Math.min(before, after)};--to:${Math.max(before, after)}` }, element("i"));
    return element("tr", { class: looks }, element("th", { scope: "row" }, words[name] || name),
      element("td", { class: "track" }, span), element("td", { class: "number" }, times(after)),
      element("td", { class: "number" }, `${glyph} ${factor}`));
  }

  function show() {
    const { steps } = data.cases[select.value];
    const body = form.querySelector("tbody");
    body.replaceChildren(body.rows[0], ...steps.map(step));
    const [first, last] = [steps[0].after, steps.at(-1).after];
    const outcomes = { forwards: times(first), clock: times(last), kept: number(last / first, 2) };
    for (const [name, text] of Object.entries(outcomes)) form.querySelector(`[data-outcome="${name}"]`).textContent = text;
  }

  form.addEventListener("change", () => {
    show();
    form.querySelector("[role=status]").textContent = form.querySelector(".outcomes").textContent.trim().replace(/\s+/g, " ");
    state.keep("waterfall", [select.value]);
  });
  show();
  state.register("waterfall", ([at]) => {
    select.value = among(at, Object.keys(data.cases), select.value);
    show();
  });
}

if (page) start(page);
