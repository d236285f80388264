// What the explorables share: texts, numbers as the page prints them, elements, and a state that lies in the URL.
const MISSING = "–";
const MINUS = "\u2212";

const known = (value) => value !== null && value !== undefined && !Number.isNaN(value);

// Half to even, as Python rounds: only a number with few binary digits can lie exactly between two decimals.
function fixed(value, decimals) {
  const scaled = Math.abs(value) * 10 ** decimals;
  const between = Number.isInteger(value * 2 ** 20) && scaled % 1 === 0.5;
  if (!between) return value.toFixed(decimals);
  const even = 2 * Math.round(scaled / 2);
  return ((Math.sign(value) * even) / 10 ** decimals).toFixed(decimals);
}

function signed(text) {
  const bare = /^[-0.,]*$/.test(text) ? text.replace(/^-+/, "") : text;
  return bare.replace(/-/g, MINUS);
}

function number(value, decimals = 3) {
  if (!known(value)) return MISSING;
  if (!Number.isFinite(value)) return value > 0 ? "∞" : `${MINUS}∞`;
  if (Math.abs(value) >= (decimals ? 1e6 : 1e15)) return scientific(value, 3);
  let text = fixed(value, decimals);
  if (Math.abs(value) >= 10000) text = text.replace(/^(-?\d+)/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ","));
  return signed(text);
}

const raised = (value) => String(value).replace(/[-\d]/g, (one) => (one === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[one]));

function scientific(value, digits = 2) {
  if (!known(value) || !Number.isFinite(value) || value === 0) return number(value, 0);
  const [shown, exponent] = value.toExponential(digits - 1).split("e");
  const mantissa = Number.isInteger(value * 2 ** 20) ? fixed(value / 10 ** exponent, digits - 1) : shown;
  return `${signed(mantissa)}\u00a0×\u00a010${raised(Number(exponent))}`;
}

const small = (value, decimals = 4) =>
  known(value) && value !== 0 && Math.abs(value) < 0.5 * 10 ** -decimals ? scientific(value) : number(value, decimals);
const whole = (value) => number(value, 0);
const times = (value, decimals = 2) => (known(value) ? `${number(value, decimals)}×` : MISSING);
const percent = (value, decimals = 0) => (known(value) ? `${number(100 * value, decimals)}%` : MISSING);
function milliseconds(value) {
  if (!known(value) || value <= 0) return MISSING;
  const scaled = 1000 * value;
  return number(scaled, Math.max(0, Math.min(4, 2 - Math.floor(Math.log10(scaled)))));
}

const interval = (lo, hi, form) => (known(lo) && known(hi) ? `[${form(lo)}, ${form(hi)}]` : "");

// A text with its {names} filled in; what has no value stays as it is.
const say = (text, values = {}) => text.replace(/\{(\w+)\}/g, (all, name) => (name in values ? values[name] : all));

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// The hash holds one entry an explorable, #rule=2,draft&speedup=0.7,0.2; a plain anchor holds none.
function states() {
  const parts = location.hash.slice(1).split("&").filter((part) => part.includes("="));
  return new Map(parts.map((part) => [part.slice(0, part.indexOf("=")), part.slice(part.indexOf("=") + 1)]));
}

const restorers = new Map();

const state = {
  // `restore` gets the list of values that the URL holds, at once and whenever the URL changes.
  register(name, restore) {
    restorers.set(name, restore);
    const found = states().get(name);
    if (found === undefined) return;
    restore(found.split(",").map(decodeURIComponent));
    const form = document.getElementById(`explore-${name}`);
    globalThis.specledger.reveal(form);
    if ([...states().keys()][0] === name) form?.scrollIntoView({ block: "start" });
  },
  keep(name, values) {
    const all = states();
    all.set(name, values.map((value) => encodeURIComponent(value)).join(","));
    history.replaceState(null, "", `#${[...all].map(([key, value]) => `${key}=${value}`).join("&")}`);
  },
};

addEventListener("hashchange", () => {
  for (const [name, found] of states()) restorers.get(name)?.(found.split(",").map(decodeURIComponent));
});

// The explorable of a name: its form, and what the page carries for it. undefined where the page has none.
function open(name) {
  const form = document.getElementById(`explore-${name}`);
  if (!form) return undefined;
  form.addEventListener("submit", (event) => event.preventDefault());
  const { words, data } = JSON.parse(document.getElementById(`data-${name}`).textContent);
  return { form, words, data };
}

// A choice that the URL or a control names, if it is one of `allowed`; else the one that stands.
const among = (wanted, allowed, standing) => (allowed.map(String).includes(String(wanted)) ? wanted : standing);

globalThis.specledger = {
  known, fixed, number, scientific, small, whole, times, percent, milliseconds, interval, raised, say, element, state, open, among,
};
document.documentElement.classList.add("scripted");
