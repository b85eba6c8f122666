// Jobs: filtered, sorted and grouped by the server; what is asked for is in the address.

const JOBS_SHOWN = 100;
async function jobsPage() {
  const given = parameters();
  const [{ data: choices }, { data }] = await Promise.all([document_of("/data/choices"), document_of(link("/data/jobs", { ...given, rows: given.group ? "" : JOBS_SHOWN }))]);
  const go = (changes) => { history.pushState(null, "", link("/jobs", { ...given, offset: "", ...changes })); refresh(); };
  const field = (name, label, options) => h("label", {}, label, h("select", { name, onchange: (event) => go({ [name]: event.target.value }) },
    ...options.map(([value, text]) => h("option", { value, selected: value === (given[name] || "") ? "" : null }, text))));
  const any = (names) => [["", "any"], ...names.map((name) => [name, name])];
  const form = h("form", { class: "form", role: "search", onsubmit: (event) => { event.preventDefault(); go({ text: event.target.elements.text.value }); } },
    h("label", {}, "Part of the name", h("input", { name: "text", type: "search", value: given.text || "", maxlength: 200, onchange: (event) => go({ text: event.target.value }) })),
    field("queue", "Queue", any(choices.queues)), field("state", "State", any(choices.states)),
    field("code", "Reason", any([...new Set([...choices.codes, ...(given.code ? [given.code] : [])])])),
    field("group", "Group by", [["", "nothing"], ["queue", "queue"], ["state", "state"], ["reason", "reason"]]));
  const about = `${counted(data.matching, "job")} of ${number(data.total)}.`;
  return [card("Jobs", about, [form], true, "filter"), given.group ? groupsCard(data, given, go) : rowsCard(data, given, go)];
}
function sortable(name, key, given, go, more) {
  const now = (given.sort || "name") === key, down = given.order === "down";
  return { name, ...more, sorted: now ? (down ? "descending" : "ascending") : "none", sort: () => go({ sort: key, order: now && !down ? "down" : "up" }) };
}
function rowsCard(data, given, go) {
  if (!data.rows.length) return card("No job matches", "", [], true, "jobs");
  const columns = [
    sortable("Job", "name", given, go, { left: true, cell: (job) => jobLink(job.name, job.shown) }),
    sortable("Queue", "queue", given, go, { left: true, cell: (job) => job.queue }),
    sortable("State", "state", given, go, { left: true, cell: (job) => stateWord(job.state) }),
    sortable("Pods", "pods", given, go, { cell: (job) => `${number(job.running)} of ${number(job.pods)}` }),
    { name: "Minimum", cell: (job) => number(job.minimum) },
    sortable("Waiting pods ask for", "devices", given, go, { left: true, cell: (job) => amounts(job.asks) }),
    sortable("Priority", "priority", given, go, { cell: (job) => number(job.priority) }),
    sortable("Age", "created", given, go, { cell: (job) => age(job.created) }),
    sortable("Reason", "reason", given, go, { left: true, prose: true, cell: (job) => (job.code ? [h("span", { class: "code" }, job.code), ` ${job.sentence}`] : "–") }),
  ];
  const last = data.offset + data.rows.length;
  const step = (text, offset, there) => h("button", { type: "button", class: "plain", disabled: there ? null : "", onclick: () => go({ offset: offset || "" }) }, text);
  const pager = h("div", { class: "pager" }, `${number(data.offset + 1)} to ${number(last)} of ${number(data.matching)}`,
    step("Previous", Math.max(0, data.offset - JOBS_SHOWN), data.offset > 0), step("Next", last, last < data.matching));
  return card("", "", [table(columns, data.rows, { label: "Jobs" }), pager], true, "jobs");
}
function groupsCard(data, given, go) {
  const columns = [
    { name: given.group, left: true, cell: (group) => h("a", { href: link("/jobs", { ...given, group: "", [given.group === "reason" ? "code" : given.group]: group.name }) }, group.name || "does not wait") },
    { name: "Jobs", cell: (group) => number(group.jobs) },
    { name: "That wait", cell: (group) => number(group.waiting) },
    { name: "Waiting pods ask for", left: true, cell: (group) => amounts(group.asks) },
  ];
  return card("", "", [data.groups.length ? table(columns, data.groups, { label: `Jobs by ${given.group}` }) : nothing("No job matches.")], true, "jobs");
}
