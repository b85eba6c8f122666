// The page of this address, and the stream that says when there is a newer cycle.

const SHOWN = { "/": overviewPage, "/queues": queuesPage, "/jobs": jobsPage, "/job": jobPage, "/nodes": nodesPage, "/node": nodePage, "/gantt": ganttPage, "/policy": policyPage, "/cycles": cyclesPage };
let busy = false, again = false, heard = null; // heard: the newest cycle, if it was named while a page is made

// One at a time: what comes while a page is made is made afterwards, once.
async function refresh() {
  if (busy) { again = true; return; }
  busy = true;
  NUMBER = heard = null;
  const before = [LIVE.length, UPDATES.length];
  try {
    const parts = await (PLACE.dataset.kind === "simulation" ? simulationPage : SHOWN[location.pathname])();
    if (HEAD) PLACE.replaceChildren(...notes(), ...parts);
    forget(before);
    showCycle(false);
  } catch (trouble) {
    if (trouble instanceof Lost) showCycle(true);
    else if (trouble instanceof Early) showEarly();
    else showTrouble(trouble.message);
  }
  busy = false;
  if (again) { again = false; await refresh(); }
  else if (heard !== null && heard !== NUMBER) renew();
}

// What the page before had is drawn no more.
function forget([lives, updates]) {
  LIVE.splice(0, lives);
  UPDATES.splice(0, updates);
}
const notes = () => (NOTES.length ? [h("section", { class: "card noted", role: "note" }, h("ul", { class: "notes" }, ...NOTES.map((text) => h("li", {}, text))))] : []);

// What is being used, by keyboard or pointer, is not replaced: the page is renewed when it is let go.
const inUse = () => (PLACE.contains(document.activeElement) && document.activeElement.matches("input, select, textarea, :focus-visible")) || Boolean(PLACE.querySelector(".brush:active"));
let isOld = false;
function renew() {
  isOld = inUse();
  if (!isOld && !STILL.includes(location.pathname)) refresh();
}
const STILL = ["/job", "/node", "/policy"]; // what was worked out or written there is not thrown away
// A page that is not seen follows nothing: a browser has six connections to a server, and each stream holds one.
let stream = null;
function followCycles() {
  if (document.hidden) {
    stream?.close();
    stream = null;
  }
  if (document.hidden || stream) return;
  stream = new EventSource("/events");
  stream.onmessage = (event) => {
    showCycle(false);
    if (busy) heard = Number(event.data); // of which cycle the page will be is not known yet
    else if (Number(event.data) !== NUMBER) renew(); // also the first time: there may be a newer one since the page was read
  };
  stream.onerror = () => showCycle(true); // the browser connects again by itself
}
for (const kind of ["focusout", "pointerup"]) PLACE.addEventListener(kind, () => { if (isOld) setTimeout(renew); });
addEventListener("popstate", refresh);
document.addEventListener("visibilitychange", followCycles);
const READY = refresh().then(followCycles);
