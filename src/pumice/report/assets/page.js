// The page: what is measured first, then the charts, then tables.

function header() {
  return h("header", {}, h("h1", {}, DATA.title), h("p", { class: "subtitle" }, DATA.subtitle),
    h("dl", { class: "facts" }, ...DATA.facts.map(([name, value]) =>
      h("div", {}, h("dt", {}, name), h("dd", { class: name.startsWith("Digest") ? "digest" : null }, value)))));
}
function tiles() {
  return h("div", { class: "tiles" }, ...DATA.headlines.map(({ label, value, note }) =>
    h("div", { class: "tile" }, h("div", { class: "label" }, label), h("div", { class: "value" }, value), h("div", { class: "note" }, note))));
}
function card(title, about, parts, wide, id) {
  return h("section", { class: wide ? "card wide" : "card", id }, h("h2", {}, title), h("p", { class: "about" }, about), ...parts);
}
// A table that is wider than its card scrolls, by keys too.
function scroller(label, table) {
  return h("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": label }, table);
}
const heads = (names, left) => names.map((name) => h("th", { scope: "col", class: left && left.includes(name) ? "left" : null }, name));

function queueTable() {
  const shown = ["p50", "p90", "p99", "max"];
  const cells = (spread) => shown.map((name) => h("td", {}, duration(spread && spread[name])));
  const body = DATA.queues.map((q) => h("tr", {}, h("th", { scope: "row" }, q.name), h("td", {}, number(q.jobs)), h("td", {}, number(q.completed)),
    h("td", {}, number(q.pending)), h("td", {}, percent(q.share)), h("td", {}, percent(q.deserved)), ...cells(q.wait), ...cells(q.completion)));
  const groups = [["", 1], ["jobs", 3], ["mean over time", 2], ["waiting time", shown.length], ["completion time", shown.length]];
  const table = h("table", {}, h("thead", {}, h("tr", {}, ...groups.map(([name, colspan]) => h("th", { class: "group", colspan }, name))),
    h("tr", {}, ...heads(["queue", "all", "done", "waiting", "share", "deserved", ...shown, ...shown]))), h("tbody", {}, ...body));
  return card("Queues", `Waiting is from arrival until the gang runs, completion from arrival to the end. Fairness: ${DATA.fairness}.`,
    [scroller("Queues", table)], true, "queues");
}
function causes() {
  if (!DATA.causes.length) return null;
  const most = DATA.causes[0].share || 1;
  const items = DATA.causes.map((c) => h("li", {}, h("div", { class: "text" }, h("span", {}, c.cause), h("b", {}, percent(c.share))),
    h("div", { class: "track" }, h("div", { class: "fill", style: { width: `${(100 * c.share) / most}%` } }))));
  return card("Why jobs waited", "All the time that jobs waited, by what stood against them in each cycle.", [h("ul", { class: "bars" }, ...items)],
    !DATA.problems.length, "causes");
}
function pending() {
  if (!DATA.pending.length) return null;
  const rows = DATA.pending.map((w) => h("tr", {}, h("td", { class: "prose" }, w.why), h("td", { class: "left" }, w.queue), h("td", {}, number(w.count)),
    h("td", {}, number(w.pods)), h("td", {}, duration(w.longest_s)), h("td", { class: "prose" }, w.jobs)));
  const table = h("table", {}, h("thead", {}, h("tr", {}, ...heads(["why", "queue", "gangs", "pods", "longest", "which"], ["queue", "which"]))), h("tbody", {}, ...rows));
  return card("Gangs that wait at the end", "What stands against them, most first.", [scroller("Gangs that wait at the end", table)], true, "pending");
}
function problems() {
  if (!DATA.problems.length) return null;
  const items = DATA.problems.map((p) => h("li", {}, h("span", { class: `tag ${p.severity}` }, p.severity), p.where ? h("b", {}, `${p.where}: `) : null, p.what));
  return card("About the input", "What was assumed, and what could not be used as it was.", [h("ul", { class: "notes" }, ...items)], !DATA.causes.length, "problems");
}

const charts = [
  ...(DATA.resources.length ? [allocationChart(), holdersChart()] : []),
  ...(DATA.shares.charts.length ? [sharesChart()] : []),
  waitingChart(), waitsChart(), ganttChart(), heatChart(),
];
const tables = [DATA.queues.length ? queueTable() : null, pending(), causes(), problems()].filter((part) => part);
document.getElementById("page").replaceChildren(header(), tiles(), h("div", { class: "grid" }, ...charts, ...tables));
