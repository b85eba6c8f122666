// Job: what it is, what is in its way, checked by trials, and what would help.

async function jobPage() {
  const { name } = parameters();
  const { data } = await document_of(link("/data/job", { name }));
  const { job } = data;
  if (!job) {
    document.title = `${name} · Pumice`;
    return [card(name, "This job is there no more.", [], true, "facts"), timeCard(data.time)];
  }
  document.title = `${job.shown} · Pumice`;
  const facts = [["queue", job.queue], ["pods", `${number(job.pods)}, ${number(job.running)} with a node, ${number(job.waiting)} waiting, minimum ${number(job.minimum)}`],
    ["priority", number(job.priority)], ["age", age(job.created)], ["holds", amounts(job.holds)], ["asks for", amounts(job.asks)]];
  const head = card(job.shown, "", [h("p", {}, stateWord(job.state), job.code ? ` ${job.code}: ${job.sentence}` : ""),
    h("dl", { class: "facts" }, ...facts.map(([what, value]) => h("div", {}, h("dt", {}, what), h("dd", {}, value))))], true, "facts");
  const place = h("div", { "aria-live": "polite" });
  const past = timeCard(data.time), pods = card("Pods", "", [data.pods.length ? podTable(data, ["node"]) : nothing("None yet.")], true, "pods");
  const expected = h("div", { "aria-live": "polite" });
  if (job.code) explain(name, place);
  if (job.code) expect(name, expected);
  return [head, expected, place, past, pods];
}
// A colour for each state and each reason, the same in the bar and in its legend.
function labelColour(label) {
  if (HELD_LABELS.includes(label)) return "var(--good)";
  if (["ended", "gone", "no pods"].includes(label)) return "var(--other)";
  return label === "waits" ? "var(--mark)" : label === "reserved" ? "var(--c4)" : `var(--w${[...label].reduce((mix, char) => (mix * 31 + char.charCodeAt(0)) % 6, 7)})`;
}
const HELD_LABELS = ["starts", "partly runs", "runs"];
const STORY_SHOWN = 40;
function timeCard(time) {
  const about = "What it was, and for which reason it waited, as far as these pages have followed it.";
  if (!time || !time.moments.length) return card("Over time", about, [nothing(time ? "What happened was so long ago that it is no longer kept." : "It is not followed: there are too many jobs, or it has only just come.")], true, "time");
  const parts = Object.entries(time.seconds), total = sum(parts.map(([, seconds]) => seconds));
  const bar = h("div", { class: "states", role: "img", "aria-label": parts.map(([label, seconds]) => `${label} ${duration(seconds)}`).join(", ") || "no time has passed" },
    ...parts.map(([label, seconds]) => h("i", { style: { "flex-grow": seconds, background: labelColour(label) } })));
  const names = legend(parts.map(([label, seconds]) => [`${label}: ${duration(seconds)} (${percent(total > 0 ? seconds / total : 0)})`, labelColour(label)]));
  const moments = time.moments.slice(-STORY_SHOWN).reverse();
  const story = h("ol", { class: "story" }, ...moments.map(([at, label]) => h("li", {}, h("time", {}, `${when(at)} UTC`), stateOrReason(label))));
  const left = time.moments.length - moments.length;
  return card("Over time", about, [...(total > 0 ? [bar, names] : []), story, left || !time.is_whole ? h("p", { class: "about" }, "What was before is not shown.") : null].filter((part) => part), true, "time");
}
const stateOrReason = (label) => (/^[A-Z]/.test(label) ? h("span", {}, "waits: ", h("span", { class: "code" }, label)) : label);
async function expect(name, place) {
  const shown = (about) => place.replaceChildren(card("Expected start", about, [], true, "start"));
  shown("The cluster is being simulated on.");
  try {
    const { data } = await document_of(link("/data/job", { name, starts: 1 }));
    if (!data.start) return shown("These pages have no cluster to simulate on: pumice explain --starts does, on a snapshot.");
    const basis = data.basis ? ` By ${counted(data.basis.samples, "simulation")} of ${duration(data.basis.until_s)} from ${when(data.basis.at)} UTC on.` : "";
    return shown(capital(`${data.start.why_not ? "" : "it is expected to start: "}${startWords(data.start)}.${basis}`).replace("It is expected to start: not within", "It is not expected to start within"));
  } catch (trouble) {
    return shown(`This could not be worked out: ${trouble.message}`);
  }
}
async function explain(name, place) {
  place.replaceChildren(card("Why it waits", "Cycles are being tried on changed copies of the cluster.", [], true, "why"));
  try {
    const { data } = await document_of(link("/data/job", { name, explain: 1 }));
    place.replaceChildren(...(data.explanation ? explained(data.explanation) : [card("Why it waits", "These pages have no cluster to try changes on: pumice explain does, on a snapshot.", [], true, "why")]));
  } catch (trouble) {
    place.replaceChildren(card("Why it waits", `This could not be worked out: ${trouble.message}`, [], true, "why"));
  }
}
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
function explained(found) {
  const { trials, minimal, smallest, cut } = found.proof;
  const proof = !found.reason.length ? "" : !minimal ? "Not proven that each of these is needed." : `Checked: lifting all of these starts the job, and ${smallest ? "no smaller set of obstacles does" : "lifting only some of them does not; a smaller set of others may exist"}.`;
  const about = `${capital(found.verdict)}: ${found.verdict_means}. ${proof} ${counted(trials, "trial")}${cut ? ", ended at their bound" : ""}.`;
  const why = card("Why it waits", about, [
    h("ol", { class: "obstacles" }, ...found.reason.map((each) => h("li", {}, h("span", { class: "code" }, each.code), ` ${each.sentence}`))),
    ...(found.not_because.length ? [h("p", { class: "about" }, `Not because of: ${found.not_because.join("; ")}.`)] : []),
  ], true, "why");
  const ways = found.ways_out.length
    ? [h("ul", { class: "ways" }, ...found.ways_out.map((way) => h("li", {}, h("b", {}, way.text.join("; ")), way.waits_for_evictions ? ": then starts once evicted pods have left." : ": then starts at once.",
        way.loses.length ? ` Others lose by it: ${way.loses.join(", ")}.` : "", way.commands.length ? h("pre", {}, way.commands.join("\n")) : null)))]
    : [nothing("No way out was found by the changes that are known here.")];
  return [why, card("Ways out", "Each was tried: the job starts with it. The cheapest first.", ways, true, "ways")];
}
