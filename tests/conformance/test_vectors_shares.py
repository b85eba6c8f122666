"""What Volcano's proportion, capacity and drf make of random queues and jobs.

``spec/volcano/vectors/README.md`` explains the keys.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pumice.columns.column import Column
from pumice.framework.cycle.session import Session
from pumice.model.node import Node
from pumice.model.pod import GROUP_NAME_ANNOTATION, Pod, PodSpec
from pumice.model.queue import Queue
from pumice.model.resources import Resource
from pumice.testing.build import NAMESPACE, cluster, interned, podgroup, session
from pumice.volcano.queues.share_tree import PATH, WEIGHTS

SHARED = Path(os.environ.get("PUMICE_SHARED") or Path(__file__).parents[3] / "shared")
VECTORS = SHARED / "spec" / "volcano" / "vectors"
ROWS_EXPECTED = {"proportion": 150, "capacity": 300, "drf": 150}
TOLERANCE = 1e-6

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(
        not VECTORS.is_dir(),
        reason=f"no recorded vectors at {VECTORS}: put `shared` beside the checkout or set PUMICE_SHARED",
    ),
]

PROPORTION = "actions: allocate\ntiers: [{plugins: [{name: proportion}]}]"
CAPACITY = "actions: allocate\ntiers: [{plugins: [{name: capacity, enableHierarchy: %s}]}]"
DRF = "actions: allocate\ntiers: [{plugins: [{name: drf, enableHierarchy: true}]}]"

#: key of a queue in a row -> the column (Q, R) of the plugin
COLUMNS = {
    "allocated": "allocated",
    "request": "request",
    "deserved": "deserved",
    "elastic": "elastic",
    "inqueue": "inqueue",
    "real": "real_capability",
}
#: Means a limit that is none.
UNLIMITED = 1e15


@cache
def rows(name: str) -> list[dict[str, Any]]:
    with gzip.open(VECTORS / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def resource(raw: Mapping[str, Any]) -> Resource:
    return Resource(raw["C"], raw["M"], raw["S"])


def session_of(row: Mapping[str, Any], conf: str) -> Session:
    """The cluster of a row, all on one node."""
    total = resource(row["total"])
    groups, pods = [], []
    for i, job in enumerate(row["jobs"]):
        name = job.get("name", f"job-{i}")
        wanted = resource(job["minres"]) if "minres" in job else None
        groups.append(podgroup(name, job["min"], job["queue"], min_resources=wanted, phase=job["phase"]))
        pods += [pod_of(f"{name}-{t}", name, task) for t, task in enumerate(job["tasks"])]
    queues = [queue_of(name, raw) for name, raw in row["queues"].items()]
    return session(cluster(Node("n", total, total), queues, groups, pods), conf)


def pod_of(name: str, group: str, task: Mapping[str, Any]) -> Pod:
    running = task["st"] == "Running"
    notes = {GROUP_NAME_ANNOTATION: group}
    spec = interned(PodSpec(resource(task["req"])))
    return Pod(NAMESPACE, name, name, spec, annotations=notes, phase=task["st"], node_name="n" if running else "")


def queue_of(name: str, raw: Mapping[str, Any]) -> Queue:
    return Queue(
        name,
        raw["weight"],
        capability=resource(raw["cap"]) if raw["capset"] else None,
        guarantee=resource(raw["guar"]) if raw["guarset"] else None,
        deserved=resource(raw["deservedspec"]) if "deservedspec" in raw else None,
        priority=raw.get("prio", 0),
        parent=raw.get("parent", ""),
        annotations={PATH: raw["h"], WEIGHTS: raw["hw"]} if "h" in raw else {},
    )


def amounts(ssn: Session, column: NDArray[np.float64]) -> dict[str, float]:
    """One row of a plugin's column, by name; what is not there is 0."""
    return dict(zip(ssn.tables.axis.names, column.tolist(), strict=True))


def recorded(ssn: Session, raw: Mapping[str, Any]) -> dict[str, float]:
    return amounts(ssn, ssn.tables.axis.vector(resource(raw)))


def numbers(found: Column[Any] | NDArray[np.float64]) -> NDArray[np.float64]:
    """What a plugin keeps, whether it moves it or not."""
    return found.array if isinstance(found, Column) else found


def test_every_recorded_row_is_there() -> None:
    assert {name: len(rows(name)) for name in ROWS_EXPECTED} == ROWS_EXPECTED


@cache
def proportion_sessions() -> list[tuple[int, dict[str, Any], Session]]:
    """(number of the line, the line, a session of it); nothing is written in these."""
    return [(number, row, session_of(row, PROPORTION)) for number, row in enumerate(rows("proportion"), start=1)]


@pytest.mark.parametrize("key", [*COLUMNS, "share"])
def test_proportion_agrees_with_volcano(key: str) -> None:
    for number, row, ssn in proportion_sessions():
        proportion = ssn.hooks.plugin("proportion")
        for name, wanted in row["queues"].items():
            queue = ssn.tables.queues.row_of[name]
            assert bool(proportion.takes_part[queue]) == ("share" in wanted), f"line {number}, queue {name}"
            if key not in wanted:
                continue
            where = f"line {number}, queue {name}"
            if key == "share":
                assert proportion.share.array[queue] == pytest.approx(wanted[key], rel=TOLERANCE), where
            else:
                found = amounts(ssn, numbers(getattr(proportion, COLUMNS[key]))[queue])
                assert found == pytest.approx(recorded(ssn, wanted[key]), rel=TOLERANCE), where


@cache
def capacity_sessions() -> list[tuple[int, dict[str, Any], Session]]:
    """(number of the line, the line, a session of it); nothing is written in these."""
    numbered = enumerate(rows("capacity"), start=1)
    return [(number, row, session_of(row, CAPACITY % str(row["hier"]).lower())) for number, row in numbered]


@pytest.mark.parametrize("key", ["allocated", "request", "deserved", "elastic", "inqueue", "real"])
def test_capacity_agrees_with_volcano(key: str) -> None:
    for number, row, ssn in capacity_sessions():
        capacity = ssn.hooks.plugin("capacity")
        for name, wanted in row["queues"].items():
            if key not in wanted:
                continue
            column = numbers(getattr(capacity, "most" if key == "real" else key))[ssn.tables.queues.row_of[name]]
            found, volcano = bounded(amounts(ssn, column)), bounded(recorded(ssn, wanted[key]))
            assert found == pytest.approx(volcano, rel=TOLERANCE), f"line {number}, queue {name}"


def test_share_and_capability_of_capacity_agree_with_volcano() -> None:
    for number, row, ssn in capacity_sessions():
        capacity = ssn.hooks.plugin("capacity")
        for name, wanted in row["queues"].items():
            if "share" not in wanted:
                continue
            queue, where = ssn.tables.queues.row_of[name], f"line {number}, queue {name}"
            assert capacity.share.array[queue] == pytest.approx(wanted["share"], rel=TOLERANCE), where
            stated = {"cpu", "memory", *(wanted["capability"]["S"] or {})}
            limits, volcano = amounts(ssn, capacity.of.capability[queue]), recorded(ssn, wanted["capability"])
            if not row["hier"]:
                volcano |= {key: UNLIMITED for key in ("cpu", "memory") if not volcano[key]}
            for key in stated:
                assert min(limits[key], UNLIMITED) == min(volcano[key], UNLIMITED), f"{where}, {key}"


def bounded(found: Mapping[str, float]) -> dict[str, float]:
    """With one number for all limits that are none."""
    return {name: min(amount, UNLIMITED) for name, amount in found.items()}


def test_queue_order_of_capacity_agrees_with_volcano() -> None:
    for number, row, ssn in capacity_sessions():
        row_of = ssn.tables.queues.row_of
        for text in row["order"]:
            left, right, wanted = parts(text)
            first = ssn.order.compare_queues(row_of[left], row_of[right]) < 0
            assert str(first).lower() == wanted, f"line {number}: {text}"


def test_queue_order_of_hierarchical_drf_agrees_with_volcano() -> None:
    for number, row in enumerate(rows("drf"), start=1):
        ssn = session_of(row, DRF)
        row_of = ssn.tables.queues.row_of
        for text in row["order"]:
            left, right, wanted = parts(text)
            first = ssn.order.compare_queues(row_of[left], row_of[right]) < 0
            assert str(first).lower() == wanted, f"line {number}: {text}"


def test_job_order_of_drf_agrees_with_volcano() -> None:
    for number, row in enumerate(rows("drf"), start=1):
        ssn = session_of(row, DRF)
        row_of = {uid.partition("/")[2]: job for job, uid in enumerate(ssn.tables.jobs.uids) if uid}
        for text in row["jorder"]:
            left, right, wanted = parts(text)
            assert str(ssn.order.compare_jobs(row_of[left], row_of[right])) == wanted, f"line {number}: {text}"


def parts(text: str) -> tuple[str, str, str]:
    """``a<b:answer``."""
    pair, _, answer = text.partition(":")
    left, _, right = pair.partition("<")
    return left, right, answer
