"use strict";
// Elements, numbers, scales, the tooltip. Text from the data only ever becomes a text node.

const SVG = "http://www.w3.org/2000/svg";
const DATA = JSON.parse(document.getElementById("data").textContent);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined) continue;
    if (name === "style") for (const [key, text] of Object.entries(value)) node.style.setProperty(key, text);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) node.append(child);
  return node;
}
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// -- numbers and times

const counted = (count, what) => `${number(count)} ${what}${count === 1 ? "" : "s"}`;
const percent = (share) => (share === null ? "–" : `${(100 * share).toFixed(1)} %`);
function number(value) {
  const size = Math.abs(value);
  if (size >= 1000 || Number.isInteger(value)) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(3)));
}
const UNITS = [["d", 86400, "h", 3600], ["h", 3600, "min", 60], ["min", 60, "s", 1]];
function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 0.0005) return "0 s";
  if (seconds < 10) return `${Number(seconds.toPrecision(3))} s`;
  const whole = Math.round(seconds);
  for (const [name, size, small, unit] of UNITS) {
    if (whole < size) continue;
    const rest = Math.floor((whole % size) / unit);
    const first = `${Math.floor(whole / size).toLocaleString("en")} ${name}`;
    return rest ? `${first} ${rest} ${small}` : first;
  }
  return `${whole} s`;
}
const minimum = (values) => values.reduce((a, b) => (b < a ? b : a), Infinity);
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const maximum = (values) => values.reduce((a, b) => (b > a ? b : a), -Infinity);

// -- ticks: round steps, at most `count` of them

function valueTicks(top, count) {
  if (!(top > 0)) return [0, 1];
  const raw = top / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((size) => size >= raw * 0.999);
  const ticks = [];
  for (let i = 0; i * step < top * 1.0001 + step * 0.999; i++) ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}
const SPANS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000,
  1728000, 2592000, 5184000, 8640000, 17280000, 31536000];
function timeTicks(end, count) {
  const step = SPANS.find((span) => end / span <= count) || SPANS[SPANS.length - 1] * Math.ceil(end / SPANS[SPANS.length - 1] / count);
  const ticks = [];
  for (let time = 0; time <= end * 1.0001; time += step) ticks.push(time);
  return ticks;
}
const scale = (from, to, low, high) => (value) => low + ((value - from) / (to - from || 1)) * (high - low);

// -- colours: a queue has the same one in every chart

const OTHERS = "other queues";
function queueColour(name) {
  const place = DATA.colours.indexOf(name);
  return place < 0 ? "var(--other)" : `var(--c${place})`;
}

// -- the tooltip

const tip = document.getElementById("tip");
function showTip(x, y, when, rows) {
  tip.replaceChildren(h("div", { class: "when" }, when), ...rows.map(([colour, name, value]) =>
    h("div", { class: "row" }, colour ? h("i", { class: "swatch", style: { background: colour } }) : h("i", {}), h("span", {}, name), h("b", {}, value))));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 16 + box.width > innerWidth ? x - box.width - 12 : x + 16;
  const top = Math.min(Math.max(8, y - box.height / 2), innerHeight - box.height - 8);
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${top}px`;
}
function hideTip() { tip.hidden = true; }

// The pointer, a finger, or the arrow keys go over what a chart shows. `at(x, y)`: the index of what is there, null for nothing;
// `show(index, x, y)`: tell about it, where x and y are null when a key asked; `leave()`: stop telling.
function explore(target, count, at, show, leave) {
  let place = null;
  const tell = (index, x, y) => { place = index; show(index, x, y); };
  const stop = () => { leave(); hideTip(); };
  for (const kind of ["pointermove", "pointerdown"]) {
    target.addEventListener(kind, (event) => {
      const box = target.getBoundingClientRect();
      const index = at(event.clientX - box.left, event.clientY - box.top);
      if (index === null) stop(); else tell(index, event.clientX, event.clientY);
    });
  }
  target.addEventListener("pointerleave", stop);
  target.addEventListener("blur", stop);
  target.addEventListener("keydown", (event) => {
    if (event.key === "Escape") stop();
    const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const next = place === null ? 0 : place + by * (event.shiftKey ? 10 : 1);
    tell(clamp(next, 0, count - 1), null, null);
  });
}

// -- a place to draw in: drawn anew when its width changes

const redraw = new ResizeObserver((entries) => {
  for (const entry of entries) {
    const width = Math.floor(entry.contentRect.width);
    if (width > 0 && width !== entry.target.drawnWidth) {
      entry.target.drawnWidth = width;
      entry.target.draw(width);
    }
  }
});
function plot(draw) {
  const place = h("div", { class: "plot" });
  place.draw = (width) => { hideTip(); place.replaceChildren(...draw(width)); };
  redraw.observe(place);
  return place;
}
const redrawAll = () => document.querySelectorAll(".plot").forEach((place) => place.drawnWidth && place.draw(place.drawnWidth));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);

function figure(title, about, parts, options = {}) {
  const head = h("figcaption", { class: "head" }, h("div", {}, h("h2", { id: `${options.id}-title` }, title), h("p", { class: "about" }, about)), options.side || null);
  return h("figure", { class: options.wide ? "wide" : null, id: options.id, "aria-labelledby": `${options.id}-title` }, head, ...parts);
}
function legend(entries) {
  return h("ul", { class: "legend" }, ...entries.map(([name, colour, kind]) =>
    h("li", {}, h("i", { class: `swatch ${kind || ""}`, style: { background: colour, "border-color": colour } }), name)));
}
