// Which test catches which fault: tests can be switched off, and the outcome follows.
const { open, state, number, say, element, among } = globalThis.specledger;
const page = open("battery");

function start({ form, data, words }) {
  const heads = [...form.querySelectorAll("th[data-test]")];
  const rows = [...form.querySelectorAll("tbody tr")];
  const fields = form.elements;
  const boxes = heads.map((head) => {
    const box = element("input", { type: "checkbox", name: "test", value: head.dataset.test });
    box.checked = true;
    head.replaceChildren(element("label", {}, ...head.childNodes, box));
    return box;
  });

  function looks(row, used) {
    const seen = row.caught_by.some((test) => used.has(test));
    if (row.right) return seen && row.rejected ? ["missed", words.is_rejected] : ["caught", words.is_passed];
    if (seen) return ["caught", words.is_caught];
    return row.expected ? ["missed", words.is_missed] : ["unseen", words.is_unseen];
  }

  function show() {
    const used = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    let [caught, expected] = [0, 0];
    data.rows.forEach((row, at) => {
      const [name, text] = looks(row, used);
      rows[at].className = name;
      rows[at].querySelector(".verdict").textContent = text;
      rows[at].hidden = fields.kind.value !== "" && row.kind !== fields.kind.value;
      expected += !row.right && row.expected;
      caught += !row.right && row.expected && name === "caught";
    });
    heads.forEach((head, at) => head.classList.toggle("unused", !boxes[at].checked));
    for (const row of rows) data.tests.forEach((test, at) => row.cells[at + 2].classList.toggle("unused", !used.has(test)));
    form.querySelector('[data-outcome="caught"]').textContent = say(words.of, { count: caught, total: expected });
    form.querySelector('[data-outcome="slipped"]').textContent = expected - caught;
  }

  function histogram() {
    const chosen = fields.drafter?.value;
    if (!chosen) return;
    const bins = data.bins[chosen];
    const counts = bins.map(([, count]) => count);
    const expected = bins[0][2];
    const drawn = form.querySelector(".histogram");
    drawn.style.cssText = `--most:${Math.max(...counts, expected * 1.6)};--expected:${expected}`;
    drawn.setAttribute("aria-label", say(words.histogram_alt, {
      drafter: words[`drafter_${chosen}`], bins: bins.length, least: Math.min(...counts), most: Math.max(...counts),
      expected: number(expected, 1),
    }));
    drawn.replaceChildren(...counts.map((count) => element("i", { style: `--count:${count}` })));
    form.querySelector(".expected").textContent = say(words.expected, { expected: number(expected, 1) });
  }

  form.addEventListener("change", () => {
    show();
    histogram();
    const said = [...form.querySelectorAll(".outcomes div")].slice(0, 2).map((item) => item.textContent.trim().replace(/\s+/g, " "));
    form.querySelector("[role=status]").textContent = said.join(", ");
    const off = boxes.filter((box) => !box.checked).map((box) => box.value);
    state.keep("battery", [fields.kind.value, fields.drafter?.value ?? "", ...off]);
  });
  show();
  histogram();
  state.register("battery", ([kind, drafter, ...off]) => {
    fields.kind.value = among(kind, [...fields.kind.options].map((one) => one.value), "");
    if (fields.drafter) fields.drafter.value = among(drafter, Object.keys(data.bins), fields.drafter.value);
    for (const box of boxes) box.checked = !off.includes(box.value);
    show();
    histogram();
  });
}

if (page) start(page);
