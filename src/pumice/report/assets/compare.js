// The page of a comparison: the table with its intervals, then curves of both policies in the first universe.

const SIDES = [["A", "var(--c0)"], ["B", "var(--c1)"]];
const BY_KIND = { seconds: duration, share: percent, index: (value) => value.toFixed(3), number };
const DIFFERENCE = { ...BY_KIND, share: (value) => `${(100 * value).toFixed(1)} pp` };
function signed(value, kind) {
  const text = DIFFERENCE[kind](Math.abs(value));
  return text === DIFFERENCE[kind](0) ? text : `${value < 0 ? "−" : "+"}${text}`;
}

// -- the table

function intervalTable() {
  const columns = [{ name: "figure", row: true }, { name: "A" }, { name: "B" }, { name: "B − A" }, { name: "95 % interval" }, { name: "", class: "interval" }, { name: "better", class: "left" }];
  const rows = DATA.rows.map((row) => {
    if (row.difference === null) return [row.label, "–", "–", "–", "not known in every run", "", ""];
    const text = BY_KIND[row.kind], sure = row.low !== null;
    return [row.label, text(row.a), text(row.b), signed(row.difference, row.kind), sure ? `${signed(row.low, row.kind)} to ${signed(row.high, row.kind)}` : "–",
      sure ? intervalPicture(row) : "", row.better ? h("b", { class: `side ${row.better}` }, row.better.toUpperCase()) : ""];
  });
  const about = "Means over all universes. Differences are taken within each universe; the interval holds the true mean in 95 of 100 cases, and where it "
    + "holds 0 the difference may be chance. In the picture, the line in the middle is 0.";
  return card("What differs", about, [table("What differs", columns, rows)], true, "figures");
}
function intervalPicture(row) {
  const wide = 150, tall = 16, most = Math.max(Math.abs(row.low), Math.abs(row.high)) || 1, x = scale(-most, most, 4, wide - 4);
  const colour = row.better ? SIDES[row.better === "a" ? 0 : 1][1] : "var(--other)";
  return s("svg", { width: wide, height: tall, role: "img", "aria-label": `${row.label}: from ${signed(row.low, row.kind)} to ${signed(row.high, row.kind)}` },
    s("line", { class: "baseline", x1: x(0), x2: x(0), y1: 0, y2: tall }),
    s("rect", { x: x(row.low), width: Math.max(1.5, x(row.high) - x(row.low)), y: tall / 2 - 2.5, height: 5, rx: 2.5, fill: colour, "fill-opacity": 0.45 }),
    s("circle", { cx: x(row.difference), cy: tall / 2, r: 4, fill: colour }));
}

// -- curves

const bothCurves = (values) => SIDES.map(([name, colour], i) => ({ name, colour, kind: i ? "line" : "area", values: values(DATA.runs[i]), end: DATA.runs[i].end_s || 1 }));
const sidesLegend = (more = []) => legend([...SIDES.map(([name, colour], i) => [`${name}: ${DATA.confs[i]}`, colour]), ...more]);
const inShares = (resource) => resource.used.map((used, b) => (resource.capacity[b] > 0 ? used / resource.capacity[b] : 0));

function useChart() {
  const labels = DATA.runs[0].resources.map((resource) => resource.label);
  let chosen = 0;
  const chart = timeChart(() => {
    const curves = bothCurves((run) => inShares(run.resources[chosen]));
    return { height: 270, least: 1, format: (v) => `${Math.round(100 * v)} %`, axisLabel: `${labels[chosen]} allocated, % of capacity`, curves,
      label: `${labels[chosen]} allocated over time under both policies`, rows: (time) => curves.map((c) => [c.colour, c.name, percent(valueAt(c, time))]) };
  });
  return figure("Allocation over time", "What running pods have asked for, as a share of what the cluster has.", [sidesLegend(), chart],
    { wide: true, id: "allocation", side: choice("resource", labels, 0, (place) => { chosen = place; chart.draw(chart.drawnWidth); }) });
}
function bothWaiting() {
  const curves = bothCurves((run) => run.waiting);
  const rows = (time) => curves.map((c) => [c.colour, c.name, number(valueAt(c, time) ?? 0)]);
  return figure("Waiting jobs", "Jobs that have arrived and whose gang does not run yet.",
    [sidesLegend(), timeChart(() => ({ height: 250, least: 1, format: number, axisLabel: "jobs", curves, rows, label: "Jobs that wait, over time, under both policies" }))], { id: "waiting" });
}
function bothShares() {
  const [a, b] = DATA.runs, other = new Map(b.queues.map((queue) => [queue.name, queue]));
  const queues = a.queues.filter((queue) => other.has(queue.name));
  const top = Math.max(0.01, ...queues.flatMap((queue) => [queue.share, queue.deserved, other.get(queue.name).share].map(maximum)));
  const panels = queues.map((queue) => {
    const curves = [
      { name: "A", colour: SIDES[0][1], kind: "area", values: queue.share, end: a.end_s || 1 },
      { name: "B", colour: SIDES[1][1], kind: "line", values: other.get(queue.name).share, end: b.end_s || 1 },
      { name: "deserved (A)", colour: "var(--soft)", kind: "dashed", values: queue.deserved, end: a.end_s || 1 },
    ];
    const rows = (time) => curves.map((c) => [c.colour, c.name, percent(valueAt(c, time))]);
    const chart = timeChart(() => ({ height: 112, least: top, narrow: true, format: (v) => `${number(100 * v)} %`, curves, rows, label: `Share of queue ${queue.name} under both policies` }));
    return h("div", { class: "panel" }, h("h3", {}, h("span", { title: queue.name }, queue.name)), chart);
  });
  return figure("Shares of queues", "Of the resource a queue has most of, as a share of the cluster. What a queue deserves follows what its jobs ask for, so it is another under each policy: drawn is that under A.",
    [sidesLegend([["deserved", "var(--soft)", "dashed"]]), h("div", { class: "panels" }, ...panels)], { wide: true, id: "shares" });
}

// The share of all jobs that wait longer than so long, on a scale of ratios.
function waitedChart() {
  const runs = DATA.runs.map((run) => run.waited), all = runs.flat().map(([seconds]) => seconds);
  const about = "The part of all jobs that waited longer than so long; waits that are not over count as far as they went.";
  if (!all.length) return figure("Waiting times", about, [nothing("No job has run.")], { id: "waits" });
  const least = 1, most = Math.max(10, maximum(all));
  const chart = plot((width) => {
    const height = 250, left = 52, right = width - 10, top = 24, bottom = height - 26;
    const ratio = scale(Math.log10(least), Math.log10(most), left, right), x = (seconds) => ratio(Math.log10(Math.max(seconds, least))), y = scale(0, 1, bottom, top);
    const ticks = [1, 10, 60, 600, 3600, 21600, 86400, 432000, 2592000, 31536000].filter((value) => value <= most);
    const every = Math.ceil(ticks.length / Math.max(1, Math.floor((right - left) / 64)));
    const mark = s("line", { class: "cursor", y1: top, y2: bottom, visibility: "hidden" });
    const svg = s("svg", { width, height, role: "img", tabindex: 0, "aria-label": "The part of jobs that waited longer, under both policies" },
      ...valueAxis([0, 0.25, 0.5, 0.75, 1], y, left, right, (v) => `${100 * v} %`), s("text", { x: 0, y: 11, class: "strong" }, "of all jobs"),
      ...ticks.filter((_, i) => i % every === 0).map((value) => s("g", {}, s("line", { class: "baseline", x1: x(value), x2: x(value), y1: bottom, y2: bottom + 4 }),
        s("text", { x: x(value), y: bottom + 18, "text-anchor": "middle" }, duration(value)))),
      ...runs.map((run, i) => s("path", { d: outlasting(run, x, y, right), fill: "none", stroke: SIDES[i][1], "stroke-width": 1.75 })), mark);
    const count = 100, at = (px) => (px < left || px > right ? null : clamp(Math.floor(((px - left) / (right - left)) * count), 0, count - 1));
    const show = (place, px, py) => {
      const seconds = 10 ** (Math.log10(least) + ((place + 0.5) / count) * (Math.log10(most) - Math.log10(least))), box = svg.getBoundingClientRect();
      mark.setAttribute("x1", x(seconds));
      mark.setAttribute("x2", x(seconds));
      mark.setAttribute("visibility", "visible");
      const rows = runs.map((run, i) => [SIDES[i][1], SIDES[i][0], percent(run.reduce((share, [length, left_]) => (length <= seconds ? left_ : share), 1))]);
      showTip(px ?? box.left + x(seconds), py ?? box.top + 60, `longer than ${duration(seconds)}`, rows);
    };
    explore(svg, 0, count - 1, at, show, () => mark.setAttribute("visibility", "hidden"));
    return [svg];
  });
  return figure("Waiting times", about, [sidesLegend(), chart], { id: "waits" });
}
function outlasting(run, x, y, right) {
  const steps = run.map(([seconds, share]) => `H${x(seconds).toFixed(2)}V${y(share).toFixed(2)}`);
  return `M${x(0).toFixed(2)},${y(1).toFixed(2)}${steps.join("")}H${right}`;
}

function comparisonPage() {
  const strip = brush(DATA.runs.map((run, i) => ({ values: run.resources.length ? inShares(run.resources[0]) : [0], end: run.end_s || 1, colour: SIDES[i][1] })));
  const about = h("p", { class: "about" }, "Curves are those of the first universe.");
  const charts = [...(DATA.runs[0].resources.length ? [useChart()] : []), bothWaiting(), waitedChart(), ...(DATA.runs[0].queues.length ? [bothShares()] : [])];
  return [header(), h("div", { class: "grid" }, intervalTable()), h("div", { class: "controls", id: "controls" }, strip, h("div", { class: "row" }, chosenTime())), about,
    h("div", { class: "grid" }, ...charts)];
}
