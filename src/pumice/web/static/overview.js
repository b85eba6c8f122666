// Overview: what waits by the kind of reason, and how much of the cluster is used.

async function overviewPage() {
  // The names of resources are known from the second time on: then one request has all.
  const { data } = await document_of(HEAD ? link("/data/overview", { resource: resourceName(chosenResource()) }) : "/data/overview");
  const chosen = chosenResource(), curves = data.curves ?? (await curvesOf(chosen));
  showTimeOf(curves);
  const waiting = data.waiting.reduce((total, kind) => total + kind.jobs, 0), closed = data.closed.reduce((total, kind) => total + kind.nodes, 0);
  const asks = HEAD.resources.map((_, i) => data.waiting.reduce((total, kind) => total + kind.asks[i], 0));
  const first = firstResource();
  const tiles = h("div", { class: "tiles" },
    tile("Jobs that wait", number(waiting), `of ${counted(data.jobs, "job")}`),
    tile(`${resourceLabel(first)} that they ask for`, number(asks[first]), `${number(data.offers[first] - data.used[first])} are free`),
    tile("In the last cycle", number(HEAD.bound), `${HEAD.bound === 1 ? "pod" : "pods"} bound, ${number(HEAD.evicted)} evicted`),
    tile("Nodes", number(data.nodes), closed ? `${number(closed)} take no new pod` : "all take new pods"),
    cycleTile(data.health));
  const kinds = data.waiting.length
    ? [table([
        { name: "Reason", left: true, cell: (kind) => jobsLink({ code: kind.code }, kind.code) },
        { name: "Jobs", cell: (kind) => number(kind.jobs) },
        { name: "They ask for", left: true, cell: (kind) => amounts(kind.asks) },
        { name: "What it means", left: true, prose: true, cell: (kind) => kind.meaning },
        { name: "For example", left: true, prose: true, cell: (kind) => [jobLink(kind.example, kind.shown), `: ${kind.sentence}`] },
      ], data.waiting, { label: "Jobs that wait, by reason" })]
    : [nothing("No job waits.")];
  return [tiles,
    card("What waits, and why", "Jobs by what is nearest in their way, those that keep most devices waiting first.", kinds, true, "waiting"),
    h("div", { class: "grid" }, reliefCard(), healthCard(data)),
    h("div", { class: "grid" },
      card("How full the cluster is", "What pods on nodes ask for, as a share of what nodes offer.", [useBars(data.used, data.offers)], false, "used"),
      card("Nodes that take no new pod", "Whatever a pod asks for, unless it tolerates the reason.", [closedList(data.closed)], false, "closed")),
    h("div", { class: "over" }, resourceChoice("/", chosen)), ...clusterFigures(curves, chosen)];
}
const milliseconds = (seconds) => (seconds < 1 ? `${number(1000 * seconds)} ms` : duration(seconds));
function cycleTile({ median_s, longest_s, cycles }) {
  if (median_s === null) return tile("Cycle time", "–", "not measured here");
  return tile("Cycle time", milliseconds(median_s), `longest of ${number(cycles)}: ${milliseconds(longest_s)}`);
}
// What went wrong in the last cycles. Nothing of it stops a scheduler, so each is only named.
function healthCard({ health, closed }) {
  const cycles = counted(health.cycles, "cycle"), shut = sum(closed.map((kind) => kind.nodes));
  const line = (count, good, bad, path) => h("li", {}, h("span", { class: `tag ${count ? "warning" : "good"}` }, count ? "look" : "good"), count ? (path ? h("a", { href: path }, bad) : bad) : good);
  return card("Health", `Of the last ${cycles}, and of what the cluster has now.`, [h("ul", { class: "notes" },
    line(health.faults, "no fault of a plugin", counted(health.faults, "fault") + " of plugins", "/cycles"),
    line(health.cuts, "no search was ended before it could tell", `${counted(health.cuts, "search").replace("searchs", "searches")} ended before they could tell`, "/cycles"),
    line(health.unreadable, "all jobs can be read", `${counted(health.unreadable, "job")} that cannot be read`, "/jobs?code=Unreadable"),
    line(shut, "all nodes take new pods", `${counted(shut, "node")} that ${shut === 1 ? "takes" : "take"} no new pod`, "/nodes"))], false, "health");
}
// The change is worked out apart, by cycles on changed copies of the cluster, and takes a while.
const RELIEF = { found: null, why_not: null, asked: false, at: -Infinity };
const RELIEF_S = 30; // it is not worked out anew before
function reliefCard() {
  if (!RELIEF.asked && performance.now() - RELIEF.at > 1000 * RELIEF_S) {
    Object.assign(RELIEF, { asked: true });
    fetch("/data/relief").then((answer) => (answer.ok ? answer.json() : answer.text().then((text) => ({ data: { found: null, why_not: text.trim() } })))).catch(() => null).then((answer) => {
      Object.assign(RELIEF, { asked: false, at: performance.now() }, answer ? answer.data : { why_not: "the server does not answer" });
      document.getElementById("relief-place")?.replaceChildren(...reliefParts());
    });
  }
  return card("What would help most", "The one change that lets most jobs start, of those that were tried.", [h("div", { id: "relief-place", "aria-live": "polite" }, ...reliefParts())], false, "relief");
}
function reliefParts() {
  const { found, why_not } = RELIEF;
  if (why_not === null) return [nothing("Cycles are being tried on changed copies of the cluster.")];
  if (!found) return [nothing(why_not ? `Not known: ${why_not}` : "These pages have no cluster to try changes on.")];
  const best = found.best_change, proof = h("p", { class: "about" }, `${counted(found.proof.trials, "change")} tried on the cluster of ${when(found.at)} UTC.`);
  if (!best) return [nothing(found.waiting.length ? "None of the changes that were tried lets a job start." : "No job waits."), proof];
  const asks = [best.gpus ? counted(best.gpus, "GPU") : null, best.cores ? counted(best.cores, "core") : null].filter((part) => part);
  return [h("p", {}, h("b", {}, best.text), `: ${counted(best.jobs, "job")} more would start${asks.length ? `, which ask for ${asks.join(" and ")}` : ""}.`), proof];
}
function closedList(kinds) {
  if (!kinds.length) return nothing("None.");
  return h("ul", { class: "notes" }, ...kinds.slice(0, 12).map((kind) => h("li", {}, h("b", {}, counted(kind.nodes, "node")), ` ${kind.why} `,
    h("span", { class: "soft" }, `(${kind.examples.join(", ")}${kind.nodes > kind.examples.length ? ", …" : ""})`))));
}
