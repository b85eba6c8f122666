// Cycles: where their time went, faults of plugins, searches that were ended.

const CYCLES_SHOWN = 50;
const taken = (seconds) => (seconds < 1 ? `${number(1000 * seconds)} ms` : duration(seconds));
const isPlugin = (name) => name.startsWith("plugin ");
async function cyclesPage() {
  const { data } = await document_of("/data/cycles");
  showTimeOf(data);
  const total = (values) => sum(values), { counts } = data, cycles = total(counts.cycles);
  const names = Object.keys(data.spans), parts = names.filter((name) => !isPlugin(name)), seconds = total(parts.map((name) => total(data.spans[name])));
  const slowest = maximum([0, ...data.longest]);
  const tiles = h("div", { class: "tiles" },
    tile("Cycles", number(cycles), `in ${duration(END)}`),
    tile("Mean time", parts.length ? taken(seconds / Math.max(cycles, 1)) : "–", parts.length ? `${percent(seconds / END)} of the time of one core` : "not measured here"),
    tile("Longest", parts.length ? taken(slowest) : "–", ""),
    tile("Pods", number(total(counts.bound)), `bound, ${number(total(counts.evicted))} evicted`),
    tile("Searches ended", number(total(counts.cuts)), "before they could tell"),
    tile("Plugin faults", number(total(counts.faults)), data.faults.length ? "see below" : "none"));
  const faults = data.faults.length
    ? h("ul", { class: "notes" }, ...data.faults.map((fault) => h("li", {}, h("b", {}, fault.plugin), `: ${fault.text} `, h("span", { class: "soft" }, `(${counted(fault.count, "time")}, last in cycle ${number(fault.cycle)}: ${fault.subject})`))))
    : nothing("None.");
  return [tiles, ...timeParts(data, parts, names.filter(isPlugin)),
    card("Plugin faults", "If a plugin fails, the job that it was asked about is skipped in that cycle. Different ones, the last first.", [faults], true, "faults"),
    cyclesCard(data)];
}
function timeParts(data, parts, plugins) {
  if (!parts.length) return [card("Where the time went", "", [nothing("Times of this cycle were not measured: a scheduler that runs and a record have them.")], true, "times")];
  if (!hasCurves(data)) return [card("Where the time went", "", [spansTable(data, parts, "Part")], true, "times")];
  const most = Math.max(1e-9, maximum(data.longest));
  const strip = timeControls([{ values: data.longest.map((each) => each / most), colour: "var(--accent)" }]);
  const curves = parts.map((name, i) => ({ name, colour: i < 7 ? `var(--c${i})` : "var(--other)", values: data.spans[name].map((each) => (1000 * each) / data.width_s) }));
  const rows = (time) => curves.map((curve) => [curve.colour, curve.name, `${number(valueAt(curve, time) || 0)} ms`]).reverse();
  const chart = timeChart(() => ({ height: 240, stacked: true, least: 1e-9, format: number, axisLabel: "ms of each second", curves, rows, label: "Time of cycles by part" }));
  const figures = [figure("Where the time went", `Of each second, by part of the cycle. ${grain(data)}`, [legend(curves.map((curve) => [curve.name, curve.colour])), chart], { wide: true, id: "times" })];
  const counts = [["bound", "var(--accent)"], ["evicted", "var(--mark)"], ["faults", "var(--bad)"], ["cuts", "var(--c4)"]].map(([name, colour]) => ({ name: name === "cuts" ? "searches ended" : name, colour, values: data.counts[name] }));
  return [strip, ...figures, h("div", { class: "grid" },
    card("By part", "Of the time that pictures show.", [live(() => [VIEW.from, VIEW.to], () => spansTable(data, parts, "Part"))], false, "parts"),
    card("Of that in plugins", "Opening and closing them; hooks that are asked later count for the action.", [plugins.length ? live(() => [VIEW.from, VIEW.to], () => spansTable(data, plugins, "Plugin")) : nothing("No plugin does anything then.")], false, "plugins"),
    timeFigure("Decisions and troubles", "In each part of time.", counts, number, { id: "counts", wide: true }))];
}
function spansTable(data, names, what) {
  const of = (values) => sum(valuesSeen({ values })), cycles = Math.max(1, of(data.counts.cycles));
  const rows = names.map((name) => ({ name: name.replace("plugin ", ""), seconds: of(data.spans[name]) })).sort((a, b) => b.seconds - a.seconds);
  const all = sum(Object.keys(data.spans).filter((name) => !isPlugin(name)).map((name) => of(data.spans[name])));
  return table([
    { name: what, left: true, cell: (row) => row.name },
    { name: "Time", cell: (row) => taken(row.seconds) },
    { name: "Of all", cell: (row) => percent(all > 0 ? row.seconds / all : 0) },
    { name: "A cycle", cell: (row) => taken(row.seconds / cycles) },
  ], rows, { label: `Time by ${what.toLowerCase()}` });
}
function cyclesCard(data) {
  const longestPart = (cycle) => Object.entries(cycle.spans).filter(([name]) => !isPlugin(name)).sort((a, b) => b[1] - a[1])[0];
  const columns = [
    { name: "Cycle", left: true, cell: (cycle) => number(cycle.number) },
    { name: "At (UTC)", left: true, cell: (cycle) => when(cycle.at) },
    { name: "Time", cell: (cycle) => (longestPart(cycle) ? taken(cycle.seconds) : "–") },
    { name: "Most of it in", left: true, cell: (cycle) => (longestPart(cycle) ? longestPart(cycle)[0] : "–") },
    { name: "Bound", cell: (cycle) => number(cycle.bound) },
    { name: "Evicted", cell: (cycle) => number(cycle.evicted) },
    { name: "Faults", cell: (cycle) => number(cycle.faults) },
    { name: "Searches ended", cell: (cycle) => number(cycle.cuts) },
  ];
  return card("The last cycles", `The newest first, at most ${CYCLES_SHOWN}.`, [table(columns, data.cycles.slice(0, CYCLES_SHOWN), { label: "The last cycles" })], true, "cycles");
}
