// Waiting times of the jobs that arrived in the time, and in the queue, that is looked at.

const jobQueue = (i) => DATA.jobs.queues[DATA.jobs.queue[i]];
const ofQueue = (i) => VIEW.queue === null || jobQueue(i) === VIEW.queue;
const allJobs = () => DATA.jobs.names.map((_, i) => i);
const waitedSoFar = (i) => (DATA.jobs.wait[i] === null ? (DATA.jobs.run[i] === null ? END - DATA.jobs.submitted[i] : 0) : DATA.jobs.wait[i]);

// {edges, counts, marks, never} as the whole page has them, of some jobs. A wait that is not over counts as far as it went:
// percentiles are Kaplan-Meier's, none where too few waits are over to tell.
function waitsOf(jobs) {
  const over = jobs.filter((i) => DATA.jobs.wait[i] !== null).map((i) => DATA.jobs.wait[i]).sort((a, b) => a - b);
  const open = jobs.filter((i) => DATA.jobs.wait[i] === null).map(waitedSoFar).sort((a, b) => a - b);
  if (!over.length) return { edges: [], counts: [], marks: [], never: open.length };
  const quarters = Math.max(1, Math.ceil(Math.log10(Math.max(over[over.length - 1], 1.5)) * 4));
  const edges = [0, ...Array.from({ length: quarters }, (_, i) => 10 ** (i / 4))];
  const counts = edges.map(() => 0);
  for (const wait of over) counts[wait < 1 ? 0 : Math.min(1 + Math.floor(Math.log10(wait) * 4 + 1e-9), quarters)] += 1;
  const marks = [["p50", 0.5], ["p90", 0.9], ["p99", 0.99]].map(([name, part]) => [name, percentile(over, open, part)]);
  return { edges, counts, marks: marks.filter(([, value]) => value !== null), never: open.length };
}
function percentile(over, open, part) {
  let left = 1, gone = 0, cut = 0;
  for (let i = 0; i < over.length; i = gone) {
    while (cut < open.length && open[cut] < over[i]) cut += 1;
    while (gone < over.length && over[gone] === over[i]) gone += 1;
    left *= 1 - (gone - i) / (over.length - i + open.length - cut);
    if (left <= 1 - part + 1e-9) return over[i];
  }
  return null;
}
function waitsSeen() {
  if (VIEW.queue === null && wholeTime()) return DATA.waits;
  return waitsOf(allJobs().filter((i) => ofQueue(i) && DATA.jobs.submitted[i] >= VIEW.from && DATA.jobs.submitted[i] <= VIEW.to));
}

function waitsChart() {
  const about = live(() => [VIEW.from, VIEW.to, VIEW.queue], () => {
    const { never } = waitsSeen();
    const kept = DATA.jobs.left_out && !(VIEW.queue === null && wholeTime()) ? ` ${counted(DATA.jobs.left_out, "job")} that took little time are not kept.` : "";
    return "From arrival until the gang ran; each step to the right is 1.8 times as long."
      + (never ? ` Not in the bars, but in the percentiles as far as they went: ${counted(never, "wait")} not over.` : "") + kept;
  }, "span");
  const chart = plot((width) => {
    const { edges, counts, marks } = waitsSeen();
    if (!counts.length) return [nothing("No job has run.")];
    const total = sum(counts);
    // A first bar that dwarfs the others is cut off, and says how high it is.
    const others = Math.max(1, maximum([0, ...counts.slice(1)])), cut = counts[0] > 5 * others && counts.length > 1;
    const height = 250, left = 52, right = width - 10, top = 48, bottom = height - 26;
    const x = scale(0, edges.length, left, right);
    const ticks = valueTicks(cut ? others * 1.6 : maximum(counts), 4);
    const y = scale(0, ticks[ticks.length - 1], bottom, top);
    const label = `Waiting times of ${counted(total, "job")}: ${marks.map(([name, value]) => `${name} ${duration(value)}`).join(", ")}`;
    const svg = s("svg", { width, height, role: "img", tabindex: 0, "aria-label": label }, ...valueAxis(ticks, y, left, right, number),
      s("text", { x: 0, y: 11, class: "strong" }, "jobs"), ...waitTicks(edges, x, bottom, width - left));
    const mark = s("rect", { class: "band", y: top, width: x(1) - x(0), height: bottom - top, visibility: "hidden" });
    svg.append(mark, ...counts.map((count, i) => waitBar(x(i), x(1) - x(0), Math.max(y(count), top), bottom)));
    if (cut) svg.append(...cutBar(x(0), x(1), top, counts[0]));
    svg.append(...waitMarks(marks, x, top, bottom, right));
    const at = (px) => (px < left || px > right ? null : clamp(Math.floor((px - left) / (x(1) - x(0))), 0, counts.length - 1));
    const show = (i, px, py) => {
      mark.setAttribute("x", x(i));
      mark.setAttribute("visibility", "visible");
      const box = svg.getBoundingClientRect();
      const span = i === 0 ? "less than 1 s" : `${duration(edges[i])} to ${duration(edges[i] * 10 ** 0.25)}`;
      showTip(px ?? box.left + x(i + 0.5), py ?? box.top + 60, span, [["var(--accent)", "jobs", `${number(counts[i])} (${percent(counts[i] / total)})`]]);
    };
    explore(svg, 0, counts.length - 1, at, show, () => mark.setAttribute("visibility", "hidden"));
    return [svg];
  });
  return figure("Waiting times", about, [chart], { id: "waits" });
}
function waitBar(from, wide, y, bottom) {
  return s("rect", { x: from + 0.75, width: Math.max(1, wide - 1.5), y, height: Math.max(0, bottom - y), fill: "var(--accent)", rx: 1.5 });
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
