// Nodes: a cell for each, or for each of their devices, group by group, by how much of it is used.

const GAP = 2, cellSize = (count) => (count > 2000 ? 10 : count > 200 ? 14 : 24);
const LEVELS = 16; // shades: one path of each in a group, because thousands of single cells are slow to draw
const shortLabel = (name) => name.slice(name.indexOf("/") + 1);
const nodeLink = (name) => (name ? h("a", { href: link("/node", { name }) }, name) : "–");
async function nodesPage() {
  const { data } = await document_of("/data/nodes");
  const given = parameters(), go = (changes) => { history.replaceState(null, "", link("/nodes", { ...parameters(), ...changes })); };
  let chosen = chosenResource(), group = clamp(Number(given.group ?? 0) || 0, 0, data.groupings.length), devices = given.cells === "devices" && data.devices.names.length > 0;
  const place = h("div", {});
  const draw = () => {
    const cells = devices ? deviceCells(data) : nodeCells(data, chosen), groups = grouped(cells, data, group), alone = groups.length === 1;
    const size = cellSize(cells.length), wide = Math.min(alone ? 900 : 190, innerWidth - 80);
    place.className = alone ? "" : "racks";
    place.replaceChildren(...groups.map((each) => cellMap(each, size, Math.max(1, Math.floor(wide / (size + GAP))), alone)));
  };
  draw();
  const groupings = [...data.groupings.map((each) => shortLabel(each.name)), "no group"];
  const resources = choice("resource", HEAD.resources.map((_, i) => resourceLabel(i)), chosen, (i) => { chosen = i; go({ resource: i }); draw(); });
  resources.hidden = devices;
  const side = h("div", { class: "choices" },
    data.devices.names.length ? choice("cells", ["nodes", "devices"], devices ? 1 : 0, (i) => { devices = i === 1; resources.hidden = devices; go({ cells: devices ? "devices" : "" }); draw(); }) : null,
    resources,
    groupings.length > 1 ? choice("group by", groupings, group, (i) => { group = i; go({ group: i }); draw(); }) : null,
    h("div", { class: "ramp" }, "idle", h("i", {}), "full"));
  const more = data.devices.left_out ? ` ${number(data.devices.left_out)} more devices are left out.` : "";
  const find = h("form", { class: "form", role: "search", onsubmit: (event) => { event.preventDefault(); location.href = link("/node", { name: event.target.elements.name.value }); } },
    h("label", {}, "Name of a node", h("input", { name: "name", type: "search", maxlength: 300, required: "" })), h("button", { type: "submit", class: "plain" }, "Open it"));
  return [figure("Nodes", `A cell for each of ${counted(data.names.length, "node")}, by the share of one resource that is used${data.devices.names.length ? ", or for each of its devices, a line for a node" : ""}. A red frame: the node takes no new pod. Click a cell to open the node.${more}`,
    [data.names.length ? place : nothing("No node.")], { wide: true, id: "nodes", side }),
  h("div", { class: "grid" }, card("Nodes that take no new pod", "Whatever a pod asks for, unless it tolerates the reason.", [closedList(data.kinds)], false, "closed"),
    card("One node", "Its pods and devices, and what waiting jobs lack on it.", [find], false, "find"))];
}
function nodeCells(data, chosen) {
  return data.names.map((name, row) => ({ node: row, name, closed: data.closed[row],
    share: data.offers[row][chosen] > 0 ? clamp(data.used[row][chosen] / data.offers[row][chosen], 0, 1) : null,
    facts: () => [...HEAD.resources.map((_, r) => [r === chosen ? "var(--accent)" : null, resourceLabel(r), `${number(data.used[row][r])} of ${number(data.offers[row][r])}`]), [null, "pods", number(data.pods[row])]] }));
}
function deviceCells(data) {
  const { node, names, kinds, share, holders } = data.devices;
  return names.map((name, i) => ({ node: node[i], line: node[i], name: data.names[node[i]], closed: data.closed[node[i]], share: share[i],
    facts: () => [[null, "device", name], [null, "kind", kinds[i]], ["var(--accent)", "held", percent(share[i])], [null, "by", counted(holders[i], "holder")]] }));
}
// The cells of each group, in the order of its name; those in no group come last.
function grouped(cells, data, group) {
  const by = data.groupings[group], found = new Map();
  for (const cell of cells) {
    const of = by ? by.of[cell.node] : 0;
    if (!found.has(of)) found.set(of, []);
    found.get(of).push(cell);
  }
  const name = (of) => (by ? (of < 0 ? "in no group" : by.groups[of]) : "all");
  return [...found].sort(([a], [b]) => (a < 0) - (b < 0) || a - b).map(([of, members]) => ({ name: name(of), cells: members }));
}
// Where each cell is, [column, line]: one after the other, or a line for each node where cells are its devices.
function placed(cells, columns) {
  if (cells.every((each) => each.line === undefined)) return cells.map((_, i) => [i % columns, Math.floor(i / columns)]);
  const lines = new Map();
  return cells.map(({ line }) => {
    if (!lines.has(line)) lines.set(line, [lines.size, 0]);
    const of = lines.get(line);
    return [of[1]++, of[0]];
  });
}
function cellMap({ name, cells }, cell, columns, alone) {
  const size = cell + GAP, places = placed(cells, columns), wide = 1 + maximum(places.map(([column]) => column)), lines = 1 + maximum(places.map(([, line]) => line));
  const index = new Map(places.map(([column, line], i) => [line * wide + column, i]));
  const square = (i, inset) => `M${places[i][0] * size + inset} ${places[i][1] * size + inset}h${cell - 2 * inset}v${cell - 2 * inset}h${2 * inset - cell}z`;
  const shades = new Map(), closed = [];
  cells.forEach((each, i) => {
    const shade = each.share === null ? null : Math.round(each.share * LEVELS);
    shades.set(shade, (shades.get(shade) || "") + square(i, 0));
    if (each.closed) closed.push(square(i, 1));
  });
  const colour = (shade) => (shade === null ? "var(--grid)" : heatColour(shade / LEVELS));
  const svg = s("svg", { width: wide * size, height: lines * size, viewBox: `0 0 ${wide * size} ${lines * size}`, role: "img", tabindex: 0, "aria-label": `${name}: ${counted(cells.length, "cell")}; arrow keys go through them, Enter opens the node` },
    ...[...shades].map(([shade, d]) => s("path", { d, style: { fill: colour(shade) } })), closed.length ? s("path", { class: "closed", d: closed.join("") }) : null);
  let shown = null;
  const open = () => { if (shown !== null) location.href = link("/node", { name: cells[shown].name }); };
  const at = (px, py) => {
    const ratio = wide * size / (svg.getBoundingClientRect().width || 1), column = Math.floor((px * ratio) / size);
    return column >= 0 && column < wide ? index.get(Math.floor((py * ratio) / size) * wide + column) ?? null : null;
  };
  const show = (i, px, py) => {
    const each = cells[shown = i], box = svg.getBoundingClientRect();
    showTip(px ?? box.left + places[i][0] * size, py ?? box.top + places[i][1] * size, each.name, [...each.facts(), ...(each.closed ? [["var(--bad)", "takes no new pod", each.closed]] : [])]);
  };
  explore(svg, 0, cells.length - 1, at, show, () => { shown = null; });
  svg.addEventListener("click", open);
  svg.addEventListener("keydown", (event) => { if (event.key === "Enter") open(); });
  return h("div", { class: "rack" }, h("h2", {}, alone && name === "all" ? number(cells.length) : `${name} · ${number(cells.length)}`), svg);
}

// The colours of the ramp beside the picture, between its four stops.
function heatColour(part) {
  const stop = Math.min(2, Math.floor(3 * part));
  return `color-mix(in srgb, var(--heat${stop + 1}) ${Math.round(100 * (3 * part - stop))}%, var(--heat${stop}))`;
}

// Node: what it has, what is on it, and what waiting jobs lack.
async function nodePage() {
  const { name } = parameters();
  const { data } = await document_of(link("/data/node", { name: name || "" }));
  document.title = `${data.name} · Pumice`;
  const facts = data.groups.map((each) => [shortLabel(each.name), each.group]);
  const head = card(data.name, "", [data.closed ? h("p", {}, h("span", { class: "state waits" }, "takes no new pod"), `: ${data.closed}`) : null,
    h("dl", { class: "facts" }, ...facts.map(([what, value]) => h("div", {}, h("dt", {}, what), h("dd", {}, value)))), useBars(data.used, data.offers)].filter((part) => part), false, "facts");
  const { short, fit } = data.lacks, total = fit + sum(short.map((each) => each.jobs));
  const room = total === 0 ? [nothing("No job waits.")] : [h("ul", { class: "notes" },
    ...short.map(({ resource, jobs }) => h("li", {}, h("b", {}, counted(jobs, "job")), ` ${jobs === 1 ? "asks" : "ask"} for more ${resourceLabel(resource)} a pod than is free: ${withUnit(data.offers[resource] - data.used[resource], resource)}`)),
    fit ? h("li", {}, h("b", {}, counted(fit, "job")), ` ${fit === 1 ? "has" : "have"} room for a pod by amounts: what is in the way is on the page of the job`) : null)];
  const parts = [h("div", { class: "grid" }, head, card("Waiting jobs on this node", "By what one pod of mean size asks for.", room, false, "room"))];
  if (data.devices.length) parts.push(card("Devices", "Those that are known one by one: shared GPUs, devices of claims, shared cards.", [h("ul", { class: "bars devices" }, ...data.devices.map((device) =>
    shareBarOf(device.name, `${percent(device.share)}  ·  ${device.kind}, ${counted(device.holders, "holder")}`, device.share)))], true, "devices"));
  const pods = data.pods.length ? [podTable(data, ["job"])] : [nothing("None.")];
  return [...parts, card("Pods", "", pods, true, "pods")];
}
function podTable(data, more) {
  const columns = { job: { name: "Job", left: true, cell: (pod) => (pod.job ? jobLink(pod.job) : "–") }, node: { name: "Node", left: true, cell: (pod) => nodeLink(pod.node) } };
  const left = data.pods_left_out ? h("p", { class: "about" }, `${number(data.pods_left_out)} more are left out.`) : null;
  return h("div", {}, table([{ name: "Pod", left: true, cell: (pod) => pod.name }, { name: "State", left: true, cell: (pod) => pod.status }, ...more.map((name) => columns[name])], data.pods, { label: "Pods" }), left);
}
const shareBarOf = (name, text, share) => h("li", {}, h("div", { class: "text" }, h("span", {}, name), h("b", {}, text)),
  h("div", { class: "track" }, h("div", { class: "fill", style: { width: `${100 * clamp(share, 0, 1)}%` } })));
const useBars = (used, offers) => h("ul", { class: "bars" }, ...HEAD.resources.map((_, i) => {
  const share = offers[i] > 0 ? used[i] / offers[i] : 0;
  return shareBarOf(resourceLabel(i), `${percent(share)}  ·  ${number(used[i])} of ${withUnit(offers[i], i)}`, share);
}));
