// Curves over time. A curve: {name, colour, kind: line|dashed|area, values, end}: means over equal buckets from 0 to `end` (END unless
// given). Drawn is the part that is looked at.

const endOf = (curve) => curve.end ?? END;
const bucketOf = (curve) => endOf(curve) / curve.values.length;
function seen(curve) {
  const width = bucketOf(curve), count = curve.values.length;
  const first = clamp(Math.floor(VIEW.from / width + 1e-9), 0, count - 1);
  return [first, clamp(Math.ceil(VIEW.to / width - 1e-9), first + 1, count)];
}
const valuesSeen = (curve) => (VIEW.from >= endOf(curve) ? [] : curve.values.slice(...seen(curve)));
function valueAt(curve, time) {
  const place = Math.floor(time / bucketOf(curve));
  return place >= 0 && place < curve.values.length ? curve.values[place] : null;
}

function timeAxis(x, bottom, width) {
  const count = Math.max(2, Math.floor(width / 108)), step = timeStep(VIEW.to - VIEW.from, count);
  return timeTicks(VIEW.from, VIEW.to, step).map((time) => {
    const part = (time - VIEW.from) / (VIEW.to - VIEW.from);
    return s("g", {},
      s("line", { class: "baseline", x1: x(time), x2: x(time), y1: bottom, y2: bottom + 4 }),
      s("text", { x: x(time), y: bottom + 18, "text-anchor": part < 0.03 ? "start" : part > 0.96 ? "end" : "middle" }, moment(time, step)));
  });
}
function valueAxis(ticks, y, left, right, format) {
  return ticks.map((value) => s("g", {},
    s("line", { class: value === 0 ? "baseline" : "gridline", x1: left, x2: right, y1: y(value), y2: y(value) }),
    s("text", { x: left - 7, y: y(value) + 4, "text-anchor": "end" }, format(value))));
}

// Steps through the buckets that are seen: `M` to the first, then across and up or down.
function steps(curve, values, x, y) {
  const [first, last] = seen(curve), width = bucketOf(curve);
  const across = (i) => x(clamp(i * width, VIEW.from, Math.min(VIEW.to, endOf(curve)))).toFixed(2);
  const parts = [`M${across(first)},${y(values[first]).toFixed(2)}`];
  for (let i = first; i < last; i++) {
    if (i > first && values[i] !== values[i - 1]) parts.push(`V${y(values[i]).toFixed(2)}`);
    if (i === last - 1 || values[i] !== values[i + 1]) parts.push(`H${across(i + 1)}`);
  }
  return parts.join("");
}
function band(curve, low, high, x, y) {
  const [first, last] = seen(curve), width = bucketOf(curve), back = [];
  const across = (i) => x(clamp(i * width, VIEW.from, Math.min(VIEW.to, endOf(curve)))).toFixed(2);
  for (let i = last - 1; i >= first; i--) back.push(`V${y(low[i]).toFixed(2)}H${across(i)}`);
  return `${steps(curve, high, x, y)}${back.join("")}Z`;
}

// `make()` answers {height, format, axisLabel, label, curves, stacked, least (of the top of the value axis), rows(time) -> tooltip rows, narrow};
// it is asked each time the chart is drawn.
function timeChart(make) {
  return plot((width) => {
    const options = make();
    if (!options.curves.length) return [nothing(options.empty || "Nothing to show.")];
    const margin = { left: options.narrow ? 38 : 56, right: 10, top: options.axisLabel ? 24 : 8, bottom: 26 };
    const bottom = options.height - margin.bottom;
    const x = scale(VIEW.from, VIEW.to, margin.left, width - margin.right);
    const ticks = valueTicks(topOf(options), options.narrow ? 2 : 4);
    const y = scale(0, ticks[ticks.length - 1], bottom, margin.top);
    const shown = options.curves.filter((curve) => valuesSeen(curve).length);
    const shapes = options.stacked ? stackedShapes(shown, x, y) : shown.flatMap((curve) => plainShapes(curve, x, y));
    const cursor = s("line", { class: "cursor", y1: margin.top, y2: bottom, visibility: "hidden" });
    const svg = s("svg", { width, height: options.height, role: "img", tabindex: 0, "aria-label": options.label },
      ...valueAxis(ticks, y, margin.left, width - margin.right, options.format), ...timeAxis(x, bottom, width - margin.left),
      options.axisLabel ? s("text", { x: 0, y: 11, class: "strong" }, options.axisLabel) : null, ...shapes, cursor);
    follow(svg, cursor, x, options);
    return [svg];
  });
}
function topOf(options) {
  const least = options.least || 0;
  if (!options.stacked) return Math.max(least, ...options.curves.map((curve) => maximum([0, ...valuesSeen(curve)])));
  const stack = options.curves.filter((curve) => curve.kind !== "dashed").map(valuesSeen);
  const total = (stack[0] || []).map((_, i) => sum(stack.map((values) => values[i])));
  const lines = options.curves.filter((curve) => curve.kind === "dashed").flatMap(valuesSeen);
  return maximum([least, 0, ...total, ...lines]);
}
function plainShapes(curve, x, y) {
  const zero = curve.values.map(() => 0);
  return [
    curve.kind === "area" ? s("path", { d: band(curve, zero, curve.values, x, y), fill: curve.colour, "fill-opacity": 0.18 }) : null,
    s("path", { d: steps(curve, curve.values, x, y), fill: "none", stroke: curve.colour, "stroke-width": curve.kind === "dashed" ? 1.5 : 1.75,
      "stroke-dasharray": curve.kind === "dashed" ? "5 4" : null, "stroke-linejoin": "round" }),
  ];
}
function stackedShapes(curves, x, y) {
  const dense = curves.length && x(bucketOf(curves[0])) - x(0) < 2; // an edge would be all that is left of a thin spike
  const shapes = [];
  let low = null;
  for (const curve of curves) {
    if (curve.kind === "dashed") { shapes.push(...plainShapes(curve, x, y)); continue; }
    low = low || curve.values.map(() => 0);
    const high = curve.values.map((value, i) => value + low[i]);
    shapes.push(s("path", { d: band(curve, low, high, x, y), fill: curve.colour, stroke: "var(--card)", "stroke-width": dense ? 0 : 0.6 }));
    low = high;
  }
  return shapes;
}

// A cursor moves over the buckets of the first curve; the tooltip says what holds there.
function follow(svg, cursor, x, options) {
  const curve = options.curves[0], width = bucketOf(curve), [first, last] = seen(curve);
  const at = (px) => clamp(Math.floor((VIEW.from + ((px - x(VIEW.from)) / (x(VIEW.to) - x(VIEW.from))) * (VIEW.to - VIEW.from)) / width), first, last - 1);
  const show = (bucket, px, py) => {
    const middle = clamp((bucket + 0.5) * width, VIEW.from, VIEW.to);
    cursor.setAttribute("x1", x(middle));
    cursor.setAttribute("x2", x(middle));
    cursor.setAttribute("visibility", "visible");
    const box = svg.getBoundingClientRect();
    showTip(px ?? box.left + x(middle), py ?? box.top + 40, `${moment(bucket * width, width)} to ${moment((bucket + 1) * width, width)}`, options.rows(middle));
  };
  explore(svg, first, last - 1, at, show, () => cursor.setAttribute("visibility", "hidden"));
}
