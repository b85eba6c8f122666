// The page: what is measured first, then what is looked at, then the charts, then tables.

function header() {
  return h("header", {}, h("h1", {}, DATA.title), h("p", { class: "subtitle" }, DATA.subtitle),
    h("dl", { class: "facts" }, ...DATA.facts.map(([name, value]) =>
      h("div", {}, h("dt", {}, name), h("dd", { class: name.startsWith("Digest") ? "digest" : null }, value)))));
}
function tiles() {
  return h("div", { class: "tiles" }, ...DATA.headlines.map(({ label, value, note }) =>
    h("div", { class: "tile" }, h("div", { class: "label" }, label), h("div", { class: "value" }, value), h("div", { class: "note" }, note))));
}

// -- what is looked at

function controls() {
  const waiting = DATA.queues.length ? DATA.queues[0].waiting.map((_, b) => sum(DATA.queues.map((q) => q.waiting[b])) + (DATA.rest ? DATA.rest.waiting[b] : 0)) : [0];
  const most = Math.max(1, maximum(waiting)), [first] = DATA.resources;
  const strip = brush([
    ...(first ? [{ values: first.used.map((used, b) => (first.capacity[b] > 0 ? used / first.capacity[b] : 0)), colour: "var(--accent)" }] : []),
    { values: waiting.map((count) => count / most), colour: "var(--mark)" },
  ]);
  return h("div", { class: "controls", id: "controls" }, strip,
    h("div", { class: "row" }, chosenTime(), queueChoice(), DATA.jobs.names.length ? jobSearch() : null));
}
const QUEUES_OFFERED = 1000;
function queueChoice() {
  const names = DATA.jobs.queues.slice(0, QUEUES_OFFERED);
  if (names.length < 2) return null;
  const select = h("select", { "aria-label": "queue", onchange: () => look({ queue: select.value === "" ? null : names[Number(select.value)] }) },
    h("option", { value: "" }, "all queues"), ...names.map((name, i) => h("option", { value: i }, shortened(name, 40))));
  return select;
}

// -- tables

// On a narrow page each row is a block of its own, where every value is beside its name.
function table(label, columns, rows) {
  const cell = (column, value, i) => (column.row
    ? h("th", { scope: "row" }, value)
    : h("td", { class: column.class || null, "data-label": column.label || column.name, "data-group": column.group || null }, value));
  const groups = [];
  for (const { group } of columns) {
    if (groups.length && groups[groups.length - 1][0] === (group || "")) groups[groups.length - 1][1] += 1;
    else groups.push([group || "", 1]);
  }
  const head = [h("tr", {}, ...columns.map(({ name, class: kind }) => h("th", { scope: "col", class: kind || null }, name)))];
  if (groups.length > 1) head.unshift(h("tr", {}, ...groups.map(([name, colspan]) => h("th", { class: "group", colspan }, name))));
  const body = rows.map((row) => h("tr", {}, ...row.map((value, i) => cell(columns[i], value, i))));
  return h("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": label }, h("table", {}, h("thead", {}, ...head), h("tbody", {}, ...body)));
}
const SPREAD = ["p50", "p90", "p99", "max"];
const spreadCells = (spread) => SPREAD.map((name) => (spread === null ? "–" : spread[name] === null ? `> ${duration(spread.max)}` : duration(spread[name])));
function queueTable() {
  const spread = (group, label) => SPREAD.map((name) => ({ name, group, label: `${label} ${name}` }));
  const columns = [{ name: "queue", row: true }, { name: "all", group: "jobs", label: "jobs" }, { name: "done", group: "jobs" }, { name: "waiting", group: "jobs" },
    { name: "share", group: "mean over time" }, { name: "deserved", group: "mean over time" }, ...spread("waiting time", "wait"), ...spread("completion time", "completion")];
  const body = live(() => VIEW.queue, () => {
    const shown = DATA.table.filter((q) => VIEW.queue === null || q.name === VIEW.queue);
    return table("Queues", columns, shown.map((q) => [q.name, number(q.jobs), number(q.completed), number(q.pending), percent(q.share), percent(q.deserved),
      ...spreadCells(q.wait), ...spreadCells(q.completion)]));
  });
  return card("Queues", `Of the whole time. Waiting is from arrival until the gang runs, completion from arrival to the end. Fairness: ${DATA.fairness}.`, [body], true, "queues");
}
function reasons() {
  if (!DATA.reasons.length) return null;
  const items = DATA.reasons.map((c) => h("li", {}, h("div", { class: "text" }, h("span", {}, h("b", {}, c.code), ` ${c.meaning}`), h("b", {}, percent(c.share))),
    h("div", { class: "track" }, h("div", { class: "fill", style: { width: `${100 * c.share}%`, background: reasonColour(DATA.jobs.codes.indexOf(c.code)) } }))));
  return card("Why jobs waited", "All the time that jobs waited, by what was nearest in their way after each cycle; a bar of full width would be all of it.",
    [h("ul", { class: "bars" }, ...items)], !DATA.problems.length, "reasons");
}
function pending() {
  if (!DATA.pending.length) return null;
  const columns = [{ name: "reason", class: "left" }, { name: "why the first of them waits", class: "prose" }, { name: "queue", class: "left" }, { name: "gangs" }, { name: "pods" }, { name: "longest" }, { name: "which", class: "prose" }];
  const rows = DATA.pending.map((w) => [w.code || "–", w.why, w.queue, number(w.count), number(w.pods), duration(w.longest_s), w.jobs]);
  return card("Gangs that wait at the end", "What prevents them, most first.", [table("Gangs that wait at the end", columns, rows)], true, "pending");
}
function problems() {
  if (!DATA.problems.length) return null;
  const items = DATA.problems.map((p) => h("li", {}, h("span", { class: `tag ${p.severity}` }, p.severity), p.where ? h("b", {}, `${p.where}: `) : null, p.what));
  return card("Problems and notes", "What went wrong, what was assumed, and what could not be used as it was.", [h("ul", { class: "notes" }, ...items)], !DATA.reasons.length, "problems");
}

function simulationPage() {
  const charts = [
    ...(DATA.resources.length ? [allocationChart(), holdersChart()] : []),
    ...(DATA.queues.length ? [sharesChart()] : []),
    waitingChart(), waitsChart(), ganttChart(), heatChart(),
  ];
  const tables = [DATA.table.length ? queueTable() : null, pending(), reasons(), problems()].filter((part) => part);
  return [header(), tiles(), controls(), h("div", { class: "grid" }, jobCard(), ...charts, ...tables)];
}

const PAGES = { simulation: simulationPage, comparison: comparisonPage };
const READY = load().then(() => {
  VIEW.to = END;
  document.getElementById("page").replaceChildren(...PAGES[DATA.kind]());
});
READY.catch((error) => {
  document.getElementById("page").replaceChildren(h("p", { class: "nothing" }, `This report cannot be shown here: ${error}. A browser of 2023 or newer can.`));
});
