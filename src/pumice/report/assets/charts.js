// The charts that show curves: allocation, who holds what, shares, waiting.

const RESOURCE_COLOURS = ["var(--c0)", "var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)", "var(--c5)"];

function allocationChart() {
  const curves = DATA.resources.map((resource, i) => ({
    name: resource.label, colour: RESOURCE_COLOURS[i], kind: i === 0 ? "area" : i === 1 ? "line" : "dashed", // those that coincide stay seen
    values: resource.used.map((used, b) => (resource.capacity[b] > 0 ? used / resource.capacity[b] : 0)),
  }));
  const rows = (b) => curves.map((curve, i) => {
    const { used, capacity, unit } = DATA.resources[i];
    return [curve.colour, curve.name, `${percent(curve.values[b])}  ·  ${number(used[b])} of ${number(capacity[b])} ${unit}`];
  });
  const label = `Allocation over time. Means: ${DATA.resources.map((r) => `${r.label} ${percent(r.mean)}`).join(", ")}`;
  const chart = timeChart({ height: 270, top: Math.max(1, ...curves.map((c) => maximum(c.values))), format: (v) => `${Math.round(100 * v)} %`,
    axisLabel: "allocated, % of capacity", label, curves, rows });
  return figure("Allocation over time", "What running pods have asked for, as a share of what the cluster has.",
    [legend(curves.map((c, i) => [`${c.name} (mean ${percent(DATA.resources[i].mean)})`, c.colour, c.kind === "dashed" ? "dashed" : ""])), chart], { wide: true, id: "allocation" });
}

function holdersChart() {
  const place = h("div", {});
  const buttons = DATA.resources.map((resource, i) => h("button", { type: "button", "aria-pressed": i === 0, onclick: () => choose(i) }, resource.label));
  function choose(chosen) {
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", i === chosen));
    const resource = DATA.resources[chosen];
    const queues = resource.queues.map((q) => ({ name: q.name, colour: queueColour(q.name), values: q.values }));
    const room = { name: "capacity", colour: "var(--soft)", kind: "dashed", values: resource.capacity };
    const rows = (b) => [...queues.map((q) => [q.colour, q.name, number(q.values[b])]).reverse(), [null, "capacity", number(resource.capacity[b])]];
    const chart = timeChart({ height: 270, top: Math.max(maximum(resource.capacity), maximum(resource.used)), format: number, stacked: true,
      axisLabel: resource.unit.startsWith(resource.label) ? resource.unit : `${resource.label}, ${resource.unit}`, label: `${resource.label} held by each queue over time`, curves: [...queues, room], rows });
    place.replaceChildren(legend([...queues.map((q) => [q.name, q.colour]), ["capacity", "var(--soft)", "dashed"]]), chart);
  }
  choose(0);
  return figure("Who holds it", "Allocated amounts, stacked by queue.", [place],
    { wide: true, id: "holders", side: h("div", { class: "choice", role: "group", "aria-label": "resource" }, ...buttons) });
}

function sharesChart() {
  const { charts, left_out } = DATA.shares;
  const top = Math.max(0.01, ...charts.map((c) => Math.max(maximum(c.share), maximum(c.deserved))));
  const panels = charts.map((chart) => {
    const curves = [
      { name: "share", colour: "var(--accent)", kind: "area", values: chart.share },
      { name: "deserved", colour: "var(--mark)", kind: "dashed", values: chart.deserved },
    ];
    const said = chart.satisfied === null ? "" : `${Math.round(100 * chart.satisfied)} % of deserved`;
    return h("div", { class: "panel" }, h("h3", {}, h("span", { title: chart.name }, chart.name), h("span", {}, said)),
      timeChart({ height: 112, top, narrow: true, format: (v) => `${Number((100 * v).toPrecision(3))} %`, label: `Share of queue ${chart.name} over time: ${said}`,
        curves, rows: (b) => curves.map((c) => [c.colour, c.name, percent(c.values[b])]) }));
  });
  const about = "Of the resource a queue has, or deserves, most of, as a share of the cluster. All panels have one scale."
    + (left_out > 0 ? ` Not drawn: ${counted(left_out, "queue")} that deserve less.` : "");
  return figure("Share against deserved, by queue", about,
    [legend([["share", "var(--accent)"], ["deserved", "var(--mark)", "dashed"]]), h("div", { class: "panels" }, ...panels)], { wide: true, id: "shares" });
}

function waitingChart() {
  const curves = DATA.waiting.map((q) => ({ name: q.name, colour: queueColour(q.name), values: q.values }));
  const total = curves.length ? curves[0].values.map((_, b) => curves.reduce((sum, c) => sum + c.values[b], 0)) : [0];
  const rows = (b) => [[null, "all", number(total[b])], ...curves.map((c) => [c.colour, c.name, number(c.values[b])]).reverse()];
  const chart = timeChart({ height: 250, top: Math.max(1, maximum(total)), format: number, stacked: true, axisLabel: "jobs", curves, rows,
    label: `Jobs that wait, over time; at most ${number(maximum(total))} at once on average over a step` });
  return figure("Waiting jobs", "Jobs that have arrived and whose gang does not run yet.", [legend(curves.map((c) => [c.name, c.colour])), chart],
    { id: "waiting" });
}
