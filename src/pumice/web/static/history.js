// Curves over the cycles that a server remembers: one brush for all pictures of a page.

const resourceName = (i) => HEAD.resources[i].name;
const curvesOf = async (i) => (await document_of(link("/data/history", { resource: resourceName(i) }))).data;

// The time that pictures show goes on with the newest cycle, unless a part of it was chosen.
function showTimeOf(data) {
  const all = wholeTime(), moved = ORIGIN === null ? 0 : ORIGIN - data.from;
  ORIGIN = data.from;
  END = Math.max(data.parts * data.width_s, 1e-3);
  VIEW.from = all ? 0 : clamp(VIEW.from + moved, 0, END);
  VIEW.to = all ? END : clamp(VIEW.to + moved, VIEW.from, END);
}
const hasCurves = (data) => data.parts > 1;
const NO_CYCLES = "Curves begin with the second cycle that these pages see.";
function timeControls(curves) {
  return h("div", { class: "controls", id: "time" }, brush(curves), h("div", { class: "row" }, chosenTime(), h("span", { class: "soft" }, "All times are UTC.")));
}
const shareOf = (values, of) => values.map((value, b) => (of[b] > 0 ? value / of[b] : 0));
function clusterControls(data) {
  const most = Math.max(1, maximum(data.waiting));
  return timeControls([{ values: shareOf(data.cluster.used, data.cluster.offers), colour: "var(--accent)" }, { values: data.waiting.map((count) => count / most), colour: "var(--mark)" }]);
}
const grain = (data) => `${counted(data.parts, "part")} of ${duration(data.width_s)} each: means of amounts, sums of counts.`;

function clusterFigures(data, i) {
  if (!hasCurves(data)) return [figure("Over time", NO_CYCLES, [], { wide: true, id: "history" })];
  const { offers, used, asked } = data.cluster;
  const curves = [{ name: "used", colour: "var(--accent)", kind: "area", values: used }, { name: "waiting pods ask for", colour: "var(--mark)", values: asked },
    { name: "offered by nodes", colour: "var(--soft)", kind: "dashed", values: offers }];
  const label = resourceLabel(i);
  return [clusterControls(data), h("div", { class: "grid" },
    timeFigure(`${label} over time`, grain(data), curves, (v) => withUnit(v, i), { id: "history" }),
    timeFigure("Jobs that wait, over time", "Jobs with pods that have no node.", [{ name: "jobs", colour: "var(--mark)", kind: "area", values: data.waiting }], number, { id: "waiting-history" }))];
}
function timeFigure(title, about, curves, say, options) {
  const rows = (time) => curves.map((curve) => [curve.colour, curve.name, say(valueAt(curve, time) || 0)]);
  const chart = timeChart(() => ({ height: 220, format: number, curves, rows, label: title, least: 1e-9, ...options }));
  return figure(title, about, [legend(curves.map((curve) => [curve.name, curve.colour, curve.kind === "dashed" ? "dashed" : ""])), chart], options);
}

const QUEUE_CURVES = [["used", "var(--accent)", "area"], ["borrowed", "var(--c4)", "line"], ["waiting", "var(--mark)", "line"], ["deserved", "var(--good)", "dashed"], ["guarantee", "var(--soft)", "dashed"]];
function queueFigures(data, i) {
  if (!hasCurves(data)) return [figure("Queues over time", NO_CYCLES, [], { wide: true, id: "history" })];
  const top = Math.max(1e-9, ...data.queues.flatMap((queue) => QUEUE_CURVES.map(([kind]) => maximum(queue[kind]))));
  const panels = data.queues.map((queue) => {
    const curves = QUEUE_CURVES.map(([kind, colour, shape]) => ({ name: kind, colour, kind: shape, values: queue[kind] })).filter((curve) => curve.name === "used" || maximum(curve.values) > 0);
    const rows = (time) => curves.map((curve) => [curve.colour, curve.name, withUnit(valueAt(curve, time) || 0, i)]);
    const chart = timeChart(() => ({ height: 130, narrow: true, least: top, format: number, curves, rows, label: `${queue.name}: ${resourceLabel(i)} over time` }));
    return h("div", { class: "panel" }, h("h3", {}, h("span", { title: queue.name }, queue.name), h("span", {}, withUnit(queue.used[queue.used.length - 1], i))), chart);
  });
  const more = data.queues_left_out ? ` ${counted(data.queues_left_out, "queue")} with less of it are left out.` : "";
  return [clusterControls(data), figure("Queues over time", `${resourceLabel(i)} that each queue and those below it use, and that waiting jobs ask for, on one scale. ${grain(data)}${more}`,
    [legend(QUEUE_CURVES.map(([kind, colour, shape]) => [kind, colour, shape === "dashed" ? "dashed" : ""])), h("div", { class: "panels" }, ...panels)], { wide: true, id: "history" })];
}
