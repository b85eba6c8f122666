// Curves over time. Values are means over equal buckets from 0 to DATA.end_s; the last bucket ends at the right edge.

function timeAxis(end, x, bottom, width) {
  const ticks = timeTicks(end, Math.max(2, Math.floor(width / 92)));
  return ticks.map((time) => s("g", {},
    s("line", { class: "baseline", x1: x(time), x2: x(time), y1: bottom, y2: bottom + 4 }),
    s("text", { x: x(time), y: bottom + 18, "text-anchor": time === 0 ? "start" : time > 0.97 * end ? "end" : "middle" }, time === 0 ? "0" : duration(time))));
}
function valueAxis(ticks, y, left, right, format) {
  return ticks.map((value) => s("g", {},
    s("line", { class: value === 0 ? "baseline" : "gridline", x1: left, x2: right, y1: y(value), y2: y(value) }),
    s("text", { x: left - 7, y: y(value) + 4, "text-anchor": "end" }, format(value))));
}

// Steps through the buckets: `M` to the first, then across and up or down.
function steps(values, x, y, start) {
  const parts = [`${start || "M"}${x(0).toFixed(2)},${y(values[0]).toFixed(2)}`];
  values.forEach((value, i) => {
    if (i && value !== values[i - 1]) parts.push(`V${y(value).toFixed(2)}`);
    if (value !== values[i + 1]) parts.push(`H${x(i + 1).toFixed(2)}`);
  });
  return parts.join("");
}
function band(low, high, x, y) {
  const count = high.length;
  const back = [];
  for (let i = count - 1; i >= 0; i--) back.push(`V${y(low[i]).toFixed(2)}H${x(i).toFixed(2)}`);
  return `${steps(high, x, y)}${back.join("")}Z`;
}

// options: height, top (of the value axis), format, axisLabel, label, curves [{name, colour, values, kind: line|dashed|area}], stacked,
// rows (bucket) -> tooltip rows, narrow
function timeChart(options) {
  return plot((width) => {
    const margin = { left: options.narrow ? 38 : 56, right: 10, top: options.axisLabel ? 24 : 8, bottom: 26 };
    const bottom = options.height - margin.bottom;
    const buckets = options.curves.length ? options.curves[0].values.length : 1;
    const x = scale(0, buckets, margin.left, width - margin.right);
    const atTime = scale(0, DATA.end_s, margin.left, width - margin.right);
    const ticks = valueTicks(options.top, options.narrow ? 2 : 4);
    const y = scale(0, ticks[ticks.length - 1], bottom, margin.top);
    const shapes = options.stacked ? stackedShapes(options.curves, x, y) : plainShapes(options.curves, x, y);
    const cursor = s("line", { class: "cursor", y1: margin.top, y2: bottom, visibility: "hidden" });
    const svg = s("svg", { width, height: options.height, role: "img", tabindex: 0, "aria-label": options.label },
      ...valueAxis(ticks, y, margin.left, width - margin.right, options.format), ...timeAxis(DATA.end_s, atTime, bottom, width - margin.left),
      options.axisLabel ? s("text", { x: 0, y: 11, class: "strong" }, options.axisLabel) : null, ...shapes, cursor);
    follow(svg, cursor, x, buckets, options);
    return [svg];
  });
}
function plainShapes(curves, x, y) {
  const zero = (values) => values.map(() => 0);
  return curves.flatMap((curve) => [
    curve.kind === "area" ? s("path", { d: band(zero(curve.values), curve.values, x, y), fill: curve.colour, "fill-opacity": 0.18 }) : null,
    s("path", { d: steps(curve.values, x, y), fill: "none", stroke: curve.colour, "stroke-width": curve.kind === "dashed" ? 1.5 : 1.75,
      "stroke-dasharray": curve.kind === "dashed" ? "5 4" : null, "stroke-linejoin": "round" }),
  ]);
}
function stackedShapes(curves, x, y) {
  const shapes = [];
  let low = null;
  for (const curve of curves) {
    if (curve.kind === "dashed") { shapes.push(...plainShapes([curve], x, y)); continue; }
    low = low || curve.values.map(() => 0);
    const high = curve.values.map((value, i) => value + low[i]);
    shapes.push(s("path", { d: band(low, high, x, y), fill: curve.colour, stroke: "var(--card)", "stroke-width": 0.6 }));
    low = high;
  }
  return shapes;
}

// A cursor moves over the buckets; the tooltip says what holds there.
function follow(svg, cursor, x, buckets, options) {
  const at = (px) => clamp(Math.floor(((px - x(0)) / (x(buckets) - x(0))) * buckets), 0, buckets - 1);
  const show = (bucket, px, py) => {
    const middle = x(bucket + 0.5);
    cursor.setAttribute("x1", middle);
    cursor.setAttribute("x2", middle);
    cursor.setAttribute("visibility", "visible");
    const from = (bucket * DATA.end_s) / buckets;
    const to = ((bucket + 1) * DATA.end_s) / buckets;
    const box = svg.getBoundingClientRect();
    showTip(px === null ? box.left + middle : px, py === null ? box.top + 40 : py, `${duration(from)} to ${duration(to)}`, options.rows(bucket));
  };
  explore(svg, buckets, at, show, () => cursor.setAttribute("visibility", "hidden"));
}
