"""Where the pods of each job are, from the events of a simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct


class Stay(Struct):
    """The time in which a node has pods of a job. ``since``: seconds from the start. ``pods``: the most at a time."""

    node: str
    job: str
    since: float
    pods: int = 0
    here: int = 0


#: Called with a stay that is over, when it ended, and how: succeeded, gone, or open (at the end of the run).
Ended = Callable[[Stay, float, str], object]


class Stays:
    """Follows events: pods of a job on a node are one stay, from the first that is bound to the last that leaves."""

    def __init__(self, ended: Ended, began: Callable[[Stay], object] = lambda stay: None) -> None:
        self._ended, self._began = ended, began
        self._pods: dict[str, dict[str, str]] = {}  # job -> pod -> node
        self._stays: dict[tuple[str, str], Stay] = {}

    def add(self, event: Mapping[str, object]) -> None:
        """Take an event of the simulation, in order."""
        match event["event"]:
            case "bind" | "running":
                self._here(event)
            case "succeeded" | "gone" as how:
                pods = self._pods.get(str(event["job"]), {})
                node = pods.pop(str(event["pod"]), None)
                if node is not None:
                    self._less(str(event["job"]), node, _time(event), str(how))
            case "done":
                # Pods that are there at the end of their job have no event of their own.
                for node in self._pods.pop(str(event["job"]), {}).values():
                    self._less(str(event["job"]), node, _time(event), "succeeded")

    def close(self, now: float) -> None:
        """End all stays that have not ended. ``now``: seconds from the start."""
        for stay in self._stays.values():
            self._ended(stay, now, "open")
        self._stays.clear()

    def _here(self, event: Mapping[str, object]) -> None:
        job, pod, node = str(event["job"]), str(event["pod"]), str(event["node"])
        pods = self._pods.setdefault(job, {})
        if pod in pods:
            return  # it was bound before it ran
        pods[pod] = node
        stay = self._stays.get((node, job))
        if stay is None:
            stay = self._stays[node, job] = Stay(node, job, _time(event))
            self._began(stay)
        stay.here += 1
        stay.pods = max(stay.pods, stay.here)

    def _less(self, job: str, node: str, now: float, how: str) -> None:
        stay = self._stays[node, job]
        stay.here -= 1
        if not stay.here:
            del self._stays[node, job]
            self._ended(stay, now, how)


def _time(event: Mapping[str, object]) -> float:
    found = event["t"]
    assert isinstance(found, int | float)
    return float(found)
