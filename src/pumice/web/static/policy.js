// Policy: what is in force, and what another one would do, tried on cycles that are over.

async function policyPage() {
  const { data } = await document_of("/data/policy");
  const rows = data.tiers.flatMap((tier, i) => tier.map((plugin) => ({ ...plugin, tier: i + 1 })));
  const given = (held) => Object.entries(held).filter(([, value]) => value !== null && value !== "").map(([name, value]) => `${name} = ${typeof value === "object" ? JSON.stringify(value) : value}`).join(", ") || "–";
  const actions = h("ol", { class: "obstacles" }, ...data.actions.map((action) => h("li", {}, h("b", {}, action.name), Object.keys(action.arguments).length ? ` ${given(action.arguments)}` : "")));
  const tiers = table([
    { name: "Plugin", left: true, cell: (plugin) => plugin.name },
    { name: "Tier", cell: (plugin) => number(plugin.tier) },
    { name: "Arguments", left: true, prose: true, cell: (plugin) => given(plugin.arguments) },
    { name: "Switched off", left: true, prose: true, cell: (plugin) => plugin.off.map((name) => `enable${name}`).join(", ") || "–" },
  ], rows, { label: "Plugins" });
  const warnings = data.warnings.length ? [h("ul", { class: "notes" }, ...data.warnings.map((text) => h("li", {}, h("span", { class: "tag warning" }, "warning"), text)))] : [nothing("Nothing to warn of.")];
  return [h("div", { class: "grid" }, card("Actions", `In this order, in the language ${data.dialect}.`, [actions], false, "actions"), card("Check", "What is likely not meant, as pumice check-conf says it.", warnings, false, "check")),
    card("Plugins", "", [tiers], true, "plugins"), data.text === null ? card("What would change", "These pages have no cycle to try a policy on: pumice whatif --conf does, on a snapshot.", [], true, "try") : tryCard(data)];
}
function tryCard(data) {
  const place = h("div", { "aria-live": "polite" });
  const text = h("textarea", { name: "conf", rows: 14, spellcheck: "false", maxlength: 200000 }, data.text);
  const cycles = h("input", { name: "cycles", type: "number", min: 1, max: data.cycles_max, value: Math.min(5, data.cycles_max) });
  const button = h("button", { type: "submit", class: "plain" }, "Try it");
  const form = h("form", { class: "form", onsubmit: async (event) => {
    event.preventDefault();
    button.disabled = true;
    place.replaceChildren(nothing("Cycles are being run under both policies."));
    const answer = await fetch("/data/policy/try", { method: "POST", headers: { "Content-Type": "application/json", "X-Pumice-Page": "1" }, body: JSON.stringify({ conf: text.value, cycles: Number(cycles.value) || 1 }) })
      .catch(() => null);
    button.disabled = false;
    if (!answer) return place.replaceChildren(nothing("The server does not answer."));
    place.replaceChildren(...(answer.ok ? tried(await answer.json()) : [nothing((await answer.text()).trim())]));
  } }, h("label", { class: "whole" }, "Another policy", text), data.cycles_max > 1 ? h("label", {}, `On how many of the last cycles (at most ${data.cycles_max})`, cycles) : null, button);
  return card("What would change", "Change the policy and try it: cycles that are over, or one on the newest snapshot of the scheduler, are run under both. Nothing else happens.", [form, place], true, "try");
}
function tried(found) {
  if (found.problems.length) return [h("h3", {}, "It cannot be used"), h("ul", { class: "notes" }, ...found.problems.map((text) => h("li", {}, h("span", { class: "tag error" }, "error"), text)))];
  const warnings = found.warnings.map((text) => h("li", {}, h("span", { class: "tag warning" }, "warning"), text));
  if (!found.last) return [nothing("No cycle can be tried yet.")];
  const same = found.cycles.filter((cycle) => cycle.same).length;
  const columns = [
    { name: "Cycle", left: true, cell: (cycle) => number(cycle.number) },
    { name: "At (UTC)", left: true, cell: (cycle) => when(cycle.at) },
    ...[["Jobs placed", "placed"], ["No longer placed", "not_placed"], ["Pods evicted", "evicted"], ["Pods spared", "spared"], ["Jobs that wait", "waits"]].map(([name, field]) => ({ name, cell: (cycle) => number(cycle[field]) })),
    { name: "Decisions", left: true, cell: (cycle) => (cycle.same ? "the same" : "differ") },
  ];
  const list = (name, entries) => (entries.length ? [h("li", {}, h("b", {}, `${name}: `), entries.join(", "))] : []);
  const pods = (held) => Object.entries(held).map(([job, count]) => `${job} (${counted(count, "pod")})`);
  const last = found.last, shares = last.queues.map((each) => `${each.queue} ${each.resource}: ${number(each.before)} → ${number(each.after)}`);
  return [h("ul", { class: "notes" }, ...warnings), h("h3", {}, `${counted(found.cycles.length, "cycle")} tried, ${same === found.cycles.length ? "all decide the same" : `${number(found.cycles.length - same)} ${found.cycles.length - same === 1 ? "decides" : "decide"} otherwise`}${found.is_cut ? "; the time for more was up" : ""}`),
    table(columns, found.cycles, { label: "Cycles under the other policy" }), h("h3", {}, "In the newest of them"),
    h("ul", { class: "notes", id: "difference" }, ...list("Placed", pods(last.placed)), ...list("No longer placed", pods(last.not_placed)), ...list("Evicted", last.evicted), ...list("Spared", last.spared),
      ...list("Queues hold, in milli-cores, bytes and milli-devices", shares), ...last.waiting.map((each) => h("li", {}, h("b", {}, `${each.job} waits: `), h("span", { class: "code" }, each.code), ` ${each.sentence}`, each.code_before && each.code_before !== each.code ? ` (before: ${each.code_before})` : "")),
      last.changes_something ? null : h("li", {}, "Nothing: both decide the same."))];
}
