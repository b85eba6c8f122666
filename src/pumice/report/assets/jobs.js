// Waiting times, and the longest jobs.

function waitsChart() {
  const { edges, counts, marks, never } = DATA.waits;
  const about = "How long jobs waited from arrival until their gang ran; each step to the right is 1.8 times as long."
    + (never ? ` Not counted: ${counted(never, "job")} that never ran.` : "");
  if (!counts.length) return figure("Waiting times", about, [h("p", { class: "nothing" }, "No job has run.")], { id: "waits" });
  const total = counts.reduce((a, b) => a + b, 0);
  // A first bar that dwarfs the others is cut off, and says how high it is.
  const others = Math.max(1, maximum(counts.slice(1)));
  const cut = counts[0] > 5 * others;
  const label = `Waiting times of ${counted(total, "job")}: ${marks.map(([name, value]) => `${name} ${duration(value)}`).join(", ")}`;
  const chart = plot((width) => {
    const height = 250, left = 52, right = width - 10, top = 48, bottom = height - 26;
    const x = scale(0, edges.length, left, right);
    const ticks = valueTicks(cut ? others * 1.6 : maximum(counts), 4);
    const y = scale(0, ticks[ticks.length - 1], bottom, top);
    const svg = s("svg", { width, height, role: "img", tabindex: 0, "aria-label": label }, ...valueAxis(ticks, y, left, right, number),
      s("text", { x: 0, y: 11, class: "strong" }, "jobs"), ...waitTicks(edges, x, bottom, width - left));
    const band = s("rect", { class: "band", y: top, width: x(1) - x(0), height: bottom - top, visibility: "hidden" });
    svg.append(band, ...counts.map((count, i) => waitBar(x(i), x(1) - x(0), Math.max(y(count), top), bottom)));
    if (cut) svg.append(...cutBar(x(0), x(1), top, counts[0]));
    svg.append(...waitMarks(marks, x, top, bottom, right));
    const at = (px) => (px < left || px > right ? null : clamp(Math.floor((px - left) / (x(1) - x(0))), 0, counts.length - 1));
    const show = (i, px, py) => {
      band.setAttribute("x", x(i));
      band.setAttribute("visibility", "visible");
      const box = svg.getBoundingClientRect();
      const span = i === 0 ? "less than 1 s" : `${duration(edges[i])} to ${duration(edges[i] * 10 ** 0.25)}`;
      showTip(px ?? box.left + x(i + 0.5), py ?? box.top + 60, span, [["var(--accent)", "jobs", `${number(counts[i])} (${percent(counts[i] / total)})`]]);
    };
    explore(svg, counts.length, at, show, () => band.setAttribute("visibility", "hidden"));
    return [svg];
  });
  return figure("Waiting times", about, [chart], { id: "waits" });
}
function waitBar(from, wide, y, bottom) {
  return s("rect", { x: from + 0.75, width: Math.max(1, wide - 1.5), y, height: bottom - y, fill: "var(--accent)", rx: 1.5 });
}
function cutBar(from, to, top, count) {
  const y = top + 16;
  return [
    s("path", { d: `M${from},${y + 3}L${to},${y - 3}`, stroke: "var(--card)", "stroke-width": 4 }),
    s("text", { x: to + 5, y: y + 4, class: "strong" }, number(count)),
  ];
}
// Labels where the numbers are round for people: minutes, hours, days.
function waitTicks(edges, x, bottom, width) {
  const last = edges[edges.length - 1] * 10 ** 0.25;
  const all = [10, 60, 600, 3600, 21600, 86400, 432000, 2592000, 31536000].filter((value) => value <= last);
  const every = Math.ceil(all.length / Math.max(1, Math.floor(width / 62) - 1));
  const shown = all.filter((_, i) => i % every === 0).map((value) => [x(1 + Math.log10(value) * 4), duration(value)]);
  return [[x(0.5), "< 1 s"], ...shown].map(([place, text], i) => s("g", {},
    i ? s("line", { class: "baseline", x1: place, x2: place, y1: bottom, y2: bottom + 4 }) : null,
    s("text", { x: place, y: bottom + 18, "text-anchor": "middle" }, text)));
}
// A line and a label each, the last one highest: a label to the left of its line meets no other line. To the right it must fit.
function waitMarks(marks, x, top, bottom, right) {
  const places = marks.map(([, seconds]) => x(seconds < 1 ? seconds : 1 + Math.log10(seconds) * 4));
  const placed = marks.map(([name, seconds], i) => {
    const text = `${name} ${duration(seconds)}`, wide = 8 + text.length * 6.6, place = places[i], y = top - 6 - 14 * i;
    const room = (i + 1 < places.length ? places[i + 1] : right) - place;
    const before = room < wide && place > wide;
    return { place, y, label: s("text", { class: "strong", x: place + (before ? -4 : 4), y, "text-anchor": before ? "end" : "start" }, text) };
  });
  const line = ({ place, y }) => s("line", { x1: place, x2: place, y1: y - 9, y2: bottom, stroke: "var(--mark)", "stroke-width": 1.25 });
  return [...placed.map(line), ...placed.map(({ label }) => label)];
}

function ganttChart() {
  const bars = DATA.gantt.bars;
  const about = "Each bar is the time a job's gang ran, the thin line before it the time it waited; in order of start."
    + (bars.some((bar) => bar.ended === null) ? " An arrow: still running at the end." : "");
  if (!bars.length) return figure("Longest jobs", about, [h("p", { class: "nothing" }, "No job has run.")], { wide: true, id: "gantt" });
  const names = [...new Set(bars.map((bar) => (DATA.colours.includes(bar.queue) ? bar.queue : OTHERS)))];
  names.sort((a, b) => (a === OTHERS) - (b === OTHERS) || (a < b ? -1 : 1));
  const title = bars.length === 1 ? "The longest job" : `The ${bars.length} longest jobs`;
  const chart = plot((width) => {
    const narrow = width < 640, row = narrow ? 30 : 19, left = narrow ? 2 : 190, right = width - 8, top = 4;
    const bottom = top + row * bars.length + 4, x = scale(0, DATA.end_s, left, right);
    const svg = s("svg", { width, height: bottom + 26, role: "img", tabindex: 0, "aria-label": `${title}, from ${bars[0].job} on` },
      ...timeTicks(DATA.end_s, Math.max(2, Math.floor((right - left) / 92))).map((time) =>
        s("line", { class: "gridline", x1: x(time), x2: x(time), y1: top, y2: bottom })),
      ...timeAxis(DATA.end_s, x, bottom, right - left));
    const band = s("rect", { class: "band", x: 0, width, height: row, visibility: "hidden" });
    svg.append(band, ...bars.map((bar, i) => ganttRow(bar, top + i * row, row, x, left, narrow)));
    const at = (_, py) => (py < top || py > bottom ? null : clamp(Math.floor((py - top) / row), 0, bars.length - 1));
    const show = (i, px, py) => {
      band.setAttribute("y", top + i * row);
      band.setAttribute("visibility", "visible");
      const box = svg.getBoundingClientRect();
      showTip(px ?? box.left + left + 40, py ?? box.top + top + row * (i + 0.5), bars[i].job, ganttFacts(bars[i]));
    };
    explore(svg, bars.length, at, show, () => band.setAttribute("visibility", "hidden"));
    return [svg];
  });
  return figure(title, about, [legend(names.map((name) => [name, queueColour(name)])), chart], { wide: true, id: "gantt" });
}
const ganttEnd = (bar) => (bar.ended === null ? DATA.end_s : bar.ended);
function ganttFacts(bar) {
  const facts = [[queueColour(bar.queue), "queue", bar.queue], [null, "pods", number(bar.pods)], [null, "waited", duration(bar.started - bar.submitted)],
    [null, bar.ended === null ? "has run" : "ran", duration(ganttEnd(bar) - bar.started)], [null, "on", bar.nodes || "–"]];
  if (bar.restarts) facts.push([null, "started over", counted(bar.restarts, "time")]);
  return facts;
}
function ganttRow(bar, y, row, x, left, narrow) {
  const middle = y + row - (narrow ? 8 : 9), colour = queueColour(bar.queue), end = x(ganttEnd(bar));
  const fits = (text, count) => (text.length > count ? `${text.slice(0, count - 1)}…` : text);
  const label = narrow
    ? s("text", { x: left, y: y + 12, class: "strong" }, fits(bar.job, 40))
    : s("text", { x: left - 10, y: middle + 4, "text-anchor": "end", class: "strong" }, fits(bar.job, 27));
  return s("g", {}, label,
    s("line", { x1: x(bar.submitted), x2: x(bar.started), y1: middle, y2: middle, stroke: "var(--axis)", "stroke-width": 1.5 }),
    s("rect", { x: x(bar.started), width: Math.max(2, end - x(bar.started)), y: middle - 5.5, height: 11, rx: 2.5, fill: colour }),
    bar.ended === null ? s("path", { d: `M${end},${middle - 7.5}l7,7.5l-7,7.5z`, fill: colour }) : null);
}
