"""Running a case: one session, or rounds between which the cluster does what was decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pumice.cycle import run_cycle
from pumice.framework.plugin.policy_file import Policy
from pumice.framework.plugin.registry import Registry
from pumice.model.devices.claims import Allocation
from pumice.model.events import Seen as Event
from pumice.model.status import TaskStatus
from pumice.state.store import Store
from tests.conformance.runner.differences import Differences
from tests.conformance.runner.kai.compare import (
    compare_bounds,
    compare_nodes,
    compare_places,
    compare_round,
    compare_zones,
)
from tests.conformance.runner.kai.objects import (
    NOW,
    SCHEDULER,
    Pods,
    allocation_of,
    claims,
    initial_objects,
    pod_group,
)
from tests.conformance.runner.kai.policy import policy_of_case
from tests.conformance.runner.kai.seen import Place, Seen
from tests.conformance.runner.result import NotYet, Unusable
from tests.conformance.runner.session import Recorder

Raw = Mapping[str, Any]

FORMAT_PREFIX = "kai-case/"
_ROUNDS_MAX = 50
_LAST_START_S = 60.0


def run_kai_case(case: Raw, registry: Registry) -> Differences:
    """Raises: NotYet naming what is missing, Unusable for a case that says what is not understood."""
    policy, without = policy_of_case(case, registry)
    cluster = Cluster(case, policy)
    if case["mode"] == "single":
        found = _single(case, cluster)
    elif "run" in case["rounds"]:
        found = _recorded(case, cluster)
    else:
        found = _until_match(case, cluster)
    if found and without:
        raise NotYet(f"{', '.join(without)}: {found.text}")
    return found


def _single(case: Raw, cluster: Cluster) -> Differences:
    found, seen = Differences(), cluster.cycle()
    compare_places(case, seen.places, found)
    compare_nodes(case["expected"], seen, found)
    compare_zones(case, seen, found)
    compare_bounds(case["expected"], seen, found)
    return found


def _recorded(case: Raw, cluster: Cluster) -> Differences:
    """The first round must agree; later ones go by the nodes that victims were not held for, and must do no harm.

    Where KAI crashed there is nothing to agree with from that round on.
    """
    found, expected = Differences(), case["expected"]
    for number, seen in enumerate(cluster.rounds(case["rounds"]["run"]), start=1):
        recorded = next((each for each in expected["trace"] if each["round"] == number), None)
        if recorded is not None and number == 1:
            compare_round(recorded, seen, found)
        for node in seen.overcommitted:
            found.lines.append(f"round {number}: {node} was given away twice")
    return found


def _until_match(case: Raw, cluster: Cluster) -> Differences:
    """The state must be reached, and stay."""
    found, rounds = Differences(), case["rounds"]
    total = rounds["until_match"] + rounds["after_match"]
    for number, seen in enumerate(cluster.rounds(total), start=1):
        compare_bounds(case["expected"], seen, found)
        if number == rounds["until_match"]:
            compare_places(case, cluster.next_places(seen), found)
        elif number > rounds["until_match"]:
            compare_places(case, seen.places, found)
        if found:
            found.lines[0] = f"round {number}: {found.lines[0]}"
            return found
    return found


class Cluster:
    """The cluster of a case, made anew for each cycle from where its tasks are. A claim keeps what it was given for as
    long as some task that uses it has a place."""

    def __init__(self, case: Raw, policy: Policy) -> None:
        self._case, self._policy, self._pods = case, policy, Pods()
        self._tasks = {task["id"]: dict(task) for job in case["jobs"] for task in job["tasks"]}
        self._stays = {task["id"] for job in case["jobs"] if job.get("stays_releasing") for task in job["tasks"]}
        self._given: dict[str, Allocation] = {
            raw["name"]: given
            for raw in (case.get("dra") or {}).get("claims") or ()
            if (given := allocation_of(raw)) is not None
        }

    def cycle(self) -> Seen:
        """One cycle on the cluster as it is."""
        recorder = Recorder()
        seen = Seen(run_cycle(self.store().snapshot(), self._policy, NOW, recorder), recorder)
        seen.pipelines -= sum(task["state"] == "Pipelined" for task in self._tasks.values())
        return seen

    def rounds(self, count: int) -> Iterator[Seen]:
        """So many cycles, each on what the last one left."""
        if not 0 < count <= _ROUNDS_MAX:
            raise Unusable(f"found {count} rounds, wanted 1 to {_ROUNDS_MAX}")
        for _ in range(count):
            seen = self.cycle()
            yield seen
            for name, place in self.next_places(seen).items():
                self._tasks[name] |= {"state": place.state, "node": place.node}
            self._given |= seen.given
            for name, groups in seen.groups.items():
                self._tasks[name]["gpu_groups"] = groups

    def next_places(self, seen: Seen) -> dict[str, Place]:
        """What becomes of the tasks before the next cycle."""
        return {name: self._next(name, place) for name, place in seen.places.items()}

    def _next(self, name: str, place: Place) -> Place:
        if place.state == "Binding":
            return Place("Running", place.node)
        if place.state == "Pipelined" or (place.state == "Releasing" and name not in self._stays):
            return Place("Pending")
        return place

    def store(self) -> Store:
        """The cluster as it is before the next cycle."""
        store = Store(scheduler_names=(SCHEDULER,))
        store.apply_all(Event(obj) for obj in initial_objects(self._case))
        store.apply_all(Event(claim) for claim in claims(self._case, self._users(), self._given))
        for job in self._case["jobs"]:
            tasks = [self._tasks[task["id"]] for task in job["tasks"]]
            runs = any(task["state"] == "Running" for task in tasks)
            started = {"last_start_age_s": _LAST_START_S} if runs else {}
            store.apply(Event(pod_group({**job, **started})))
            store.apply_all(Event(self._pods.pod(job, task)) for task in tasks)
        self._promise(store)
        return store

    def _users(self) -> dict[str, list[str]]:
        """The tasks that have a place, by the claims that they use."""
        found: dict[str, list[str]] = {}
        for task in self._tasks.values():
            if task["state"] not in ("Pending", "Pipelined"):
                for claim in task.get("claims") or ():
                    found.setdefault(claim["name"] if isinstance(claim, Mapping) else claim, []).append(task["id"])
        return found

    def _promise(self, store: Store) -> None:
        """No pod says that it was promised a node, and in a cluster none is when a cycle begins: written by hand."""
        waiting = [task for task in self._tasks.values() if task["state"] == "Pipelined"]
        if not waiting:
            return
        pods = store.snapshot().tables.tasks.pods
        rows = {pod.name: row for row, pod in enumerate(pods) if pod is not None}
        for task in waiting:
            store._tasks._assume([rows[task["id"]]], TaskStatus.PIPELINED, [task["node"]])
