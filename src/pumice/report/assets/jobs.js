// Jobs as bars: the time they waited, by what for, and the time they ran. Search for one.

const GANTT_ROWS = 40;
const isNever = (i) => String(i) in DATA.jobs.never;
const startOf = (i) => (DATA.jobs.wait[i] === null ? null : DATA.jobs.submitted[i] + DATA.jobs.wait[i]);
const endOfJob = (i) => (DATA.jobs.run[i] === null ? END : startOf(i) + DATA.jobs.run[i]);
const ranFor = (i) => (startOf(i) === null ? 0 : endOfJob(i) - startOf(i));
const stateOf = (i) => (DATA.jobs.ended[i] ? "done" : isNever(i) ? "can never run" : startOf(i) === null ? "waits" : "runs");
const ORDERS = [
  ["longest", (i) => endOfJob(i) - DATA.jobs.submitted[i]],
  ["ran longest", ranFor],
  ["waited longest", waitedSoFar],
  ["never ran", (i) => (startOf(i) === null ? END - DATA.jobs.submitted[i] + (isNever(i) ? END : 0) : -1)],
];

// At most GANTT_ROWS jobs of the time and queue that is looked at, first by arrival; one that was searched for is among them.
function ganttJobs(order) {
  const score = ORDERS[order][1];
  const fitting = allJobs().filter((i) => ofQueue(i) && DATA.jobs.submitted[i] <= VIEW.to && endOfJob(i) >= VIEW.from && score(i) >= 0);
  const chosen = fitting.sort((a, b) => score(b) - score(a) || a - b).slice(0, GANTT_ROWS);
  if (VIEW.job !== null && !chosen.includes(VIEW.job)) chosen.splice(Math.max(0, Math.min(chosen.length, GANTT_ROWS) - 1), 1, VIEW.job);
  return chosen.sort((a, b) => DATA.jobs.submitted[a] - DATA.jobs.submitted[b] || a - b);
}

function ganttChart() {
  let order = 0;
  const key = () => [VIEW.from, VIEW.to, VIEW.queue, VIEW.job, order];
  const chart = plot((width) => {
    const jobs = ganttJobs(order);
    if (!jobs.length) return [nothing(DATA.jobs.names.length ? "No job fits what is looked at." : "No job has come.")];
    const narrow = width < 640, row = narrow ? 32 : 20, left = narrow ? 2 : 190, right = width - 12, top = 4;
    const bottom = top + row * jobs.length + 4, x = scale(VIEW.from, VIEW.to, left, right);
    const axis = timeTicks(VIEW.from, VIEW.to, timeStep(VIEW.to - VIEW.from, Math.max(2, Math.floor((right - left) / 108))));
    const svg = s("svg", { width, height: bottom + 26, role: "img", tabindex: 0, "aria-label": `${counted(jobs.length, "job")}: ${ORDERS[order][0]}, from ${DATA.jobs.names[jobs[0]]} on` },
      ...axis.map((time) => s("line", { class: "gridline", x1: x(time), x2: x(time), y1: top, y2: bottom })), ...timeAxis(x, bottom, right - left));
    const mark = s("rect", { class: "band", x: 0, width, height: row, visibility: "hidden" });
    svg.append(mark, ...jobs.map((job, i) => ganttRow(job, top + i * row, row, x, left, narrow)));
    const at = (_, py) => (py < top || py > bottom ? null : clamp(Math.floor((py - top) / row), 0, jobs.length - 1));
    const show = (i, px, py) => {
      mark.setAttribute("y", top + i * row);
      mark.setAttribute("visibility", "visible");
      const box = svg.getBoundingClientRect();
      showTip(px ?? box.left + left + 40, py ?? box.top + top + row * (i + 0.5), DATA.jobs.names[jobs[i]], jobFacts(jobs[i]));
    };
    explore(svg, 0, jobs.length - 1, at, show, () => mark.setAttribute("visibility", "hidden"));
    return [svg];
  });
  const names = live(key, () => ganttLegend(ganttJobs(order)));
  const side = choice("which jobs", ORDERS.map(([name]) => name), 0, (place) => { order = place; names.renew(); if (chart.drawnWidth) chart.draw(chart.drawnWidth); });
  return figure("Jobs", `At most ${GANTT_ROWS} jobs. Thick: its gang ran, in the colour of its queue; an arrow: it still does. Thin: it waited, in the colour of what for; a cross: it can never run.`,
    [names, chart], { wide: true, id: "gantt", side });
}
function ganttLegend(jobs) {
  const queues = [...new Set(jobs.filter((i) => startOf(i) !== null).map((i) => (DATA.colours.includes(jobQueue(i)) ? jobQueue(i) : OTHERS)))];
  queues.sort((a, b) => (a === OTHERS) - (b === OTHERS) || (a < b ? -1 : 1));
  const codes = [...new Set(jobs.flatMap((i) => DATA.jobs.waits[i].filter((_, place) => place % 2)))].sort((a, b) => a - b);
  const named = codes.filter((code) => code < REASON_COLOURS).map((code) => [DATA.jobs.codes[code], reasonColour(code), "rule"]);
  if (codes.some((code) => code >= REASON_COLOURS)) named.push(["other reasons", reasonColour(-1), "rule"]);
  return [legend(queues.map((name) => [name, queueColour(name)])), legend(named)];
}
// [since, until, code] of a job's wait; -1 while no cycle considered it.
function waitSegments(i) {
  const waits = DATA.jobs.waits[i], until = startOf(i) ?? endOfJob(i), found = [];
  const moments = [];
  for (let k = 0; k < waits.length; k += 2) moments.push([waits[k], waits[k + 1]]);
  if (!moments.length || moments[0][0] > DATA.jobs.submitted[i]) moments.unshift([DATA.jobs.submitted[i], moments.length ? moments[0][1] : -1]);
  moments.forEach(([since, code], k) => found.push([since, k + 1 < moments.length ? moments[k + 1][0] : until, code]));
  return found.filter(([since, to]) => to > since);
}
function ganttRow(job, y, row, x, left, narrow) {
  const middle = y + row - (narrow ? 9 : 10), name = DATA.jobs.names[job], start = startOf(job), end = endOfJob(job);
  const within = (time) => x(clamp(time, VIEW.from, VIEW.to)), running = start !== null && DATA.jobs.run[job] === null;
  const style = VIEW.job === job ? "strong found" : "strong";
  const label = narrow
    ? s("text", { x: left, y: y + 13, class: style }, shortened(name, 44))
    : s("text", { x: left - 10, y: middle + 4, "text-anchor": "end", class: style }, shortened(name, 27));
  const waits = waitSegments(job).filter(([since, to]) => to > VIEW.from && since < VIEW.to).map(([since, to, code]) =>
    s("rect", { x: within(since), width: Math.max(0.75, within(to) - within(since)), y: middle - 2, height: 4, fill: reasonColour(code) }));
  const ran = start !== null && end > VIEW.from && start < VIEW.to;
  return s("g", {}, VIEW.job === job ? s("rect", { class: "found", x: 0, y, width: x(VIEW.to) + 12, height: row }) : null, label, ...waits,
    ran ? s("rect", { x: within(start), width: Math.max(2, within(end) - within(start)), y: middle - 5.5, height: 11, rx: 2.5, fill: queueColour(jobQueue(job)) }) : null,
    running && ran && VIEW.to >= END ? s("path", { d: `M${x(END)},${middle - 7.5}l8,7.5l-8,7.5z`, fill: queueColour(jobQueue(job)) }) : null,
    isNever(job) && VIEW.to >= END ? s("path", { class: "never", d: `M${x(END) - 4},${middle - 5}l10,10m0,-10l-10,10` }) : null);
}
function jobFacts(i) {
  const facts = [[queueColour(jobQueue(i)), "queue", jobQueue(i)], [null, "pods", number(DATA.jobs.pods[i])],
    [null, "arrived at", moment(DATA.jobs.submitted[i], 1)], [null, startOf(i) === null ? "has waited" : "waited", duration(waitedSoFar(i))]];
  const longest = {};
  for (const [since, until, code] of waitSegments(i)) if (code >= 0) longest[code] = (longest[code] || 0) + until - since;
  Object.entries(longest).sort((a, b) => b[1] - a[1]).slice(0, 3).forEach(([code, seconds]) =>
    facts.push([reasonColour(Number(code)), `for: ${DATA.jobs.codes[code]}`, duration(seconds)]));
  if (startOf(i) !== null) facts.push([null, DATA.jobs.run[i] === null ? "has run" : "ran", duration(ranFor(i))]);
  if (DATA.jobs.nodes[i]) facts.push([null, "on", DATA.jobs.nodes[i]]);
  if (DATA.jobs.restarts[i]) facts.push([null, "started over", counted(DATA.jobs.restarts[i], "time")]);
  if (isNever(i)) facts.push(["var(--bad)", "can never run", DATA.jobs.never[i]]);
  return facts;
}

// -- search

const MATCHES_MAX = 10;
function jobSearch() {
  const list = h("ul", { class: "matches", role: "listbox", id: "matches", hidden: "" });
  const input = h("input", { type: "search", placeholder: "find a job", "aria-label": "find a job by a part of its name", autocomplete: "off", spellcheck: "false",
    role: "combobox", "aria-expanded": "false", "aria-controls": "matches" });
  let found = [], place = 0;
  const close = () => { list.hidden = true; input.setAttribute("aria-expanded", "false"); };
  const take = (job) => { input.value = DATA.jobs.names[job]; close(); look({ job }); };
  function offer() {
    const text = input.value.trim().toLowerCase();
    found = [];
    for (let i = 0; text && i < DATA.jobs.names.length && found.length < MATCHES_MAX; i++) if (DATA.jobs.names[i].toLowerCase().includes(text)) found.push(i);
    place = 0;
    if (!text) { close(); return look({ job: null }); }
    const rows = found.map((job, i) => h("li", { role: "option", "aria-selected": i === place, onpointerdown: (event) => { event.preventDefault(); take(job); } },
      h("span", {}, DATA.jobs.names[job]), h("small", {}, `${jobQueue(job)} · ${stateOf(job)}`)));
    list.replaceChildren(...(rows.length ? rows : [h("li", { class: "soft" }, "no job has that in its name")]));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
  }
  input.addEventListener("input", offer);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return close();
    if (event.key === "Enter" && found.length) return take(found[place]);
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!by || !found.length) return;
    event.preventDefault();
    place = (place + by + found.length) % found.length;
    [...list.children].forEach((row, i) => row.setAttribute("aria-selected", i === place));
  });
  return h("div", { class: "search" }, input, list);
}
function jobCard() {
  return live(() => VIEW.job, () => {
    if (VIEW.job === null) return null;
    const job = VIEW.job, from = DATA.jobs.submitted[job], to = endOfJob(job), around = Math.max(0.1 * (to - from), END / 500);
    return h("section", { class: "card wide", id: "job" },
      h("div", { class: "head" }, h("h2", {}, DATA.jobs.names[job]), h("div", { class: "choice" },
        h("button", { type: "button", onclick: () => look({ from: from - around, to: to + around }) }, "show its time"),
        h("button", { type: "button", "aria-label": "no job", onclick: () => { document.querySelector(".search input").value = ""; look({ job: null }); } }, "×"))),
      h("dl", { class: "facts" }, ...[[null, "state", stateOf(job)], ...jobFacts(job)].map(([colour, name, value]) => h("div", {},
        h("dt", {}, colour ? h("i", { class: "swatch", style: { background: colour } }) : null, name), h("dd", {}, value)))));
  }, "div", { class: "wide" });
}
