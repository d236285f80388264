// Sorting by heading, filtering of long tables, downloads from beside a table. Without this file all of it is still readable.
const words = JSON.parse(document.getElementById("words").textContent);

// What a cell is sorted by: its data-v, or its text where the two are the same; a dash is missing.
export function sortedBy(cell) {
  if (cell.dataset.v !== undefined) return cell.dataset.v;
  const text = (cell.querySelector("button.open") ?? cell).firstChild?.textContent.trim();
  return text === "–" ? undefined : text;
}

// Missing cells stay last in both directions; ties keep the order of the file.
export function compare(first, second, direction) {
  if (first === undefined || second === undefined) return (first === undefined) - (second === undefined);
  const [a, b] = [Number(first), Number(second)];
  const order = Number.isNaN(a) || Number.isNaN(b) ? first.localeCompare(second, "en", { numeric: true }) : a - b;
  return direction === "descending" ? -order : order;
}

function sortBy(table, heading) {
  const direction = heading.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", direction);
  const body = table.tBodies[0];
  const rows = [...body.rows].sort((a, b) => a.dataset.place - b.dataset.place);
  const value = (row) => sortedBy(row.cells[heading.cellIndex]);
  rows.sort((a, b) => compare(value(a), value(b), direction));
  body.append(...rows);
  table.dispatchEvent(new CustomEvent("sorted"));
}

// Each part of the page may narrow a table; a row is shown when all of them let it pass.
const filters = new WeakMap();

function filter(table, name, passes) {
  if (!filters.has(table)) filters.set(table, new Map());
  const all = filters.get(table).set(name, passes);
  for (const row of table.tBodies[0].rows) row.hidden = ![...all.values()].every((one) => one(row));
  table.dispatchEvent(new CustomEvent("filtered"));
}

globalThis.specledger.tables = {
  filter,
  order(table) {
    const heading = table.querySelector("th[aria-sort]");
    return heading && { column: heading.cellIndex, direction: heading.getAttribute("aria-sort") };
  },
  sort(table, column, direction) {
    const heading = table.tHead.rows[0].cells[column];
    if (!heading || !["ascending", "descending"].includes(direction)) return;
    heading.setAttribute("aria-sort", direction === "ascending" ? "descending" : "ascending");
    sortBy(table, heading);
  },
};

function makeSortable(table) {
  [...table.tBodies[0].rows].forEach((row, place) => { row.dataset.place = place; });
  for (const heading of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sortBy(table, heading));
    heading.append(button);
  }
}

function addFilter(table, number) {
  const rows = [...table.tBodies[0].rows];
  const box = document.createElement("div");
  const label = document.createElement("label");
  const input = document.createElement("input");
  const count = document.createElement("output");
  box.className = "filter";
  input.type = "search";
  input.id = label.htmlFor = `filter-${number}`;
  label.textContent = words.filter;
  count.htmlFor = input.id;
  const tell = () => {
    const shown = rows.filter((row) => !row.hidden).length;
    count.textContent = words.count.replace("{shown}", shown).replace("{total}", rows.length);
  };
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    filter(table, "text", (row) => wanted.every((word) => row.textContent.toLowerCase().includes(word)));
  });
  table.addEventListener("filtered", tell);
  box.append(label, input, count);
  table.closest(".scroll").before(box);
}

document.querySelectorAll("table.sortable").forEach((table, number) => {
  makeSortable(table);
  if (table.tBodies[0].rows.length >= 12) addFilter(table, number);
});

// A table's own link downloads the file that the list at the end holds once.
function offerBeside() {
  for (const link of document.querySelectorAll("a[data-csv]")) {
    const held = document.querySelector(`#csv-${link.dataset.csv} a[download]`);
    if (held) [link.href, link.download] = [held.href, held.download];
  }
}

offerBeside();

// A link into what is folded opens it: all folds around the place, the place itself if it is one, and a lone table.
function reveal(place) {
  for (let one = place; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
}

function follow() {
  const place = location.hash.includes("=") ? null : document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!place) return;
  reveal(place);
  place.scrollIntoView();
}

globalThis.specledger.reveal = reveal;
addEventListener("hashchange", follow);
// A link to the place where the page already stands changes no address.
document.addEventListener("click", (event) => {
  if (event.target.closest?.("a[href^='#']")?.getAttribute("href") === location.hash) follow();
});
follow();

// On paper all is open; of parts that share a name only one can be.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => {
  one.removeAttribute("name");
  one.open = true;
}));
