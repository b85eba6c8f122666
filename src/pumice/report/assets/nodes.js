// The heat map of nodes: a canvas under an axis, drawn from one byte a cell.

const heatCells = () => Uint8Array.from(atob(DATA.heat.cells), (char) => char.charCodeAt(0));
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
// The last column may reach beyond the end of the simulation: what is beyond it is cut off.
function heatCanvas(cells, columns, rows, place) {
  const ratio = devicePixelRatio || 1;
  const canvas = h("canvas", { width: Math.round(place.width * ratio), height: Math.round(place.height * ratio), "aria-hidden": true,
    style: { left: `${place.left}px`, top: `${place.top}px`, width: `${place.width}px`, height: `${place.height}px` } });
  const draw = canvas.getContext("2d");
  draw.imageSmoothingEnabled = false;
  const reach = (columns * DATA.heat.width_s) / (DATA.end_s || columns * DATA.heat.width_s);
  draw.drawImage(heatImage(cells, columns, rows), 0, 0, canvas.width * reach, canvas.height);
  return canvas;
}
function heatChart() {
  const { rows, columns, width_s } = DATA.heat;
  const about = "The busy share of each node, by the resource that is nearest to its end. A row is a node, or neighbours by name.";
  if (!columns) return figure("Nodes", about, [h("p", { class: "nothing" }, "Nothing to show.")], { wide: true, id: "heat" });
  const cells = heatCells();
  const chart = plot((width) => {
    const left = width < 640 ? 4 : 130, right = width - 8, top = 4, row = clamp(Math.floor(460 / rows.length), 2, 18);
    const bottom = top + row * rows.length, x = scale(0, DATA.end_s, left, right);
    const every = Math.ceil(14 / row);
    const names = left > 4 ? rows.map((name, i) => (i % every ? null : heatLabel(name, left - 8, top + row * i + Math.max(row / 2 + 4, 9)))) : [];
    const svg = s("svg", { width, height: bottom + 26, role: "img", tabindex: 0, "aria-label": `Busy share of ${counted(rows.length, "row")} of nodes over time` },
      ...timeAxis(DATA.end_s, x, bottom, right - left), ...names);
    const canvas = heatCanvas(cells, columns, rows.length, { left, top, width: right - left, height: row * rows.length });
    const at = (px, py) => {
      if (px < left || px > right || py < top || py >= bottom) return null;
      const column = clamp(Math.floor((((px - left) / (right - left)) * DATA.end_s) / width_s), 0, columns - 1);
      return Math.floor((py - top) / row) * columns + column;
    };
    const show = (cell, px, py) => {
      const i = Math.floor(cell / columns), from = (cell % columns) * width_s, box = svg.getBoundingClientRect();
      showTip(px ?? box.left + x(from), py ?? box.top + top + row * (i + 0.5), `${duration(from)} to ${duration(Math.min(from + width_s, DATA.end_s))}`,
        [[null, rows[i], percent(cells[cell] / 255)]]);
    };
    explore(svg, cells.length, at, show, () => {});
    return [svg, canvas];
  });
  return figure("Nodes", about, [chart], { wide: true, id: "heat", side: h("div", { class: "ramp" }, "idle", h("i", {}), "full") });
}
function heatLabel(name, x, y) {
  return s("text", { x, y, "text-anchor": "end" }, name.length > 19 ? `${name.slice(0, 18)}…` : name);
}
