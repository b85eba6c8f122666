// Pictures of curves: allocation, who holds what, shares, waiting. With a queue chosen, of that queue alone.

const RESOURCE_COLOURS = ["var(--c0)", "var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)", "var(--c5)"];
const NO_CURVES = "No curves are kept of this queue: it is not among those with the largest shares.";
const chosenQueue = () => DATA.queues.find((queue) => queue.name === VIEW.queue);

function allocationChart() {
  const curves = () => DATA.resources.map((resource, i) => {
    const used = VIEW.queue === null ? resource.used : chosenQueue()?.used[i];
    return used && {
      name: resource.label, colour: RESOURCE_COLOURS[i], kind: i === 0 ? "area" : i === 1 ? "line" : "dashed", // those that coincide stay seen
      values: used.map((value, b) => (resource.capacity[b] > 0 ? value / resource.capacity[b] : 0)), used,
    };
  }).filter((curve) => curve);
  const chart = timeChart(() => {
    const shown = curves();
    const rows = (time) => shown.map((curve, i) => {
      const { capacity, unit } = DATA.resources[i];
      const [used, room] = [valueAt({ values: curve.used }, time), valueAt({ values: capacity }, time)];
      return [curve.colour, curve.name, `${percent(valueAt(curve, time))}  ·  ${number(used)} of ${number(room)} ${unit}`];
    });
    const label = `Allocation over time. Means: ${DATA.resources.map((r) => `${r.label} ${percent(r.mean)}`).join(", ")}`;
    return { height: 270, least: VIEW.queue === null ? 1 : 0.01, format: (v) => `${number(100 * v)} %`, axisLabel: "allocated, % of capacity", label, curves: shown, rows, empty: NO_CURVES };
  });
  const meanSeen = (curve, i) => {
    const room = sum(valuesSeen({ values: DATA.resources[i].capacity }));
    return VIEW.queue === null && wholeTime() ? DATA.resources[i].mean : room > 0 ? sum(valuesSeen({ values: curve.used })) / room : 0;
  };
  const names = live(() => [VIEW.from, VIEW.to, VIEW.queue], () => legend(curves().map((curve, i) =>
    [`${curve.name} (mean ${percent(meanSeen(curve, i))})`, curve.colour, curve.kind === "dashed" ? "dashed" : ""])));
  return figure("Allocation over time", "What running pods have asked for, as a share of what the cluster has.", [names, chart], { wide: true, id: "allocation" });
}

// The named queues by their colours, all others as one: [{name, colour, values}] of `values(queue)`, and of `rest`.
function stack(values, rest) {
  if (VIEW.queue !== null) {
    const queue = chosenQueue();
    return queue ? [{ name: queue.name, colour: queueColour(queue.name), values: values(queue) }] : [];
  }
  const named = DATA.queues.filter((queue) => DATA.colours.includes(queue.name));
  const others = DATA.queues.filter((queue) => !DATA.colours.includes(queue.name)).map(values);
  const curves = named.map((queue) => ({ name: queue.name, colour: queueColour(queue.name), values: values(queue) }));
  if (rest) others.push(rest);
  if (others.length) curves.push({ name: OTHERS, colour: "var(--other)", values: others[0].map((_, i) => sum(others.map((each) => each[i]))) });
  return curves;
}

function holdersChart() {
  let chosen = 0;
  const curves = () => stack((queue) => queue.used[chosen], DATA.rest && DATA.rest.used[chosen]);
  const chart = timeChart(() => {
    const resource = DATA.resources[chosen], queues = curves();
    const room = { name: "capacity", colour: "var(--soft)", kind: "dashed", values: resource.capacity };
    const rows = (time) => [...queues.map((q) => [q.colour, q.name, number(valueAt(q, time))]).reverse(), [null, "capacity", number(valueAt(room, time))]];
    return { height: 270, format: number, stacked: true, axisLabel: resource.unit.startsWith(resource.label) ? resource.unit : `${resource.label}, ${resource.unit}`,
      label: `${resource.label} held by each queue over time`, curves: !queues.length || VIEW.queue !== null ? queues : [...queues, room], rows, empty: NO_CURVES };
  });
  const names = live(() => [VIEW.queue, chosen], () => legend([...curves().map((q) => [q.name, q.colour]), ...(VIEW.queue === null ? [["capacity", "var(--soft)", "dashed"]] : [])]));
  const side = choice("resource", DATA.resources.map((resource) => resource.label), 0, (place) => { chosen = place; names.renew(); chart.draw(chart.drawnWidth); });
  return figure("Who holds it", "Allocated amounts, stacked by queue.", [names, chart], { wide: true, id: "holders", side });
}

function sharesChart() {
  const top = Math.max(0.01, ...DATA.queues.map((queue) => Math.max(maximum(queue.share), maximum(queue.deserved))));
  const panels = live(() => VIEW.queue, () => {
    const shown = VIEW.queue === null ? DATA.queues : [chosenQueue()].filter((queue) => queue);
    return shown.length ? shown.map((queue) => sharePanel(queue, top, shown.length === 1)) : nothing(NO_CURVES);
  }, "div", { class: "panels" });
  const more = DATA.rest ? ` The ${number(DATA.queues.length)} queues with the largest shares; ${number(DATA.rest.count)} more are in the table.` : "";
  return figure("Share against deserved, by queue",
    `Of the resource a queue has, or deserves, most of, as a share of the cluster. What it deserves follows what its jobs ask for.${more}`,
    [legend([["share", "var(--accent)"], ["deserved", "var(--mark)", "dashed"]]), panels], { wide: true, id: "shares" });
}
function sharePanel(queue, top, alone) {
  const curves = [
    { name: "share", colour: "var(--accent)", kind: "area", values: queue.share },
    { name: "deserved", colour: "var(--mark)", kind: "dashed", values: queue.deserved },
  ];
  const rows = (time) => curves.map((curve) => [curve.colour, curve.name, percent(valueAt(curve, time))]);
  const chart = timeChart(() => ({ height: alone ? 220 : 112, least: top, narrow: !alone, format: (v) => `${Math.round(100 * v)} %`, curves, rows, label: `Share and deserved share of ${queue.name}` }));
  const said = queue.satisfied === null ? "deserved nothing" : `${Math.round(100 * queue.satisfied)} % of deserved`;
  return h("div", { class: alone ? "panel alone" : "panel" }, h("h3", {}, h("span", { title: queue.name }, queue.name), h("span", {}, said)), chart);
}

function waitingChart() {
  const curves = () => stack((queue) => queue.waiting, DATA.rest && DATA.rest.waiting);
  const chart = timeChart(() => {
    const shown = curves();
    const rows = (time) => [[null, "all", number(sum(shown.map((c) => valueAt(c, time) || 0)))], ...shown.map((c) => [c.colour, c.name, number(valueAt(c, time))]).reverse()];
    return { height: 250, least: 1, format: number, stacked: true, axisLabel: "jobs", curves: shown, rows, label: "Jobs that wait, over time", empty: NO_CURVES };
  });
  return figure("Waiting jobs", "Jobs that have arrived and whose gang does not run yet.",
    [live(() => VIEW.queue, () => legend(curves().map((c) => [c.name, c.colour]))), chart], { id: "waiting" });
}
