"use strict";
// Elements, numbers, scales, colours. Text from the data only ever becomes a text node.

const SVG = "http://www.w3.org/2000/svg";
let DATA = null; // set once, before anything is drawn
let END = 1; // the last moment that is shown, seconds from the start
let ORIGIN = null; // seconds since the epoch of the start, where moments are shown as times of day (UTC)

// The data is in the page as base64 of deflated JSON: a tenth of the size, and nothing in it can end its element.
async function load() {
  const packed = Uint8Array.from(atob(document.getElementById("data").textContent.trim()), (char) => char.charCodeAt(0));
  const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  DATA = JSON.parse(await new Response(plain).text());
  END = DATA.end_s || 1;
}

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
// A moment, no finer than steps of `step` seconds need it: `5 d`, `5 d 3 h`, `5 d 03:20`, `5 d 03:20:15`; `1 h 20 min` on the first day.
function moment(seconds, step) {
  if (ORIGIN !== null) return timeOfDay(ORIGIN + seconds, step);
  if (seconds === 0) return "0";
  if (step < 1) return `${Number(seconds.toFixed(Math.ceil(-Math.log10(step))))} s`;
  const whole = Math.round(seconds), days = Math.floor(whole / 86400), two = (value) => String(value).padStart(2, "0");
  const hours = Math.floor((whole % 86400) / 3600), minutes = Math.floor((whole % 3600) / 60);
  const clock = step < 60 ? `${two(hours)}:${two(minutes)}:${two(whole % 60)}` : `${two(hours)}:${two(minutes)}`;
  if (!days) return step < 60 && hours ? clock : duration(whole);
  if (step < 3600) return `${days.toLocaleString("en")} d ${clock}`;
  return hours ? `${days.toLocaleString("en")} d ${hours} h` : `${days.toLocaleString("en")} d`;
}
function timeOfDay(at, step) {
  const text = new Date(1000 * at).toISOString(), day = END > 86400 ? `${text.slice(5, 10)} ` : "";
  return step >= 86400 ? text.slice(5, 10) : `${day}${text.slice(11, step < 1 ? 23 : step < 60 ? 19 : 16)}`;
}
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const maximum = (values) => values.reduce((a, b) => (b > a ? b : a), -Infinity);
const sum = (values) => values.reduce((a, b) => a + b, 0);
const shortened = (text, count) => (text.length > count ? `${text.slice(0, count - 1)}…` : text);

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
function timeStep(span, count) {
  if (span < count) return 10 ** Math.ceil(Math.log10(span / count));
  return SPANS.find((each) => span / each <= count) || SPANS[SPANS.length - 1] * Math.ceil(span / SPANS[SPANS.length - 1] / count);
}
function timeTicks(from, to, step) {
  const ticks = [], first = ORIGIN === null ? 0 : step - (ORIGIN % step); // round times of day, not round distances
  for (let i = Math.ceil((from - first) / step - 1e-6); first + i * step <= to + (to - from) * 1e-4; i++) ticks.push(first + i * step);
  return ticks;
}
const scale = (from, to, low, high) => (value) => low + ((value - from) / (to - from || 1)) * (high - low);

// -- colours: a queue, and a reason for waiting, has the same one in every picture

const OTHERS = "other queues";
function queueColour(name) {
  const place = DATA.colours.indexOf(name);
  return place < 0 ? "var(--other)" : `var(--c${place})`;
}
const REASON_COLOURS = 6;
const reasonColour = (place) => (place >= 0 && place < REASON_COLOURS ? `var(--w${place})` : "var(--other)");
