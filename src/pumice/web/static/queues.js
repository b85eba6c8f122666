// Queues: a tree with what each holds, wants, deserves and may hold of one resource.

async function queuesPage() {
  const { data } = await document_of("/data/queues");
  const chosen = chosenResource(), curves = await curvesOf(chosen);
  showTimeOf(curves);
  const tree = () => {
    const top = Math.max(...data.queues.map((queue) => Math.max(queue.used[chosen] + queue.waiting[chosen], queue.deserved[chosen] ?? 0, queue.guarantee[chosen])), 1e-9);
    return table([
      { name: "Queue", left: true, cell: (queue) => h("span", { style: { "padding-left": `${18 * Math.min(queue.depth, 8)}px` } }, jobsLink({ queue: queue.name }, queue.name), queue.open ? "" : " (closed)") },
      { name: "Used, and wanted beyond", left: true, cell: (queue) => shareBar(queue, chosen, top) },
      { name: "Used", cell: (queue) => number(queue.used[chosen]) },
      { name: "Borrowed", cell: (queue) => (queue.borrowed[chosen] ? number(queue.borrowed[chosen]) : "–") },
      { name: "Waiting", cell: (queue) => number(queue.waiting[chosen]) },
      { name: "Guarantee", cell: (queue) => (queue.guarantee[chosen] ? number(queue.guarantee[chosen]) : "–") },
      { name: "Deserved", cell: (queue) => (queue.deserved[chosen] === null ? "no end" : queue.deserved[chosen] ? number(queue.deserved[chosen]) : "–") },
      { name: "Limit", cell: (queue) => (queue.limit[chosen] === null ? "–" : number(queue.limit[chosen])) },
      { name: "Weight", cell: (queue) => number(queue.weight) },
      { name: "Jobs that wait", cell: (queue) => number(queue.jobs) },
    ], data.queues, { label: "Queues" });
  };
  return [figure("Queues", "What each queue and those below it hold, and what their waiting jobs ask for. Borrowed: what is used beyond the deserved share, which others can take back.",
    [BAR_LEGEND(), data.queues.length ? tree() : nothing("No queue.")], { wide: true, id: "queues", side: resourceChoice("/queues", chosen) }),
  ...queueFigures(curves, chosen)];
}
const BAR_LEGEND = () => legend([["used", "var(--accent)"], ["borrowed", "var(--c4)"], ["wanted beyond", "var(--accent-wash)"], ["deserved", "var(--mark)", "rule"], ["guarantee", "var(--mark)", "dashed"], ["limit", "var(--ink)", "rule"]]);
function shareBar(queue, i, top) {
  const wide = 100, high = 14, x = (value) => (wide * clamp(value, 0, top)) / top, used = queue.used[i], wants = queue.waiting[i];
  const parts = [s("rect", { class: "room", x: 0, y: 3, width: wide, height: high - 6 }),
    s("rect", { class: "wants", x: x(used), y: 3, width: x(used + wants) - x(used), height: high - 6 }),
    s("rect", { class: "used", x: 0, y: 3, width: x(used), height: high - 6 }),
    s("rect", { class: "borrowed", x: x(used - queue.borrowed[i]), y: 3, width: x(used) - x(used - queue.borrowed[i]), height: high - 6 })];
  for (const [value, kind, dashes] of [[queue.guarantee[i], "mark", "2 2"], [queue.deserved[i], "mark", null], [queue.limit[i], "limit", null]]) {
    if (value) parts.push(s("line", { class: kind, x1: x(value), x2: x(value), y1: 0, y2: high, "stroke-dasharray": dashes, "vector-effect": "non-scaling-stroke" }));
  }
  const label = `${queue.name}: ${withUnit(used, i)} used, of which ${number(queue.borrowed[i])} borrowed, ${number(wants)} wanted`;
  return h("div", { class: "share" }, s("svg", { viewBox: `0 0 ${wide} ${high}`, height: high, preserveAspectRatio: "none", role: "img", "aria-label": label }, ...parts));
}
