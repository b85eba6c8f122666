// Parts of a page: the tooltip, places to draw in, figures, legends.

const tip = document.getElementById("tip");
function showTip(x, y, when, rows) {
  tip.replaceChildren(h("div", { class: "when" }, when), ...rows.map(([colour, name, value]) =>
    h("div", { class: "row" }, colour ? h("i", { class: "swatch", style: { background: colour } }) : h("i", {}), h("span", {}, name), h("b", {}, value))));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 16 + box.width > innerWidth ? x - box.width - 12 : x + 16;
  const top = Math.min(Math.max(8, y - box.height / 2), innerHeight - box.height - 8);
  tip.style.left = `${clamp(left, 8, Math.max(8, innerWidth - box.width - 8))}px`;
  tip.style.top = `${Math.max(8, top)}px`;
}
function hideTip() { tip.hidden = true; }

// The pointer, a finger, or the arrow keys go over what a chart shows. `at(x, y)`: the index of what is there, null for nothing;
// `show(index, x, y)`: tell about it, where x and y are null when a key asked; `leave()`: stop telling.
function explore(target, first, last, at, show, leave) {
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
    const next = place === null ? first : place + by * (event.shiftKey ? 10 : 1);
    tell(clamp(next, first, last), null, null);
  });
}

// -- a place to draw in: drawn anew when its width changes, and when something else is looked at

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
  place.draw = (width) => place.replaceChildren(...draw(width));
  redraw.observe(place);
  return place;
}
const redrawAll = () => document.querySelectorAll(".plot").forEach((place) => place.drawnWidth && place.draw(place.drawnWidth));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { hideTip(); redrawAll(); });

// What is made anew when `key()` is another: legends, panels, facts.
const LIVE = [];
function live(key, make, tag = "div", attributes = {}) {
  const place = h(tag, attributes);
  let made = null;
  place.renew = () => {
    const now = JSON.stringify(key());
    if (now !== made) { made = now; place.replaceChildren(...[make()].flat().filter((part) => part)); }
  };
  place.renew();
  LIVE.push(place);
  return place;
}

function figure(title, about, parts, options = {}) {
  const head = h("figcaption", { class: "head" }, h("div", {}, h("h2", { id: `${options.id}-title` }, title), h("p", { class: "about" }, about)), options.side || null);
  return h("figure", { class: options.wide ? "wide" : null, id: options.id, "aria-labelledby": `${options.id}-title` }, head, ...parts);
}
const nothing = (text) => h("p", { class: "nothing" }, text);
function legend(entries) {
  return h("ul", { class: "legend" }, ...entries.map(([name, colour, kind]) =>
    h("li", {}, h("i", { class: `swatch ${kind || ""}`, style: { background: colour, "border-color": colour } }), name)));
}
// A few words of which one is chosen.
function choice(label, names, chosen, choose) {
  const buttons = names.map((name, i) => h("button", { type: "button", "aria-pressed": i === chosen, onclick: () => press(i) }, name));
  function press(place) {
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", i === place));
    choose(place);
  }
  return h("div", { class: "choice", role: "group", "aria-label": label }, ...buttons);
}
function card(title, about, parts, wide, id) {
  return h("section", { class: wide ? "card wide" : "card", id }, h("h2", {}, title), h("p", { class: "about" }, about), ...parts);
}
