// Nodes: a cell each, rack by rack, by how full it is of one resource.

const GAP = 2, cellSize = (count) => (count > 2000 ? 10 : count > 200 ? 14 : 24);
async function nodesPage() {
  const { data } = await document_of("/data/nodes");
  let chosen = chosenResource();
  const racks = [];
  data.names.forEach((_, row) => {
    if (!racks.length || racks[racks.length - 1].name !== data.groups[row]) racks.push({ name: data.groups[row], rows: [] });
    racks[racks.length - 1].rows.push(row);
  });
  const cell = cellSize(data.names.length);
  const place = h("div", { class: racks.length > 1 ? "racks" : null });
  const share = (row) => (data.offers[row][chosen] > 0 ? clamp(data.used[row][chosen] / data.offers[row][chosen], 0, 1) : null);
  const draw = () => place.replaceChildren(...racks.map((rack) => rackMap(rack, data, share, { cell, columns: Math.max(1, Math.floor(Math.min(racks.length > 1 ? 190 : 900, innerWidth - 80) / (cell + GAP))), alone: racks.length === 1 }, () => chosen)));
  draw();
  const side = h("div", {}, choice("resource", HEAD.resources.map((_, i) => resourceLabel(i)), chosen, (i) => {
    chosen = i;
    history.replaceState(null, "", link("/nodes", { resource: i }));
    draw();
  }), " ", h("div", { class: "ramp" }, "idle", h("i", {}), "full"));
  return [figure("Nodes", `A cell for each of ${counted(data.names.length, "node")}, by the share of one resource that is used. A red frame: it takes no new pod.`,
    [data.names.length ? place : nothing("No node.")], { wide: true, id: "nodes", side }),
  card("Nodes that take no new pod", "Whatever a pod asks for, unless it tolerates the reason.", [closedList(data.kinds)], true, "closed")];
}
function rackMap(rack, data, share, { cell, columns, alone }, chosen) {
  const size = cell + GAP, wide = Math.min(columns, rack.rows.length), lines = Math.ceil(rack.rows.length / wide);
  const colour = (part) => (part === null ? "var(--grid)" : `color-mix(in srgb, var(--heat2) ${Math.round(100 * part)}%, var(--heat0))`);
  const svg = s("svg", { width: wide * size, height: lines * size, viewBox: `0 0 ${wide * size} ${lines * size}`, role: "img", tabindex: 0, "aria-label": `${rack.name || "nodes"}: ${counted(rack.rows.length, "node")}` },
    ...rack.rows.map((row, i) => s("rect", { x: (i % wide) * size, y: Math.floor(i / wide) * size, width: cell, height: cell, rx: 2, style: { fill: colour(share(row)) } })),
    ...rack.rows.map((row, i) => (data.closed[row] ? s("rect", { class: "closed", x: (i % wide) * size + 1, y: Math.floor(i / wide) * size + 1, width: cell - 2, height: cell - 2, rx: 2 }) : null)));
  const at = (px, py) => {
    const ratio = wide * size / (svg.getBoundingClientRect().width || 1), i = Math.floor((py * ratio) / size) * wide + Math.floor((px * ratio) / size);
    return i >= 0 && i < rack.rows.length ? i : null;
  };
  const show = (i, px, py) => {
    const row = rack.rows[i], box = svg.getBoundingClientRect();
    showTip(px ?? box.left + (i % wide) * size, py ?? box.top + Math.floor(i / wide) * size, data.names[row], [
      ...HEAD.resources.map((_, r) => [r === chosen() ? "var(--accent)" : null, resourceLabel(r), `${number(data.used[row][r])} of ${number(data.offers[row][r])}`]),
      [null, "pods", number(data.pods[row])], ...(data.closed[row] ? [["var(--bad)", "takes no new pod", data.closed[row]]] : [])]);
  };
  explore(svg, 0, rack.rows.length - 1, at, show, () => {});
  return h("div", { class: "rack" }, h("h3", {}, `${rack.name || (alone ? "all nodes" : "in no group")} · ${number(rack.rows.length)}`), svg);
}
