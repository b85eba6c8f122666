// The page of this address, and the stream that says when there is a newer cycle.

const SHOWN = { "/": overviewPage, "/queues": queuesPage, "/jobs": jobsPage, "/job": jobPage, "/nodes": nodesPage };
let busy = false, again = false;

// One at a time: what comes while a page is made is made afterwards, once.
async function refresh() {
  if (busy) { again = true; return; }
  busy = true;
  try {
    const parts = await SHOWN[location.pathname]();
    if (HEAD) PLACE.replaceChildren(...parts);
    showCycle(false);
  } catch (trouble) {
    if (trouble instanceof Lost) showCycle(true);
    else showTrouble(trouble.message);
  }
  busy = false;
  if (again) { again = false; await refresh(); }
}

// A field that is being used is not replaced.
const inUse = () => PLACE.contains(document.activeElement) && document.activeElement.matches("input, select");
let shown = 0;
function follow() {
  const stream = new EventSource("/events");
  stream.onmessage = (event) => {
    const number = Number(event.data);
    const isFirst = shown === 0;
    shown = number;
    showCycle(false);
    if (!isFirst && !inUse() && location.pathname !== "/job") refresh();
  };
  stream.onerror = () => showCycle(true); // the browser connects again by itself
}
addEventListener("popstate", refresh);
const READY = refresh().then(follow);
