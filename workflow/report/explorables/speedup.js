// Eq. (1) and Theorem 3.8 under three sliders. The page already shows the state that they start from; the state lies in the URL.
const form = document.getElementById("explore-speedup");
const inputs = [...form.querySelectorAll("input")];
const curve = form.querySelector("polyline");
const dot = form.querySelector("circle");
const gammas = curve.points.length;

// The sum of the geometric series, which needs no special case at alpha = 1.
export function tokensARound(alpha, gamma) {
  let sum = 0;
  for (let power = gamma; power >= 0; power -= 1) sum = sum * alpha + 1;
  return sum;
}

export function speedup(alpha, gamma, c) {
  return tokensARound(alpha, gamma) / (gamma * c + 1);
}

function show() {
  const [alpha, c, gamma] = inputs.map((input) => input.valueAsNumber);
  const heights = Array.from({ length: gammas }, (_, index) => speedup(alpha, index + 1, c));
  const best = heights.indexOf(Math.max(...heights));
  const place = (index) => [50 + 36 * index, Math.max(4, 206 - 48 * heights[index]).toFixed(2)];
  curve.setAttribute("points", heights.map((_, index) => place(index).join()).join(" "));
  const [x, y] = place(gamma - 1);
  dot.setAttribute("cx", x);
  dot.setAttribute("cy", y);
  const outcomes = {
    eq1: [tokensARound(alpha, gamma), (value) => value.toFixed(2)],
    theorem38: [heights[gamma - 1], (value) => `${value.toFixed(2)}×`],
    best: [best + 1, (value) => `${value} (${heights[best].toFixed(2)}×)`],
  };
  for (const [name, [value, words]] of Object.entries(outcomes)) {
    const output = form.querySelector(`[data-outcome="${name}"]`);
    output.textContent = words(value);
    output.dataset.value = value;
  }
  for (const input of inputs) {
    const text = input.name === "gamma" ? input.value : input.valueAsNumber.toFixed(2);
    form.querySelector(`output[for="${input.id}"]`).textContent = text;
  }
}

function announce() {
  const said = [...form.querySelectorAll(".outcomes div")].map((item) => item.textContent.trim().replace(/\s+/g, " "));
  form.querySelector("[role=status]").textContent = said.join(", ");
  history.replaceState(null, "", `#speedup=${inputs.map((input) => input.value).join(",")}`);
}

const state = location.hash.match(/^#speedup=([\d.]+),([\d.]+),(\d+)$/);
if (state) {
  inputs.forEach((input, index) => { input.value = state[index + 1]; });
  form.scrollIntoView({ block: "center" });
}
show();
form.addEventListener("input", show);
form.addEventListener("change", announce);
form.addEventListener("submit", (event) => event.preventDefault());
