// The results of a simulation: what is left of it when it has ended. Its report and its record have more.

async function simulationPage() {
  const { data } = await document_of("/data/overview");
  const spread = (found) => (found ? `${found.p50 === null ? `> ${duration(found.max)}` : duration(found.p50)}` : "–");
  const or = (value, say) => (value === null ? "–" : say(value));
  const tiles = h("div", { class: "tiles" },
    tile("Jobs done", or(data.completed, number), `of ${or(data.jobs, number)}, ${or(data.pending, number)} wait, ${or(data.running, number)} run`),
    tile("Median wait", spread(data.wait_s), data.wait_s ? `mean ${duration(data.wait_s.mean)}` : ""),
    tile("Median completion", spread(data.completion_s), "from arrival to the end"),
    tile("Fairness", or(data.fairness?.jain ?? null, number), "Jain's index over queues; 1 is even"),
    tile("Simulated", or(data.simulated_s, duration), `${or(data.cycles, number)} cycles, ending: ${or(data.ending, String)}`),
    tile("Pods", or(data.binds, number), `bound, ${or(data.evictions, number)} evicted`));
  const facts = h("dl", { class: "facts" }, ...[["policy", data.conf], ["inputs", (data.sources || []).join(", ")], ["nodes", or(data.nodes, number)], ["digest", data.digest]].map(([name, value]) =>
    h("div", {}, h("dt", {}, name), h("dd", { class: name === "digest" ? "digest" : null }, value || "–"))));
  return [card("Results of a simulation", "They have no cycle to look into: record one with pumice simulate --record DIR, and show DIR. Curves are in its report (--report).", [facts], true, "facts"),
    tiles, h("div", { class: "grid" }, useCard(data), reasonsCard(data)), resultQueues(data), resultJobs(data)];
}
function bars(rows) {
  return h("ul", { class: "bars" }, ...rows.map(([name, text, share]) => h("li", {}, h("div", { class: "text" }, h("span", {}, name), h("b", {}, text)),
    h("div", { class: "track" }, h("div", { class: "fill", style: { width: `${100 * clamp(share, 0, 1)}%` } })))));
}
function useCard(data) {
  const rows = Object.entries(data.utilisation || {}).map(([name, use]) => [name, `${percent(use.mean)} of ${number(use.capacity)} ${use.unit}, peak ${percent(use.peak)}`, use.mean]);
  return card("Utilisation", "Means over time of what the cluster had.", [rows.length ? bars(rows) : nothing("Not in the file.")], false, "used");
}
function reasonsCard(data) {
  const rows = (data.waits_by_code || []).map((each) => [`${each.code}: ${each.meaning}`, percent(each.share), each.share]);
  return card("Why jobs waited", "All the time that jobs waited, by what was nearest in their way.", [rows.length ? bars(rows.slice(0, 12)) : nothing("No job waited.")], false, "reasons");
}
function resultQueues(data) {
  const rows = Object.entries(data.queues || {});
  const of = (spread, name) => (spread ? (spread[name] === null ? `> ${duration(spread.max)}` : duration(spread[name])) : "–");
  const columns = [
    { name: "Queue", left: true, cell: ([name]) => name },
    ...["jobs", "completed", "running", "pending"].map((field) => ({ name: field, cell: ([, queue]) => number(queue[field]) })),
    { name: "mean share", cell: ([, queue]) => percent(queue.share) },
    { name: "deserved", cell: ([, queue]) => percent(queue.deserved) },
    ...["p50", "p90", "max"].map((part) => ({ name: `wait ${part}`, cell: ([, queue]) => of(queue.wait_s, part) })),
    { name: "completion p50", cell: ([, queue]) => of(queue.completion_s, "p50") },
  ];
  return card("Queues", "Of the whole time.", [rows.length ? table(columns, rows, { label: "Queues" }) : nothing("No queue.")], true, "queues");
}
function resultJobs(data) {
  const never = (data.never_run || []).map((job) => ({ ...job, never: true })), named = new Set(never.map((job) => job.job));
  const waiting = [...never, ...(data.waiting || []).filter((job) => !named.has(job.job))];
  const columns = [
    { name: "Job", left: true, cell: (job) => job.job },
    { name: "Queue", left: true, cell: (job) => job.queue },
    { name: "Pods", cell: (job) => number(job.pods) },
    { name: "Has waited", cell: (job) => (job.never ? "can never run" : duration(job.waited_s ?? null)) },
    { name: "Reason", left: true, cell: (job) => job.code || "–" },
    { name: "Why", left: true, prose: true, cell: (job) => job.why },
  ];
  return card("Jobs that wait at the end", "Those that can never run first.", [waiting.length ? table(columns, waiting, { label: "Jobs that wait at the end" }) : nothing("None.")], true, "jobs");
}
