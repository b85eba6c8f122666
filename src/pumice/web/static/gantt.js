// Gantt: jobs that ended, run and wait on one line of time, and what is expected of those that run.

const STATE_COLOURS = { ended: "var(--other)", runs: "var(--accent)", "partly runs": "var(--accent)", starts: "var(--good)", reserved: "var(--c4)", waits: "var(--mark)" };
const GANTT = { now: 0 };
async function ganttPage() {
  const given = parameters();
  const [{ data: choices }, { data }] = await Promise.all([document_of("/data/choices"), document_of(link("/data/gantt", { queue: given.queue, text: given.text }))]);
  addStarts(data, given);
  GANTT.now = data.now;
  const first = Math.min(data.now, ...data.rows.map((row) => row.created));
  const last = Math.max(data.now, data.reserves_from ?? 0, ...data.rows.map((row) => row.ends ?? row.start?.high ?? row.start?.middle ?? 0));
  const span = Math.max(last - first, 1);
  showTimeOf({ from: first, parts: 1, width_s: 1.02 * span });
  const go = (changes) => { history.pushState(null, "", link("/gantt", { ...given, ...changes })); refresh(); };
  const form = h("form", { class: "form", role: "search", onsubmit: (event) => { event.preventDefault(); go({ text: event.target.elements.text.value }); } },
    h("label", {}, "Part of the name", h("input", { name: "text", type: "search", value: given.text || "", maxlength: 200, onchange: (event) => go({ text: event.target.value }) })),
    h("label", {}, "Queue", h("select", { name: "queue", onchange: (event) => go({ queue: event.target.value }) },
      ...[["", "any"], ...choices.queues.map((name) => [name, name])].map(([value, text]) => h("option", { value, selected: value === (given.queue || "") ? "" : null }, text)))));
  const kept = data.reserves_from === null ? "" : ` The plugin reserve keeps room for the job that waits longest from ${when(data.reserves_from)} UTC on (dashed line).`;
  const more = Object.entries(data.left_out).filter(([, count]) => count).map(([kind, count]) => `${number(count)} more that ${kind}`).join(", ");
  const about = `Thin: it waits. Thick: it holds nodes; pale beyond now: until its end by its estimate.${kept} ${startsAbout()} ${more ? `Left out: ${more}.` : ""}`;
  const names = legend(Object.entries(STATE_COLOURS).filter(([state]) => data.rows.some((row) => row.state === state)).map(([state, colour]) => [state, colour]).concat(data.rows.some((row) => row.start && row.start.middle !== null) ? [["expected start", "var(--good)"]] : []));
  return [card("Jobs over time", "Those that run and wait longest, and the last that ended since these pages were started.", [form], true, "filter"),
    timeControls([{ values: holdersOver(data.rows), colour: "var(--accent)" }]), figure("Gantt", about, [names, data.rows.length ? ganttPlot(data) : nothing("No job matches.")], { wide: true, id: "gantt" }), startChecksCard()];
}
// Expected starts take a while to work out: the page is shown without them, or with those of before, and again when
// they are there.
const STARTS = { of: new Map(), basis: null, about: null, asked: false, isLost: false };
function addStarts(data, given) {
  const about = JSON.stringify([given.queue, given.text]);
  for (const row of data.rows) if (["waits", "reserved"].includes(row.state)) row.start = STARTS.of.get(row.name) ?? null;
  if (STARTS.asked || (STARTS.about === about && STARTS.number === NUMBER)) return;
  STARTS.asked = true;
  const number = NUMBER;
  fetch(link("/data/gantt", { queue: given.queue, text: given.text, starts: 1 })).then((answer) => (answer.ok ? answer.json() : null)).catch(() => null).then((found) => {
    const old = JSON.stringify([STARTS.basis, STARTS.about]);
    Object.assign(STARTS, { asked: false, about: found ? about : null, number, isLost: !found });
    if (!found) { setTimeout(() => { if (location.pathname === "/gantt") renew(); }, 20000); return; }
    STARTS.basis = found.data.basis;
    STARTS.of = new Map(found.data.rows.filter((row) => row.start).map((row) => [row.name, row.start]));
    if (location.pathname === "/gantt" && JSON.stringify([STARTS.basis, about]) !== old) renew();
  });
}
function startsAbout() {
  if (STARTS.isLost) return "When waiting jobs are expected to start could not be asked: trying again.";
  const basis = STARTS.basis;
  if (STARTS.about === null) return "When waiting jobs are expected to start is being worked out.";
  const [first] = STARTS.of.values();
  if (!basis) return first ? `Expected starts are ${startWords(first)}.` : "Expected starts are not worked out here: pumice explain --starts does, on a snapshot.";
  return `Frame: the expected start of a job that waits is within it with a probability of 80 %; bar in it: the middle, of ${counted(basis.samples, "simulation")} of ${duration(basis.until_s)} from ${when(basis.at)} UTC on.`;
}
function ganttPlot(data) {
  const rows = data.rows, now = data.now - ORIGIN;
  return plot((width) => {
    const narrow = width < 640, high = narrow ? 32 : 20, left = narrow ? 2 : 200, right = width - 12, top = 4, bottom = top + high * rows.length + 4;
    const x = scale(VIEW.from, VIEW.to, left, right), within = (time) => x(clamp(time, VIEW.from, VIEW.to)), sees = (time) => time >= VIEW.from && time <= VIEW.to;
    const upright = (time, kind, dashes) => (sees(time) ? s("line", { class: kind, x1: x(time), x2: x(time), y1: top, y2: bottom, "stroke-dasharray": dashes }) : null);
    const mark = s("rect", { class: "band", x: 0, width, height: high, visibility: "hidden" });
    const svg = s("svg", { width, height: bottom + 26, role: "img", tabindex: 0, "aria-label": `${counted(rows.length, "job")} over time, from ${rows[0].shown} on` },
      ...timeAxis(x, bottom, right - left), s("rect", { class: "future", x: within(now), width: Math.max(0, right - within(now)), y: top, height: bottom - top }), mark,
      ...rows.flatMap((row, i) => ganttBars(row, top + i * high, high, { within, left, narrow, now })),
      upright(now, "now", null), data.reserves_from === null ? null : upright(data.reserves_from - ORIGIN, "now", "4 3"));
    const at = (_, py) => (py < top || py > bottom ? null : clamp(Math.floor((py - top) / high), 0, rows.length - 1));
    const show = (i, px, py) => {
      mark.setAttribute("y", top + i * high);
      mark.setAttribute("visibility", "visible");
      const box = svg.getBoundingClientRect();
      showTip(px ?? box.left + left + 40, py ?? box.top + top + high * (i + 0.5), rows[i].shown, ganttFacts(rows[i], data.now));
    };
    explore(svg, 0, rows.length - 1, at, show, () => mark.setAttribute("visibility", "hidden"));
    return [svg];
  });
}
function ganttBars(row, y, high, { within, left, narrow, now }) {
  const middle = y + high - (narrow ? 9 : 10), colour = STATE_COLOURS[row.state] || "var(--other)", moment = (time) => (time === null ? null : time - ORIGIN);
  const bar = (from, to, thick, fill, opacity) => (to > VIEW.from && from < VIEW.to
    ? s("rect", { x: within(from), width: Math.max(1, within(to) - within(from)), y: middle - thick / 2, height: thick, rx: 2, fill, "fill-opacity": opacity }) : null);
  const until = moment(row.ended) ?? now;
  return [
    narrow ? s("text", { x: left, y: y + 13, class: "strong" }, shortened(row.shown, 44)) : s("text", { x: left - 10, y: middle + 4, "text-anchor": "end", class: "strong" }, shortened(row.shown, 28)),
    ...pastParts(row).map(([from, to, label]) => (label === "holds" ? bar(from - ORIGIN, to - ORIGIN, 11, row.state === "ended" ? "var(--other)" : "var(--accent)", 1)
      : bar(from - ORIGIN, to - ORIGIN, 4, label === "reserved" ? "var(--c4)" : "var(--mark)", label === "no pods" ? 0.3 : 0.8))),
    row.state === "starts" ? bar(until - (VIEW.to - VIEW.from) / 150, until, 11, colour, 1) : null,
    row.ends !== null && moment(row.ends) > now ? bar(now, moment(row.ends), 11, colour, 0.3) : null,
    ...(row.start && row.start.middle !== null ? expectedBars(row.start, middle, { within, moment }) : []),
  ].filter((part) => part);
}
// [from, to, label] of a job up to now: what was seen of it, and before that what its times say.
function pastParts(row) {
  const over = ["ended", "gone"], now = ORIGIN + END, until = row.ended ?? GANTT.now, found = [], first = row.moments[0]?.[0] ?? until;
  const started = row.started === null ? null : Math.min(row.started, first);
  const ran = started !== null && started < first;
  found.push([row.created, ran ? started : Math.min(first, now), "waits"]);
  if (ran) found.push([started, first, "runs"]);
  row.moments.forEach(([at, label], i) => { if (!over.includes(label)) found.push([at, Math.min(row.moments[i + 1]?.[0] ?? until, until), label]); });
  const kind = (label) => (HELD_LABELS.includes(label) ? "holds" : label === "reserved" || label === "no pods" ? label : "waits");
  return found.filter(([from, to]) => to > from).reduce((merged, [from, to, label]) => {
    const last = merged[merged.length - 1];
    if (last && last[2] === kind(label) && last[1] === from) last[1] = to;
    else merged.push([from, to, kind(label)]);
    return merged;
  }, []);
}
// How many of the rows hold nodes, for the strip above: means over equal parts of the time that is shown.
const STRIP_PARTS = 200;
function holdersOver(rows) {
  const parts = Array(STRIP_PARTS).fill(0), part = END / STRIP_PARTS;
  for (const row of rows) {
    for (const [from, to, label] of pastParts(row)) {
      if (label !== "holds") continue;
      for (let i = Math.max(0, Math.floor((from - ORIGIN) / part)); i < STRIP_PARTS && i * part < to - ORIGIN; i++) parts[i] += 1;
    }
  }
  const most = Math.max(1, maximum(parts));
  return parts.map((count) => count / most);
}
// Of a record: starts that were expected at some of its cycles, and those that it then has.
const TOLD = { found: null, why_not: null, asked: false };
function startChecksCard() {
  if (!TOLD.asked && !TOLD.found) {
    TOLD.asked = true;
    fetch("/data/start-checks").then((answer) => (answer.ok ? answer.json() : null)).catch(() => null).then((answer) => {
      Object.assign(TOLD, answer ? answer.data : { why_not: "" });
      document.getElementById("start-checks-place")?.replaceChildren(...startCheckParts());
    });
  }
  return h("div", { id: "start-checks-place", "aria-live": "polite" }, ...startCheckParts());
}
function startCheckParts() {
  const { found, why_not } = TOLD;
  if (!found) return why_not ? [card("Expected against real starts", "", [nothing(`Not yet: ${why_not}`)], true, "start-checks")] : [];
  const moments = found.moments.map((at) => when(at)).join(", ");
  const about = found.started
    ? `At ${moments} UTC the record was simulated on. Of ${counted(found.expected, "start")} that were expected then, ${number(found.started)} happened in the record, ${number(found.within)} of these within their 80 % interval; the median error is ${duration(found.median_error_s)}.`
    : `At ${moments} UTC the record was simulated on. None of the ${number(found.expected)} starts that were expected then happened before it ends.`;
  const columns = [
    { name: "Job", left: true, cell: (row) => jobLink(row.job) }, { name: "Predicted at (UTC)", left: true, cell: (row) => when(row.at) }, { name: "Expected", left: true, cell: (row) => when(row.middle) },
    { name: "80 %", left: true, cell: (row) => `${when(row.low)} to ${row.high === null ? "later than simulated" : when(row.high)}` },
    { name: "Started", left: true, cell: (row) => (row.started === null ? "not in the record" : when(row.started)) },
    { name: "Error", cell: (row) => (row.started === null ? "–" : `${row.middle > row.started ? "+" : "−"}${duration(Math.abs(row.middle - row.started))}`) }];
  const more = found.left_out ? [h("p", { class: "about" }, `${number(found.left_out)} more are left out.`)] : [];
  return [card("Expected against real starts", about, found.rows.length ? [table(columns, found.rows, { label: "Expected and real starts" }), ...more] : [], true, "start-checks")];
}
// Beyond the time that was simulated nothing is known: the frame is open there, until the end of the picture.
function expectedBars(start, middle, { within, moment }) {
  const [low, high] = [moment(start.low ?? start.middle), start.high === null ? VIEW.to : moment(start.high)], at = moment(start.middle);
  const sees = (from, to) => to >= VIEW.from && from <= VIEW.to;
  return [
    sees(low, high) ? s("rect", { class: "expected", x: within(low) - 1, width: Math.max(2, within(high) - within(low) + 2), y: middle - 6, height: 12, rx: 2 }) : null,
    sees(at, at) ? s("rect", { x: within(at) - 1, width: 3, y: middle - 6, height: 12, fill: "var(--good)" }) : null,
  ];
}
// The start of a job in words: when, with its interval, or why that is not known.
function startWords(start) {
  if (!start) return "";
  if (start.why_not) return `not known: ${start.why_not}`;
  if (start.middle === null) return "not within the time that was simulated";
  return `about ${when(start.middle)} UTC; 80 %: ${when(start.low)} to ${start.high === null ? "not within the time that was simulated" : when(start.high)}`;
}
function ganttFacts(row, now) {
  const facts = [[STATE_COLOURS[row.state], "state", row.state], [null, "queue", row.queue], [null, "came", when(row.created)]];
  if (row.started !== null) facts.push([null, "started", when(row.started)]);
  if (row.ended !== null) facts.push([null, "was gone at", when(row.ended)]);
  if (row.ends !== null) facts.push([null, row.ends < now ? "should have ended" : "ends by its estimate", when(row.ends)]);
  if (row.start) facts.push([null, "expected to start", shortened(startWords(row.start), 100)]);
  if (row.code) facts.push([null, row.code, shortened(row.sentence, 80)]);
  return facts;
}
