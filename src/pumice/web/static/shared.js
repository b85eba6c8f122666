// What all pages do: fetch a document, draw it, and draw it anew when there is a newer cycle.

let HEAD = null; // of the newest cycle that is shown
let NUMBER = null; // of the oldest document that is shown: the stream names that of the newest
let NOTES = []; // what every page says, such as where a record is damaged
const PLACE = document.getElementById("page");
const link = (path, given) => {
  const parts = new URLSearchParams(Object.entries(given).filter(([, value]) => ![undefined, null, "", false].includes(value)));
  return parts.size ? `${path}?${parts}` : path;
};
const parameters = () => Object.fromEntries(new URLSearchParams(location.search));
const jobLink = (name, shown = name) => h("a", { href: link("/job", { name }) }, shown);
const jobsLink = (given, text) => h("a", { href: link("/jobs", given) }, text);

// The server did not answer. What is shown stays, and the stream says when it is back.
class Lost extends Error {}
// There is no cycle to show yet.
class Early extends Error {}
async function document_of(path) {
  const answer = await fetch(path).catch(() => { throw new Lost("the server does not answer"); });
  if (!answer.ok) throw new Error((await answer.text()).trim() || `HTTP ${answer.status}`);
  const found = await answer.json();
  HEAD = found.head;
  NUMBER = NUMBER === null ? found.number : Math.min(NUMBER, found.number);
  NOTES = found.notes;
  if (!HEAD) throw new Early("no cycle yet");
  return found;
}

// An amount with its unit: 3 cores, 1 device.
function withUnit(value, i) {
  const { name, unit } = HEAD.resources[i];
  const word = unit === "cores" ? (value === 1 ? "core" : "cores") : unit === "GiB" ? "GiB" : shortResource(name);
  return `${number(value)} ${word}`;
}
const shortResource = (name) => (name.endsWith("/gpu") ? "GPUs" : name.includes("/") ? name.slice(name.indexOf("/") + 1) : name);
const resourceLabel = (i) => (i === 0 ? "CPU" : i === 1 ? "memory" : shortResource(HEAD.resources[i].name));
// The amounts of what a job or queue asks for that are not zero: devices first, because they are scarce.
function amounts(values) {
  const order = [...values.keys()].sort((a, b) => (a < 2) - (b < 2) || a - b);
  return order.filter((i) => values[i] > 0).map((i) => withUnit(values[i], i)).join(", ") || "–";
}
// The resource that pages show first: GPUs where there are any.
const firstResource = () => (HEAD.resources.length > 2 ? 2 : 0);
// The resource that the address names.
function chosenResource() {
  const chosen = Number(parameters().resource ?? firstResource());
  return chosen in HEAD.resources ? chosen : firstResource();
}
function resourceChoice(path, chosen) {
  return choice("resource", HEAD.resources.map((_, i) => resourceLabel(i)), chosen, (i) => {
    history.replaceState(null, "", link(path, { ...parameters(), resource: i }));
    refresh();
  });
}
const age = (created) => duration(Math.max(0, HEAD.at - created));
const when = (at) => new Date(1000 * at).toISOString().replace("T", " ").slice(0, 19);

function table(columns, rows, options = {}) {
  const heads = columns.map((column) => h("th", { scope: "col", class: column.left ? "left" : null, "aria-sort": column.sorted || null },
    column.sort ? h("button", { type: "button", onclick: column.sort }, column.name) : column.name));
  const body = rows.map((row) => h("tr", {}, ...columns.map((column, i) => (i === 0
    ? h("th", { scope: "row" }, column.cell(row))
    : h("td", { class: column.prose ? "prose" : column.left ? "left" : null, "data-label": column.name }, whole(column.cell(row)))))));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": options.label || "table" },
    h("table", {}, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...body)));
}
// On a narrow screen a cell has two columns: its label, and all that it shows.
const whole = (shown) => (Array.isArray(shown) ? h("span", {}, ...shown) : shown);
const tile = (label, value, note) => h("div", { class: "tile" }, h("div", { class: "label" }, label), h("div", { class: "value" }, value), h("div", { class: "note" }, note || ""));
const stateWord = (state) => h("span", { class: `state ${state.replace(" ", "-")}` }, state);

function showCycle(lost) {
  const place = document.getElementById("cycle");
  place.classList.toggle("lost", Boolean(lost));
  if (lost) place.textContent = "the server does not answer: trying again";
  else if (HEAD && HEAD.at === null) place.textContent = "results of a simulation";
  else place.textContent = HEAD ? `${HEAD.language} · cycle at ${when(HEAD.at)} UTC` : "no cycle yet";
}
function showEarly() {
  showCycle(false);
  PLACE.replaceChildren(...notes(), card("No cycle has ended yet", "The first one is shown here when it has.", [], true, "early"));
}
const showTrouble = (text) => PLACE.replaceChildren(card("This page cannot be shown", text, [], true));
