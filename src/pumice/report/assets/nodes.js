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
// Of the columns, those that are looked at; the last one may reach beyond the end.
function heatCanvas(image, place) {
  const ratio = devicePixelRatio || 1, { width_s, columns } = DATA.heat;
  const canvas = h("canvas", { width: Math.round(place.width * ratio), height: Math.round(place.height * ratio), "aria-hidden": true,
    style: { left: `${place.left}px`, top: `${place.top}px`, width: `${place.width}px`, height: `${place.height}px` } });
  const draw = canvas.getContext("2d");
  draw.imageSmoothingEnabled = false;
  const from = VIEW.from / width_s, wide = Math.min(VIEW.to / width_s, columns) - from;
  const reach = (wide * width_s) / (VIEW.to - VIEW.from);
  if (wide > 0) draw.drawImage(image, from, 0, wide, image.height, 0, 0, canvas.width * reach, canvas.height);
  return canvas;
}
const heatName = ([first, last, count]) => (count > 1 ? `${first} … ${last} (${number(count)} nodes)` : first);
// Short enough for a margin: the first node of the row, its end kept, and how many follow.
function heatLabel([first, , count], room) {
  const more = count > 1 ? ` +${number(count - 1)}` : "", space = room - more.length;
  return (first.length > space ? `…${first.slice(first.length - space + 1)}` : first) + more;
}
function heatChart() {
  const { rows, columns, width_s } = DATA.heat;
  const nodes = sum(rows.map((row) => row[2]));
  const about = `The busy share of each of ${counted(nodes, "node")}, by the resource that is nearest to its end. A row is `
    + (nodes > rows.length ? `${Math.floor(nodes / rows.length)} or ${Math.ceil(nodes / rows.length)} neighbours by name.` : "a node.")
    + " Of all queues, whichever is chosen.";
  if (!columns) return figure("Nodes", about, [nothing("Nothing to show.")], { wide: true, id: "heat" });
  const cells = heatCells();
  const chart = plot((width) => {
    const narrow = width < 640, left = narrow ? 4 : 140, right = width - 8, top = narrow ? 18 : 4, row = clamp(Math.floor(460 / rows.length), 2, 18);
    const bottom = top + row * rows.length, x = scale(VIEW.from, VIEW.to, left, right);
    const every = Math.ceil(14 / row), last = rows.length - 1;
    const names = narrow
      ? [s("text", { x: left, y: 12 }, `top ${heatLabel(rows[0], 22)}`), s("text", { x: right, y: 12, "text-anchor": "end" }, `bottom ${heatLabel(rows[last], 22)}`)]
      : rows.map((name, i) => (i % every ? null : s("text", { x: left - 8, y: top + row * i + Math.max(row / 2 + 4, 9), "text-anchor": "end" }, heatLabel(name, 19))));
    const svg = s("svg", { width, height: bottom + 26, role: "img", tabindex: 0, "aria-label": `Busy share of ${counted(rows.length, "row")} of nodes over time` },
      ...timeAxis(x, bottom, right - left), ...names);
    const canvas = heatCanvas(heatImage(cells, columns, rows.length), { left, top, width: right - left, height: row * rows.length });
    const at = (px, py) => {
      if (px < left || px > right || py < top || py >= bottom) return null;
      const time = VIEW.from + ((px - left) / (right - left)) * (VIEW.to - VIEW.from);
      return Math.floor((py - top) / row) * columns + clamp(Math.floor(time / width_s), 0, columns - 1);
    };
    const show = (cell, px, py) => {
      const i = Math.floor(cell / columns), from = (cell % columns) * width_s, box = svg.getBoundingClientRect();
      showTip(px ?? box.left + x(clamp(from, VIEW.from, VIEW.to)), py ?? box.top + top + row * (i + 0.5),
        `${moment(from, width_s)} to ${moment(Math.min(from + width_s, END), width_s)}`, [[null, heatName(rows[i]), percent(cells[cell] / 255)]]);
    };
    explore(svg, clamp(Math.floor(VIEW.from / width_s), 0, columns - 1), cells.length - 1, at, show, () => {});
    return [svg, canvas];
  });
  return figure("Nodes", about, [chart], { wide: true, id: "heat", side: h("div", { class: "ramp" }, "idle", h("i", {}), "full") });
}
