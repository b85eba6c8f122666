"""Comparing what was seen with what KAI did. Source: FORMAT.md, matching."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.conformance.runner.differences import Differences
from tests.conformance.runner.kai.seen import Place, Seen

Raw = Mapping[str, Any]

_EPS = 1e-6


def compare_bounds(expected: Raw, seen: Seen, found: Differences) -> None:
    """No more may happen in one cycle than is said."""
    for key, happened in (
        ("max_binds", seen.binds),
        ("max_evictions", seen.evictions),
        ("max_pipelines", seen.pipelines),
    ):
        if happened > expected.get(key, happened):
            found.lines.append(f"{key}: expected at most {expected[key]}, found {happened}")


def compare_places(case: Raw, places: Mapping[str, Place], found: Differences) -> None:
    """States and nodes of jobs and tasks."""
    expected = case["expected"]
    for job in case["jobs"]:
        wanted = expected.get("jobs", {}).get(job["name"])
        for task in job["tasks"] if wanted is not None else ():
            _compare_place(task["id"], wanted, places, found)
    known = {task["id"] for job in case["jobs"] for task in job["tasks"]}
    for name, wanted in expected.get("tasks", {}).items():
        if name in known:
            _compare_place(name, wanted, places, found)


def _compare_place(task: str, wanted: Raw, places: Mapping[str, Place], found: Differences) -> None:
    place = places.get(task, Place("nowhere"))
    if place.state != wanted.get("status", place.state):
        found.lines.append(f"{task}: expected {wanted['status']}@{wanted.get('node', '')}, found {place}")
    elif "node" in wanted and place.node and place.node != wanted["node"]:
        found.lines.append(f"{task}: expected {place.state}@{wanted['node']}, found {place}")


def compare_zones(case: Raw, seen: Seen, found: Differences) -> None:
    """NUMA zones of tasks that were bound."""
    expected = case["expected"]
    for job in case["jobs"]:
        for task in job["tasks"]:
            wanted = {**expected.get("jobs", {}).get(job["name"], {}), **expected.get("tasks", {}).get(task["id"], {})}
            if wanted.get("status") == "Binding" and "numa_zones" in wanted:
                found.value(f"numa_zones of {task['id']}", wanted["numa_zones"], seen.zones.get(task["id"], []))


def compare_nodes(expected: Raw, seen: Seen, found: Differences) -> None:
    """Whole devices of nodes after the actions."""
    for name, wanted in expected.get("nodes", {}).items():
        idle, releasing = seen.gpus(name)
        for key, value in (("idle_gpus", idle), ("releasing_gpus", releasing)):
            if key in wanted and abs(wanted[key] - value) > _EPS:
                found.lines.append(f"{key} of {name}: expected {wanted[key]:g}, found {value:g}")


def compare_round(recorded: Raw, seen: Seen, found: Differences) -> None:
    """One cycle of a generated case: every task, and how much was done."""
    for task, wanted in recorded["tasks"].items():
        place = str(seen.places.get(task, "nowhere"))
        if place != wanted:
            found.lines.append(f"round {recorded['round']}: {task}: expected {wanted}, found {place}")
    for key in ("binds", "evictions", "pipelines"):
        found.value(f"round {recorded['round']}: {key}", recorded[key], getattr(seen, key))
