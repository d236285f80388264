// What each row of the verifying forward sees and says; the page already shows the row that decided the round.
const { open, state, number, percent, small, say, element, among } = globalThis.specledger;
const page = open("mask");

function start({ form, data, words }) {
  const body = form.querySelector("tbody");
  const slider = form.elements.gamma;
  let row = data.row;
  const round = () => data.rounds[form.elements.round.value];
  const gamma = () => slider.valueAsNumber;
  const context = () => round().context.length;
  const cells = () => [...round().context, ...round().guesses.slice(0, gamma()).map((guess) => guess.symbol)];
  const whole = () => gamma() === round().guesses.length;

  // Of the row that answers guess `at` (from 0); at γ it gives the bonus token.
  function verdict(at) {
    const { accept_len: accepted, token } = round();
    if (at < accepted && at < gamma()) return words.kept;
    if (at > accepted) return words.lost;
    if (at < gamma()) return say(words.redrawn, { symbol: token });
    return whole() ? say(words.bonus, { symbol: token }) : words.bonus_unseen;
  }

  function says(at) {
    if (at < 0) return [element("span", { class: "note" }, words.not_needed)];
    const bars = round().rows[at].slice(0, 3).map((one) =>
      element("span", { class: "bar", style: `--share:${one.p}` }, element("b", {}, one.symbol), ` ${percent(one.p)}`));
    return [...bars, element("span", { class: "verdict" }, verdict(at))];
  }

  function head(cell, at) {
    const guess = at >= context();
    const pick = element("input", { type: "radio", name: "row", value: at, id: `mask-row-${at}` });
    pick.checked = at === row;
    const label = element("label", { for: pick.id }, element("b", {}, cell), " ", element("small", {}, guess ? words.guess : words.text));
    return element("th", { scope: "row" }, pick, label);
  }

  function table() {
    const fed = cells();
    form.querySelector("thead th[colspan]").colSpan = fed.length;
    body.replaceChildren(...fed.map((cell, at) => {
      const seen = fed.map((other, column) => element("td", {
        class: `${column <= at ? "seen" : "unseen"}${column >= context() ? " guess" : ""}`,
      }, column <= at ? other : ""));
      const looks = `${at >= context() ? "guess" : "text"}${at === row ? " chosen" : ""}`;
      const answer = element("td", { class: "says" }, ...says(at - context() + 1));
      return element("tr", { class: looks, "data-row": at }, head(cell, at), ...seen, answer);
    }));
    form.querySelector(".before").textContent = say(words.before, { count: round().before });
  }

  function judged(at) {
    const guess = round().guesses[at];
    const passed = at < round().accept_len;
    return say(words.here_judges, {
      number: at + 1, guess: guess.symbol, p: number(guess.p, 4), q: number(guess.q, 4),
      keep: number(Math.min(1, guess.p / guess.q), 3), uniform: number(guess.uniform, 3),
      verdict: passed ? words.accepted_word : say(words.rejected_word, { symbol: round().token }),
    });
  }

  function reading() {
    const at = row - context() + 1;
    const symbol = cells()[row];
    // A position looks back over the window, itself included: with each guess the oldest character leaves it.
    const [fed, guesses] = [Math.min(row + 1, context()) + round().before, Math.max(at, 0)];
    const seen = Math.min(fed, (data.window ?? Infinity) - guesses);
    const left = seen < fed ? data.sentence_joint + say(words.slid, { count: fed - seen, window: data.window }) : "";
    const facts = { symbol, seen, guesses, gamma: gamma() };
    let meaning = words.here_known;
    if (at > round().accept_len) meaning = words.here_lost;
    else if (at === gamma()) meaning = whole() ? say(words.here_bonus, { symbol: round().token }) : `${words.bonus_unseen}.`;
    else if (at >= 0) meaning = judged(at);
    form.querySelector(".here").textContent = `${say(words.here, facts)}${left}${data.sentence_joint}${meaning}`;
    form.querySelector(".reading h4").hidden = at < 0;
    form.querySelector(".reading h4").textContent = say(words.on_row, { symbol });
    form.querySelector(".bars").replaceChildren(...(round().rows[at] ?? []).map((one) =>
      element("li", { style: `--share:${one.p}` }, element("b", {}, one.symbol), " ", element("span", {}, percent(one.p, 1)))));
    return meaning;
  }

  function show() {
    row = Math.min(row, cells().length - 1);
    for (const one of body.rows) one.classList.toggle("chosen", Number(one.dataset.row) === row);
    reading();
    const outcomes = {
      forwards: "1", rows: String(gamma() + 1), tokens: String(Math.min(round().accept_len, gamma()) + 1),
      alone: small(round().alone, 6),
    };
    for (const [name, text] of Object.entries(outcomes)) form.querySelector(`[data-outcome="${name}"]`).textContent = text;
    form.querySelector("output[for=mask-gamma]").textContent = gamma();
  }

  function draw() {
    slider.max = round().guesses.length;
    row = Math.min(row, cells().length - 1);
    table();
    show();
  }

  form.addEventListener("input", (event) => {
    if (event.target.name === "row") row = Number(event.target.value);
    if (event.target.name === "row") show();
    else draw();
    form.querySelector("[role=status]").textContent = form.querySelector(".here").textContent;
    state.keep("mask", [form.elements.round.value, gamma(), row]);
  });
  body.addEventListener("click", (event) => {
    if (!event.target.closest("th")) event.target.closest("tr")?.querySelector("input").click();
  });
  draw();
  state.register("mask", ([shown, guesses, at]) => {
    form.elements.round.value = among(shown, Object.keys(data.rounds), form.elements.round.value);
    slider.max = round().guesses.length;
    if (Number.isInteger(Number(guesses))) slider.value = guesses;
    if (Number(at) >= 0 && Number(at) < cells().length) row = Math.floor(Number(at));
    draw();
  });
}

if (page) start(page);
