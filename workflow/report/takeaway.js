// What a reader takes along beyond the tables: figures as files, all tables as one, the words to cite.
const words = JSON.parse(document.getElementById("takeaway-words").textContent);

function offer(link, name, type, make) {
  link.hidden = false;
  link.addEventListener("click", () => {
    const url = URL.createObjectURL(new Blob([make()], { type }));
    const clicked = Object.assign(document.createElement("a"), { href: url, download: name });
    document.body.append(clicked);
    clicked.click();
    clicked.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  });
}

// RFC 4180, as the tables are written: quotes double inside quotes, fields may hold commas and newlines.
export function parse(text) {
  const rows = [];
  let row = [], field = "", quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const one = text[at];
    if (quoted) {
      if (one !== '"') field += one;
      else if (text[at + 1] === '"') { field += one; at += 1; } else quoted = false;
    } else if (one === '"') quoted = true;
    else if (one === ",") { row.push(field); field = ""; } else if (one === "\n") {
      rows.push([...row, field.replace(/\r$/, "")]);
      row = [];
      field = "";
    } else field += one;
  }
  if (field || row.length) rows.push([...row, field]);
  return rows;
}

const written = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);

function everything() {
  const lines = ["table,row,column,value"];
  for (const link of document.querySelectorAll("a[data-table]")) {
    const address = link.getAttribute("href");
    const [head, ...body] = parse(decodeURIComponent(address.slice(address.indexOf(",") + 1)));
    body.forEach((row, number) => row.forEach((value, place) => {
      lines.push([link.dataset.table, String(number + 1), head[place], value].map(written).join());
    }));
  }
  return `${lines.join("\n")}\n`;
}

// A figure by itself: the letters that figures share go in, the page's colours become those of a light ground.
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const letters = new Set([...copy.querySelectorAll("use")].map((use) => use.getAttribute("href")));
  const shared = document.createElementNS("http://www.w3.org/2000/svg", "defs");
  for (const address of letters) {
    const id = address.slice(1);
    if (!copy.querySelector(`[id="${id}"]`)) shared.append(document.getElementById(id).cloneNode(true));
  }
  copy.prepend(shared);
  let text = new XMLSerializer().serializeToString(copy);
  for (const [name, colour] of Object.entries(words.colours)) text = text.replaceAll(name, colour);
  return `<?xml version="1.0" encoding="utf-8"?>\n${text}\n`;
}

for (const button of document.querySelectorAll("button[data-figure]")) {
  const svg = document.querySelector(`#figure-${button.dataset.figure} svg`);
  offer(button, `${button.dataset.figure}.svg`, "image/svg+xml", () => standalone(svg));
}
const whole = document.querySelector("button[data-whole]");
if (whole) offer(whole, "everything.csv", "text/csv", everything);

for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const text = document.getElementById(button.dataset.copy).textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = words.copied;
    } catch {
      getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
    }
  });
}
