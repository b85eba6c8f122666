// Waiting times, the longest jobs, the nodes.

function waitsChart() {
  const { edges, counts, marks, never } = DATA.waits;
  const about = "How long jobs waited from arrival until their gang ran; each step to the right is 1.8 times as long."
    + (never ? ` ${number(never)} jobs never ran and are not counted.` : "");
  if (!counts.length) return figure("Waiting times", about, [h("p", { class: "nothing" }, "No job has run.")], { id: "waits" });
  const total = counts.reduce((a, b) => a + b, 0);
  const at = (seconds) => {
    const bin = edges.findLastIndex((edge) => edge <= seconds);
    if (bin <= 0) return seconds;
    return bin + Math.log10(seconds / edges[bin]) * 4;
  };
  const chart = plot((width) => {
    const height = 250, left = 52, right = width - 10, top = 44, bottom = height - 26;
    const x = scale(0, edges.length, left, right);
    const ticks = valueTicks(maximum(counts), 4);
    const y = scale(0, ticks[ticks.length - 1], bottom, top);
    const svg = s("svg", { width, height, role: "img", "aria-label": `Waiting times: ${marks.map(([name, v]) => `${name} ${duration(v)}`).join(", ")}` },
      ...valueAxis(ticks, y, left, right, number), s("text", { x: 0, y: 11, class: "strong" }, "jobs"), ...waitTicks(edges, x, bottom, width - left));
    counts.forEach((count, i) => {
      const low = i === 0 ? 0 : edges[i], high = i === 0 ? 1 : i + 1 < edges.length ? edges[i + 1] : edges[i] * 10 ** 0.25;
      const bar = s("rect", { x: x(i) + 0.75, width: Math.max(1, x(1) - x(0) - 1.5), y: y(count), height: bottom - y(count), fill: "var(--accent)", rx: 1.5 });
      const hit = s("rect", { x: x(i), width: x(1) - x(0), y: top, height: bottom - top, fill: "transparent" });
      hit.addEventListener("pointermove", (e) => showTip(e.clientX, e.clientY, i === 0 ? "less than 1 s" : `${duration(low)} to ${duration(high)}`,
        [["var(--accent)", "jobs", `${number(count)} (${percent(count / total)})`]]));
      hit.addEventListener("pointerleave", hideTip);
      svg.append(bar, hit);
    });
    svg.append(...waitMarks(marks, at, x, top, bottom, right));
    return [svg];
  });
  return figure("Waiting times", about, [chart], { id: "waits" });
}
// Labels where the numbers are round for people: minutes, hours, days.
function waitTicks(edges, x, bottom, width) {
  const last = edges[edges.length - 1] * 10 ** 0.25;
  const all = [1, 10, 60, 600, 3600, 21600, 86400, 432000, 2592000, 31536000].filter((value) => value <= last);
  const room = Math.max(1, Math.floor(width / 62));
  const every = Math.ceil(all.length / room);
  return all.filter((_, i) => i % every === 0).map((value) => {
    const place = x(1 + Math.log10(value) * 4);
    return s("g", {}, s("line", { class: "baseline", x1: place, x2: place, y1: bottom, y2: bottom + 4 }),
      s("text", { x: place, y: bottom + 18, "text-anchor": "middle" }, duration(value)));
  });
}
function waitMarks(marks, at, x, top, bottom, right) {
  let taken = -Infinity, level = 0;
  return marks.map(([name, value]) => {
    const place = x(at(value)), text = `${name} ${duration(value)}`, wide = text.length * 6.4;
    const end = place + wide > right;
    const from = end ? place - wide : place;
    level = from < taken ? level + 1 : 0;
    taken = Math.max(taken, from + wide + 8);
    const y = top - 4 - 14 * (level % 3);
    return s("g", {}, s("line", { x1: place, x2: place, y1: y + 2, y2: bottom, stroke: "var(--mark)", "stroke-width": 1.25 }),
      s("text", { x: end ? place - 4 : place + 4, y, "text-anchor": end ? "end" : "start", class: "strong" }, text));
  });
}

function ganttChart() {
  const bars = DATA.gantt.bars;
  const about = "Each bar is the time a job's gang ran, the thin line before it the time it waited; in order of start.";
  if (!bars.length) return figure("Longest jobs", about, [h("p", { class: "nothing" }, "No job has run.")], { wide: true, id: "gantt" });
  const names = [...new Set(bars.map((bar) => (DATA.colours.includes(bar.queue) ? bar.queue : OTHERS)))].sort();
  const chart = plot((width) => {
    const narrow = width < 640, row = narrow ? 27 : 18, left = narrow ? 2 : 190, right = width - 8, top = 4;
    const bottom = top + row * bars.length + 4, x = scale(0, DATA.end_s, left, right);
    const svg = s("svg", { width, height: bottom + 26, role: "img", "aria-label": `The ${bars.length} jobs that ran longest` },
      ...timeTicks(DATA.end_s, Math.max(2, Math.floor((right - left) / 92))).map((t) => s("line", { class: "gridline", x1: x(t), x2: x(t), y1: top, y2: bottom })),
      ...timeAxis(DATA.end_s, x, bottom, right - left));
    bars.forEach((bar, i) => svg.append(ganttRow(bar, top + i * row, row, x, left, right, narrow)));
    return [svg];
  });
  return figure(`The ${bars.length} longest jobs`, about, [legend(names.map((name) => [name, queueColour(name)])), chart], { wide: true, id: "gantt" });
}
function ganttRow(bar, y, row, x, left, right, narrow) {
  const ended = bar.ended === null ? DATA.end_s : bar.ended;
  const middle = y + row - 9, colour = queueColour(bar.queue);
  const fits = (text, count) => (text.length > count ? `${text.slice(0, count - 1)}…` : text);
  const label = narrow ? s("text", { x: left, y: y + 9, class: "strong" }, fits(bar.job, 40)) : s("text", { x: left - 10, y: middle + 4, "text-anchor": "end", class: "strong" }, fits(bar.job, 27));
  const hit = s("rect", { x: 0, width: right, y, height: row, fill: "transparent" });
  const rows = [[colour, "queue", bar.queue], [null, "pods", number(bar.pods)], [null, "waited", duration(bar.started - bar.submitted)],
    [null, bar.ended === null ? "has run" : "ran", duration(ended - bar.started)], [null, "on", bar.nodes || "–"]];
  if (bar.restarts) rows.push([null, "started over", `${bar.restarts} times`]);
  hit.addEventListener("pointermove", (e) => showTip(e.clientX, e.clientY, bar.job, rows));
  hit.addEventListener("pointerleave", hideTip);
  return s("g", {}, label,
    s("line", { x1: x(bar.submitted), x2: x(bar.started), y1: middle, y2: middle, stroke: "var(--axis)", "stroke-width": 1.5 }),
    s("rect", { x: x(bar.started), width: Math.max(2, x(ended) - x(bar.started)), y: middle - 5.5, height: 11, rx: 2.5, fill: colour }), hit);
}

// -- nodes

function heatCells() {
  const bytes = atob(DATA.heat.cells);
  return Uint8Array.from(bytes, (char) => char.charCodeAt(0));
}
function ramp() {
  const style = getComputedStyle(document.documentElement);
  const stops = [0, 1, 2, 3].map((i) => style.getPropertyValue(`--heat${i}`).trim().match(/[0-9a-f]{2}/gi).map((part) => parseInt(part, 16)));
  return Array.from({ length: 256 }, (_, level) => {
    const place = (level / 255) * 3, i = Math.min(2, Math.floor(place)), part = place - i;
    return stops[i].map((from, c) => Math.round(from + (stops[i + 1][c] - from) * part));
  });
}
function heatImage(cells, columns, rows) {
  const colours = ramp(), image = new ImageData(columns, rows);
  cells.forEach((level, i) => image.data.set([...colours[level], 255], 4 * i));
  const canvas = h("canvas", { width: columns, height: rows });
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}
function heatChart() {
  const { rows, columns, width_s } = DATA.heat;
  const about = "The busy share of each node, by the resource that is nearest to its end. A row is a node, or neighbours by name.";
  if (!columns) return figure("Nodes", about, [h("p", { class: "nothing" }, "Nothing to show.")], { wide: true, id: "heat" });
  const cells = heatCells();
  const chart = plot((width) => {
    const left = width < 640 ? 4 : 130, right = width - 8, top = 4, row = Math.min(18, Math.max(2, Math.floor(460 / rows.length)));
    const bottom = top + row * rows.length, x = scale(0, DATA.end_s, left, right);
    const every = Math.max(1, Math.ceil(14 / row));
    const svg = s("svg", { width, height: bottom + 26, role: "img", "aria-label": `Busy share of ${rows.length} rows of nodes over time` },
      ...timeAxis(DATA.end_s, x, bottom, right - left),
      ...rows.map((name, i) => (left > 4 && i % every === 0 ? s("text", { x: left - 8, y: top + row * i + Math.max(row / 2 + 4, 9), "text-anchor": "end" }, name.length > 19 ? `${name.slice(0, 18)}…` : name) : null)));
    const inside = right - left, shown = Math.min(1, (columns * width_s) / (DATA.end_s || 1));
    const ratio = devicePixelRatio || 1;
    const canvas = h("canvas", { width: Math.round(inside * ratio), height: Math.round(row * rows.length * ratio),
      style: { left: `${left}px`, top: `${top}px`, width: `${inside}px`, height: `${row * rows.length}px` } });
    const draw = canvas.getContext("2d");
    draw.imageSmoothingEnabled = false;
    const whole = Math.max(1, (columns * width_s) / (DATA.end_s || 1));
    draw.drawImage(heatImage(cells, columns, rows.length), 0, 0, canvas.width * (shown < 1 ? shown : whole), canvas.height);
    canvas.addEventListener("pointermove", (e) => {
      const box = canvas.getBoundingClientRect();
      const i = Math.min(rows.length - 1, Math.max(0, Math.floor((e.clientY - box.top) / row)));
      const time = ((e.clientX - box.left) / inside) * DATA.end_s;
      const column = Math.min(columns - 1, Math.max(0, Math.floor(time / width_s)));
      showTip(e.clientX, e.clientY, `${duration(column * width_s)} to ${duration(Math.min((column + 1) * width_s, DATA.end_s))}`,
        [[null, rows[i], percent(cells[i * columns + column] / 255)]]);
    });
    canvas.addEventListener("pointerleave", hideTip);
    return [svg, canvas];
  });
  return figure("Nodes", about, [chart], { wide: true, id: "heat", side: h("div", { class: "ramp" }, "idle", h("i", {}), "full") });
}
