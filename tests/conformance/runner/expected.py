"""``expect`` of Volcano's own test tables: what the source test checks, compared before the session closes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from pumice.columns.views import Job
from pumice.framework.cycle.session import Session
from pumice.model.status import TaskStatus
from pumice.volcano.status.closing import phase_of
from tests import resource_algebra as algebra
from tests.conformance.runner.case import Raw
from tests.conformance.runner.differences import Differences
from tests.conformance.runner.result import NotYet
from tests.conformance.runner.session import Opened
from tests.conformance.tables.api import resource

#: ``statedBinds`` is what the author wrote and the source test does not check (a tie that is broken at random).
_NOT_CHECKED = {"statedBinds"}


def compare_expected(opened: Opened, expect: Raw, observed: Raw | None = None) -> Differences:
    """Everything that ``expect`` states. ``observed`` is used where it states no binds; None: nothing does.

    Raises: NotYet for an expectation that this does not know, so that it is never skipped.
    """
    unknown = expect.keys() - _CHECKS.keys() - _NOT_CHECKED - {"minimalBindCheck"}
    if unknown:
        raise NotYet(", ".join(f"expectation {key}" for key in sorted(unknown)))
    found = Differences()
    for key, check in _CHECKS.items():
        if key in expect and not (key == "binds" and expect.get("minimalBindCheck")):
            check(found, opened, expect[key])
    if observed is not None and not expect.keys() & {"binds", "bindCount"}:
        found.mapping("bind", observed["binds"], opened.recorder.binds)
    return found


def _binds(found: Differences, opened: Opened, wanted: Mapping[str, str]) -> None:
    found.mapping("bind", wanted, opened.recorder.binds)


def _bind_count(found: Differences, opened: Opened, wanted: int) -> None:
    found.value("number of binds", wanted, len(opened.recorder.binds))


def _evicts(found: Differences, opened: Opened, wanted: list[str]) -> None:
    found.multiset("evicts", wanted, [evict.pod for evict in opened.recorder.evicts])


def _evict_count(found: Differences, opened: Opened, wanted: int) -> None:
    found.value("number of evicts", wanted, len(opened.recorder.evicts))


def _pipelined(found: Differences, opened: Opened, wanted: Mapping[str, list[str]]) -> None:
    """At least one task of each job is Pipelined, and each that is, on one of the nodes."""
    ssn = opened.ssn
    tasks, names = ssn.tables.tasks, ssn.tables.nodes.facts.names
    for key, nodes in wanted.items():
        rows = [r for r in job_of(ssn, key).tasks.tolist() if tasks.status[r] == TaskStatus.PIPELINED]
        where = sorted({names[tasks.node[r]] for r in rows})
        if not rows or not set(where) <= set(nodes):
            found.value(f"nodes of pipelined tasks of {key}", f"some of {sorted(nodes)}", where)


def _status_counts(found: Differences, opened: Opened, wanted: Mapping[str, Mapping[Any, int]]) -> None:
    for key, counts in wanted.items():
        have = job_of(opened.ssn, key).counts
        for status, count in counts.items():
            code = status_of(status)
            found.value(f"{code.label} tasks of {key}", count, int(have[code]))


def _group_phases(found: Differences, opened: Opened, wanted: Mapping[str, str]) -> None:
    """Phases as a pass of the job updater leaves them; plugins have not closed, so no condition is new."""
    ssn = opened.ssn
    jobs = {key: job_of(ssn, key) for key in wanted}
    phases = {key: phase_of(ssn, job.row, job.counts.tolist(), unschedulable=False).value for key, job in jobs.items()}
    found.mapping("phase", wanted, phases)


def _binds_in_hypernodes(found: Differences, opened: Opened, wanted: list[int]) -> None:
    facts, tree = opened.ssn.tables.nodes.facts, opened.ssn.tables.tree
    leaves = Counter(int(tree.leaf_of[facts.row_of[node]]) for node in opened.recorder.binds.values())
    found.value("binds by lowest hypernode", sorted(wanted), sorted(leaves.values()))


def _allocated(found: Differences, opened: Opened, wanted: Mapping[str, Raw]) -> None:
    """What the tasks of each job hold; jobs by name alone."""
    ssn = opened.ssn
    by_name = {ssn.tables.jobs.groups[row].name: row for row in ssn.live_jobs.tolist()}
    for name, raw in wanted.items():
        have = ssn.tables.axis.resource(ssn.tables.jobs.allocated[by_name[name]])
        found.value(f"allocated to {name}", algebra.describe(resource(raw)), algebra.describe(have))


def job_of(ssn: Session, key: str) -> Job:
    """A job of the session by ``namespace/podgroup``. Raises: LookupError when there is none."""
    for row in ssn.live_jobs.tolist():
        if ssn.tables.jobs.uids[row] == key:
            return Job(ssn.tables, row)
    raise LookupError(f"the session has no job {key}")


def status_of(name: Any) -> TaskStatus:
    """A task state by the name or by the bit flag that the recordings use."""
    if isinstance(name, int):
        return TaskStatus(name.bit_length() - 1)
    return TaskStatus[str(name).upper()]


_CHECKS: dict[str, Callable[[Differences, Opened, Any], None]] = {
    "binds": _binds,
    "bindCount": _bind_count,
    "evicts": _evicts,
    "evictCount": _evict_count,
    "pipelined": _pipelined,
    "taskStatusCounts": _status_counts,
    "podGroupStatus": _group_phases,
    "bindNumsInHyperNode": _binds_in_hypernodes,
    "statedAllocated": _allocated,
}
