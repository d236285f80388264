// A self-drafted text, forward by forward. The page already shows all of it.
const { open, state, number, percent, whole, say } = globalThis.specledger;
const page = open("sample");
const VISIBLE = { "\n": "↵", " ": "␣", "\t": "⇥", "\r": "␍" };

function start({ form, data, words }) {
  const slider = form.elements.forward;
  const spans = [...form.querySelectorAll("[data-forward]")];
  const visible = (text) => [...text].map((one) => VISIBLE[one] ?? one).join("");

  function told(forward) {
    const step = data.steps[forward - 1];
    const of = (kind) => visible(step.find((token) => token.kind === kind)?.text ?? "");
    const kinds = step.map((token) => token.kind);
    let text = words.first;
    if (kinds.includes("resampled")) text = words.redrawn;
    else if (kinds.includes("accepted")) text = kinds.includes("sampled") ? words.kept : words.kept_last;
    return say(text, { n: forward, guess: of("accepted"), sampled: of("sampled"), redrawn: of("resampled") });
  }

  function show() {
    const forward = slider.valueAsNumber;
    for (const span of spans) {
      span.classList.toggle("later", Number(span.dataset.forward) > forward);
      span.classList.toggle("now", Number(span.dataset.forward) === forward && forward < data.steps.length);
    }
    const tokens = data.steps.slice(0, forward).flat();
    const count = (kind) => tokens.filter((token) => token.kind === kind).length;
    const judged = count("accepted") + count("resampled");
    const outcomes = {
      forwards: whole(forward), characters: whole(tokens.length), yielded: number(tokens.length / forward, 2),
      accepted: percent(judged ? count("accepted") / judged : null, 1),
    };
    for (const [name, text] of Object.entries(outcomes)) form.querySelector(`[data-outcome="${name}"]`).textContent = text;
    form.querySelector("output[for=sample-forward]").textContent = forward;
    form.querySelector(".step").textContent = told(forward);
    slider.setAttribute("aria-valuetext", told(forward));
  }

  form.addEventListener("input", show);
  form.addEventListener("change", () => state.keep("sample", [slider.value]));
  form.addEventListener("click", (event) => {
    const button = event.target.closest("button.act");
    if (!button) return;
    slider.value = slider.valueAsNumber + Number(button.value);
    show();
    form.querySelector("[role=status]").textContent = told(slider.valueAsNumber);
    state.keep("sample", [slider.value]);
  });
  show();
  state.register("sample", ([forward]) => {
    if (Number.isFinite(Number(forward)) && forward !== "") slider.value = forward;
    show();
  });
}

if (page) start(page);
