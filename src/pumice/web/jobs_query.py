"""Jobs of a summary by what a page asks: filtered, sorted, grouped, a part at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from msgspec import Struct

from pumice.algorithms.groups import distinct
from pumice.columns.dtypes import AnyArray, Bool
from pumice.runtime.job_states import CODES, STATES
from pumice.runtime.serving.viewers import namespaces_of
from pumice.web.summary import CycleSummary, JobColumns

#: Rows of one answer at most, and by default.
ROWS_MAX, ROWS = 500, 100
#: Length of a text that is searched for at most.
SEARCH_MAX = 200


class QueryError(ValueError):
    """What was asked cannot be answered: what was found, and what was wanted."""


class JobsQuery(Struct, frozen=True):
    """``text``: a part of the name. ``queue`` includes the queues below it. "" means any.

    ``sort``: one of SORTS, ``descending`` or not. ``group``: "", or one of GROUPS: counts instead of rows.
    """

    text: str = ""
    queue: str = ""
    state: str = ""
    code: str = ""
    sort: str = "name"
    descending: bool = False
    group: str = ""
    offset: int = 0
    rows: int = ROWS


#: What jobs can be sorted by.
SORTS: Mapping[str, Callable[[JobsIndex], AnyArray]] = MappingProxyType(
    {
        "name": lambda index: index.name_rank,
        "queue": lambda index: index.queue_rank[index.jobs.queue],
        "state": lambda index: index.jobs.state,
        "reason": lambda index: index.jobs.code,
        "pods": lambda index: index.jobs.pods,
        "waiting": lambda index: index.jobs.waiting,
        "priority": lambda index: index.jobs.priority,
        "created": lambda index: index.jobs.created,
        "devices": lambda index: index.jobs.asks[:, 2:].sum(axis=1),
        "cores": lambda index: index.jobs.asks[:, 0],
    }
)
GROUPS = ("queue", "state", "reason")


def query_of(given: Mapping[str, str]) -> JobsQuery:
    """Read a query from the parameters of an address. Raises: QueryError."""
    unknown = sorted(given.keys() - {"text", "queue", "state", "code", "sort", "order", "group", "offset", "rows"})
    if unknown:
        raise QueryError(f"unknown parameter {unknown[0][:40]!r}")
    text = given.get("text", "")
    if len(text) > SEARCH_MAX:
        raise QueryError(f"text has {len(text)} characters, wanted at most {SEARCH_MAX}")
    order = _one_of(given, "order", ("", "up", "down"))
    return JobsQuery(
        text,
        given.get("queue", ""),
        _one_of(given, "state", ("", *STATES)),
        _one_of(given, "code", ("", *(code.value for code in CODES))),
        _one_of(given, "sort", tuple(SORTS), "name"),
        order == "down",
        _one_of(given, "group", ("", *GROUPS)),
        _number(given, "offset", 0, 0, 10**9),
        _number(given, "rows", ROWS, 1, ROWS_MAX),
    )


def _one_of(given: Mapping[str, str], name: str, wanted: Sequence[str], default: str = "") -> str:
    found = given.get(name, "") or default
    if found not in wanted:
        raise QueryError(f"{name} {found[:40]!r}, wanted one of {', '.join(filter(None, wanted))}")
    return found


def _number(given: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    text = given.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(high)) and low <= int(text) <= high):
        raise QueryError(f"{name} {text[:40]!r}, wanted a whole number from {low} to {high:,}")
    return int(text)


class JobsIndex:
    """The jobs of one summary, with what queries of it share."""

    def __init__(self, summary: CycleSummary) -> None:
        self.summary = summary
        self.jobs: JobColumns = summary.jobs

    @cached_property
    def namespaces(self) -> list[str]:
        """The namespaces that have jobs, in order."""
        # Each request asks what its viewer may see of them, and there may be 100,000 jobs.
        return namespaces_of(self.jobs.names)

    @cached_property
    def name_rank(self) -> AnyArray:
        # Sorted once a summary: names are the key by default, and the last key of every other order.
        return _ranks(self.jobs.names)

    @cached_property
    def queue_rank(self) -> AnyArray:
        return _ranks(self.summary.queues.names)

    def answer(self, query: JobsQuery) -> dict[str, Any]:
        """Return the rows, or groups, that a query asks for, as JSON. Raises: QueryError for an unknown queue."""
        rows = self.matching(query).nonzero()[0]
        found: dict[str, Any] = {"total": len(self.jobs), "matching": len(rows)}
        if query.group:
            return found | {"groups": self._grouped(query.group, rows)}
        key = SORTS[query.sort](self)[rows]
        if query.descending:
            key = -key.astype(np.float64)
        # Names break ties, so that pages of one order never overlap.
        order = np.lexsort((self.name_rank[rows], key))[query.offset : query.offset + query.rows]
        return found | {"offset": query.offset, "rows": [self.row(row) for row in rows[order].tolist()]}

    def row(self, row: int) -> dict[str, Any]:
        """Return one job as JSON."""
        jobs = self.jobs
        code = int(jobs.code[row])
        return {
            "name": jobs.names[row],
            "shown": jobs.shown[row],
            "queue": self.summary.queues.names[jobs.queue[row]],
            "state": STATES[jobs.state[row]],
            "code": CODES[code].value if code >= 0 else "",
            "sentence": jobs.sentences[row],
            "pods": int(jobs.pods[row]),
            "running": int(jobs.running[row]),
            "waiting": int(jobs.waiting[row]),
            "minimum": int(jobs.minimum[row]),
            "priority": int(jobs.priority[row]),
            "created": float(jobs.created[row]),
            "asks": jobs.asks[row].tolist(),
            "holds": jobs.holds[row].tolist(),
        }

    def matching(self, query: JobsQuery) -> Bool:
        """Return which jobs a query is about. Shape (J,). Raises: QueryError for an unknown queue."""
        jobs = self.jobs
        found = np.ones(len(jobs), dtype=bool)
        if query.state:
            found &= jobs.state == STATES.index(query.state)
        if query.code:
            found &= jobs.code == [code.value for code in CODES].index(query.code)
        if query.queue:
            found &= self.in_queue(query.queue)[jobs.queue]
        if query.text:
            names = zip(jobs.names, jobs.shown, strict=True)
            found &= np.fromiter((query.text in name or query.text in shown for name, shown in names), dtype=bool)
        return found

    def in_queue(self, name: str) -> Bool:
        """Return the queue of a name, and those below it. Shape (Q,)."""
        queues = self.summary.queues
        if name not in queues.names:
            raise QueryError(f"queue {name[:80]!r} does not exist")
        found = np.array([each == name for each in queues.names])
        # Depth by depth: as many steps as the tree has levels, also if parents form a circle.
        for _ in range(int(queues.depth.max(initial=0)) + 1):
            found |= np.where(queues.parent >= 0, found[queues.parent], False)
        return found

    def _grouped(self, group: str, rows: AnyArray) -> list[dict[str, Any]]:
        jobs, queues = self.jobs, self.summary.queues
        of_groups: dict[str, tuple[AnyArray, list[str]]] = {
            "queue": (jobs.queue, list(queues.names)),
            "state": (jobs.state, list(STATES)),
            "reason": (jobs.code, [*(code.value for code in CODES), ""]),
        }
        keys, names = of_groups[group]
        found = []
        for key in distinct(keys[rows]).tolist():
            members = rows[keys[rows] == key]
            asks = jobs.asks[members].sum(axis=0).tolist()
            waiting = int((jobs.code[members] >= 0).sum())
            found.append({"name": names[key], "jobs": len(members), "waiting": waiting, "asks": asks})
        found.sort(key=lambda each: (-each["jobs"], each["name"]))
        return found


def _ranks(names: Sequence[str]) -> AnyArray:
    """Return the place of each name in their order."""
    order = sorted(range(len(names)), key=names.__getitem__)
    ranks = np.empty(len(names), dtype=np.int64)
    ranks[order] = np.arange(len(names))
    return ranks
