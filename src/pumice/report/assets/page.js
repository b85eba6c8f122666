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
function queueTable() {
  const spread = ["p50", "p90", "p99", "mean", "max"];
  const cells = (values) => (values || spread.map(() => null)).map((value) => h("td", {}, duration(value)));
  const body = DATA.queues.map((q) => h("tr", {}, h("td", {}, q.name), h("td", {}, number(q.jobs)), h("td", {}, number(q.completed)), h("td", {}, number(q.pending)),
    h("td", {}, percent(q.share)), h("td", {}, percent(q.deserved)), ...cells(q.wait), ...cells(q.completion)));
  const table = h("table", {}, h("thead", {},
    h("tr", {}, h("th", {}), h("th", { class: "group", colspan: 3 }, "jobs"), h("th", { class: "group", colspan: 2 }, "mean over time"),
      h("th", { class: "group", colspan: 5 }, "waiting time"), h("th", { class: "group", colspan: 5 }, "completion time")),
    h("tr", {}, ...["queue", "all", "done", "waiting", "share", "deserved", ...spread, ...spread].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, ...body));
  return card("Queues", `Waiting is from arrival until the gang runs, completion from arrival to the end. Fairness: ${DATA.fairness}.`,
    [h("div", { class: "scroll" }, table)], true, "queues");
}
function causes() {
  if (!DATA.causes.length) return null;
  const most = DATA.causes[0].share || 1;
  const items = DATA.causes.map((c) => h("li", {}, h("div", { class: "text" }, h("span", {}, c.cause), h("b", {}, percent(c.share))),
    h("div", { class: "track" }, h("div", { class: "fill", style: { width: `${(100 * c.share) / most}%` } }))));
  return card("Why jobs waited", "All the time that jobs waited, by what stood against them in each cycle.", [h("ul", { class: "bars" }, ...items)], false, "causes");
}
function pending() {
  if (!DATA.pending.length) return null;
  const rows = DATA.pending.map((w) => h("tr", {}, h("td", {}, w.job), h("td", {}, number(w.pods)), h("td", {}, duration(w.waited_s)), h("td", { class: "left", style: { "white-space": "normal" } }, w.why)));
  return card("Gangs that wait at the end", "The first of them, and what stands against each.", [h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, ...["job", "pods", "for"].map((n) => h("th", { scope: "col" }, n)), h("th", { class: "left", scope: "col" }, "why"))), h("tbody", {}, ...rows)))], true, "pending");
}
function problems() {
  if (!DATA.problems.length) return null;
  const items = DATA.problems.map((p) => h("li", {}, h("span", { class: `tag ${p.severity}` }, p.severity), p.where ? h("b", {}, `${p.where}: `) : null, p.what));
  return card("About the input", "What was assumed, and what could not be used as it was.", [h("ul", { class: "notes" }, ...items)], !DATA.causes.length, "problems");
}

document.getElementById("page").replaceChildren(header(), tiles(), h("div", { class: "grid" },
  ...[DATA.resources.length ? allocationChart() : null, DATA.resources.length ? holdersChart() : null, DATA.shares.charts.length ? sharesChart() : null,
    waitingChart(), waitsChart(), ganttChart(), heatChart(), DATA.queues.length ? queueTable() : null, pending(), causes(), problems()].filter((part) => part)));
