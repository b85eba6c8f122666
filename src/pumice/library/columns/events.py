"""Events of a run, kept as columns, and the pods that follow from them."""

from __future__ import annotations

from collections.abc import Mapping

from pumice.library.column import count, number, text

EVENT_COLUMNS = (
    number("t", "s", "time from the start"),
    text(
        "event",
        "arrival, admitted, unschedulable, bind, evict, refused, running, started, gone (a pod left its node before "
        "its time), broken (a gang fell below its minimum), succeeded, done, node-up, node-down",
    ),
    text("job", "the job that it is about; missing for nodes"),
    text("pod", "the pod that it is about"),
    text("node", "the node that it is about"),
    text("queue", "the queue of the job"),
    count("cycle", "cycles", "number of the cycle that did it; missing for what no cycle does"),
    text("why", "the reason of an eviction, of a refusal, or of an unschedulable job"),
)
POD_COLUMNS = (
    text("pod", "namespace/name"),
    text("job", "its job"),
    text("node", "the node that it was bound to"),
    number("bound_s", "s", "when it was bound, from the start; missing if it was on its node before"),
    number("running_s", "s", "when it ran; missing if it never did"),
    number("ended_s", "s", "when it left the node; missing if it is there at the end"),
    text("state", "bound, running, succeeded, or gone (it left before its time)"),
)
_STATES = ("running", "succeeded", "gone")


class EventRecord:
    """Keeps events as rows of EVENT_COLUMNS: of equal texts one is kept, since the caller shares them."""

    def __init__(self) -> None:
        self.rows: list[tuple[object, ...]] = []

    def add(self, event: Mapping[str, object]) -> None:
        given = event.get
        why = given("reason") or given("refusal")
        if message := given("message"):
            why = message
        self.rows.append(
            (
                event["t"],
                event["event"],
                given("job"),
                given("pod"),
                given("node"),
                given("queue"),
                given("cycle"),
                why,
            )
        )


def pod_rows(events: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Return a row for each time that a pod was bound, or left a node on which it was from the start, in order."""
    rows: list[list[object]] = []
    present: dict[object, dict[object, list[object]]] = {}  # by job, by pod
    done_at: dict[object, object] = {}
    for t, event, job, pod, node, *_ in events:
        if event == "bind":
            row: list[object] = [pod, job, node, t, None, None, "bound"]
            present.setdefault(job, {})[pod] = row
            rows.append(row)
        elif event == "done":
            # Pods that are there at the end of their job have no event of their own.
            done_at[job] = t
            for row in present.pop(job, {}).values():
                row[5], row[6] = t, "succeeded"
        elif event in _STATES:
            of_job = present.setdefault(job, {})
            if pod not in of_job and done_at.get(job) == t:
                continue  # its end ended the job, which was said first
            if pod not in of_job:
                # It was on its node before the run.
                of_job[pod] = [pod, job, node, None, None, None, "running"]
                rows.append(of_job[pod])
            row = of_job[pod]
            row[4 if event == "running" else 5], row[6] = t, event
            if event != "running":
                del of_job[pod]
    return [tuple(row) for row in rows]
