// What is looked at: a time, a queue, a job. Every picture is drawn from it, and drawn anew when it changes.

const VIEW = { from: 0, to: 1, queue: null, job: null };
const UPDATES = []; // functions beside pictures that show what is looked at
let asked = false;

function look(change) {
  Object.assign(VIEW, change);
  const least = END / 5000; // nothing is kept that is finer
  VIEW.from = clamp(VIEW.from, 0, END - least);
  VIEW.to = clamp(VIEW.to, VIEW.from + least, END);
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    hideTip();
    LIVE.forEach((place) => place.renew());
    UPDATES.forEach((update) => update());
    redrawAll();
  });
}
const wholeTime = () => VIEW.from <= 0 && VIEW.to >= END;

// -- the brush: a strip of the whole time, with a part of it chosen

// `curves`: [{values, end, colour}] of values from 0 to 1, drawn as areas behind it.
function brush(curves) {
  const height = 46, top = 3, bottom = height - 3, grip = 9;
  let x = scale(0, END, 0, 1), marks = null;
  const place = plot((width) => {
    x = scale(0, END, grip, width - grip);
    const y = scale(0, 1, bottom, top);
    const areas = curves.map((curve) => s("path", { d: wholeArea(curve, x, y), fill: curve.colour, "fill-opacity": 0.3 }));
    marks = { before: shade(), after: shade(), chosen: s("rect", { class: "chosen", y: top, height: bottom - top }), from: handle("from"), to: handle("to") };
    const svg = s("svg", { width, height, role: "group", "aria-label": "The time that all pictures show" },
      s("rect", { class: "track", x: x(0), y: top, width: x(END) - x(0), height: bottom - top }), ...areas,
      marks.before, marks.after, marks.chosen, marks.from, marks.to);
    update();
    return [svg];
  });
  place.classList.add("brush");
  function shade() { return s("rect", { class: "shade", y: top, height: bottom - top }); }
  function handle(name) {
    const knob = s("g", { class: "handle", tabindex: 0, role: "slider", "aria-label": name === "from" ? "from" : "until", "aria-valuemin": 0, "aria-valuemax": Math.round(END) },
      s("rect", { x: -grip + 2, y: top, width: 2 * grip - 4, height: bottom - top, fill: "transparent" }),
      s("rect", { class: "bar", x: -2, y: top, width: 4, height: bottom - top, rx: 2 }));
    knob.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      const moved = VIEW[name] + by * END * (event.shiftKey ? 0.1 : 0.01), gap = END / 200;
      look({ [name]: name === "from" ? Math.min(moved, VIEW.to - gap) : Math.max(moved, VIEW.from + gap) });
    });
    return knob;
  }
  function update() {
    if (!marks) return;
    const from = x(VIEW.from), to = x(VIEW.to);
    const put = (mark, attributes) => Object.entries(attributes).forEach(([name, value]) => mark.setAttribute(name, value));
    put(marks.before, { x: x(0), width: Math.max(0, from - x(0)) });
    put(marks.after, { x: to, width: Math.max(0, x(END) - to) });
    put(marks.chosen, { x: from, width: Math.max(1, to - from) });
    for (const name of ["from", "to"]) {
      put(marks[name], { transform: `translate(${x(VIEW[name])},0)`, "aria-valuenow": Math.round(VIEW[name]), "aria-valuetext": duration(VIEW[name]) });
    }
  }
  UPDATES.push(update);
  drag(place, () => x, grip);
  return place;
}
// A handle moves one end, the chosen part moves as it is, elsewhere a new part begins. A click without a way shows the whole time.
function drag(place, scaleNow, grip) {
  let held = null;
  const timeAt = (event) => {
    const x = scaleNow(), px = event.clientX - place.getBoundingClientRect().left;
    return clamp(((px - x(0)) / (x(END) - x(0))) * END, 0, END);
  };
  place.addEventListener("pointerdown", (event) => {
    const time = timeAt(event), x = scaleNow(), near = (moment) => Math.abs(x(moment) - x(time)) <= grip;
    place.setPointerCapture(event.pointerId);
    if (near(VIEW.from) && !(near(VIEW.to) && time > VIEW.to)) held = { end: "from" };
    else if (near(VIEW.to)) held = { end: "to" };
    else if (!wholeTime() && time > VIEW.from && time < VIEW.to) held = { by: time, from: VIEW.from, to: VIEW.to };
    else held = { since: time };
  });
  place.addEventListener("pointermove", (event) => {
    if (!held) return;
    const time = timeAt(event), gap = END / 500;
    if (held.end === "from") look({ from: Math.min(time, VIEW.to - gap) });
    else if (held.end === "to") look({ to: Math.max(time, VIEW.from + gap) });
    else if (held.by !== undefined) {
      const by = clamp(time - held.by, -held.from, END - held.to);
      look({ from: held.from + by, to: held.to + by });
    } else if (Math.abs(time - held.since) > gap) { held.moved = true; look({ from: Math.min(time, held.since), to: Math.max(time, held.since) }); }
  });
  const release = () => {
    if (held && held.since !== undefined && !held.moved) look({ from: 0, to: END });
    held = null;
  };
  place.addEventListener("pointerup", release);
  place.addEventListener("pointercancel", () => { held = null; });
}
function wholeArea(curve, x, y) {
  const width = (curve.end ?? END) / curve.values.length;
  const points = curve.values.map((value, i) => `L${x(i * width).toFixed(1)},${y(clamp(value, 0, 1)).toFixed(1)}H${x((i + 1) * width).toFixed(1)}`);
  return `M${x(0)},${y(0)}${points.join("")}V${y(0)}Z`;
}
// What the brush says in words, and the way back.
function chosenTime() {
  return live(() => [VIEW.from, VIEW.to], () => wholeTime()
    ? [h("span", { class: "soft" }, "All pictures show the whole time: drag over the strip to choose a part of it.")]
    : [h("span", {}, `${moment(VIEW.from, (VIEW.to - VIEW.from) / 50)} to ${moment(VIEW.to, (VIEW.to - VIEW.from) / 50)}`),
      h("button", { type: "button", class: "plain", onclick: () => look({ from: 0, to: END }) }, "whole time")], "span", { class: "chosen-time" });
}
