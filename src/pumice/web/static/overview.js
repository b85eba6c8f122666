// Overview: what waits by the kind of reason, and how much of the cluster is used.

async function overviewPage() {
  const { data } = await document_of("/data/overview");
  const chosen = chosenResource(), curves = await curvesOf(chosen);
  showTimeOf(curves);
  const waiting = data.waiting.reduce((total, kind) => total + kind.jobs, 0), closed = data.closed.reduce((total, kind) => total + kind.nodes, 0);
  const asks = HEAD.resources.map((_, i) => data.waiting.reduce((total, kind) => total + kind.asks[i], 0));
  const first = firstResource();
  const tiles = h("div", { class: "tiles" },
    tile("Jobs that wait", number(waiting), `of ${counted(data.jobs, "job")}`),
    tile(`${resourceLabel(first)} that they ask for`, number(asks[first]), `${number(data.offers[first] - data.used[first])} are free`),
    tile("In the last cycle", number(HEAD.bound), `${HEAD.bound === 1 ? "pod" : "pods"} bound, ${number(HEAD.evicted)} evicted`),
    tile("Nodes", number(data.nodes), closed ? `${number(closed)} take no new pod` : "all take new pods"),
    ...(HEAD.faults ? [tile("Plugin faults", number(HEAD.faults), "in the last cycle; see the log")] : []));
  const used = h("ul", { class: "bars" }, ...HEAD.resources.map((resource, i) => {
    const share = data.offers[i] > 0 ? data.used[i] / data.offers[i] : 0;
    return h("li", {}, h("div", { class: "text" }, h("span", {}, resourceLabel(i)), h("b", {}, `${percent(share)}  ·  ${number(data.used[i])} of ${withUnit(data.offers[i], i)}`)),
      h("div", { class: "track" }, h("div", { class: "fill", style: { width: `${100 * clamp(share, 0, 1)}%` } })));
  }));
  const kinds = data.waiting.length
    ? [table([
        { name: "Reason", left: true, cell: (kind) => jobsLink({ code: kind.code }, kind.code) },
        { name: "Jobs", cell: (kind) => number(kind.jobs) },
        { name: "They ask for", left: true, cell: (kind) => amounts(kind.asks) },
        { name: "What it means", left: true, prose: true, cell: (kind) => kind.meaning },
        { name: "For example", left: true, prose: true, cell: (kind) => [jobLink(kind.example), `: ${kind.sentence}`] },
      ], data.waiting, { label: "Jobs that wait, by reason" })]
    : [nothing("No job waits.")];
  return [tiles,
    card("What waits, and why", "Jobs by what is nearest in their way, those that keep most devices waiting first.", kinds, true, "waiting"),
    h("div", { class: "grid" },
      card("How full the cluster is", "What pods on nodes ask for, as a share of what nodes offer.", [used], false, "used"),
      card("Nodes that take no new pod", "Whatever a pod asks for, unless it tolerates the reason.", [closedList(data.closed)], false, "closed")),
    h("div", { class: "over" }, resourceChoice("/", chosen)), ...clusterFigures(curves, chosen)];
}
function closedList(kinds) {
  if (!kinds.length) return nothing("None.");
  return h("ul", { class: "notes" }, ...kinds.slice(0, 12).map((kind) => h("li", {}, h("b", {}, counted(kind.nodes, "node")), ` ${kind.why} `,
    h("span", { class: "soft" }, `(${kind.examples.join(", ")}${kind.nodes > kind.examples.length ? ", …" : ""})`))));
}
