"""Dry runs that need not be done again: the same gang in a domain whose nodes have not changed fits in the same way.

Only for jobs whose dry run depends on nothing else: one sub-job, no task placed yet, one class of tasks, no filter
that looks at single tasks. What was found is kept with the bytes of the domain's books and used while they are the
same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from pumice.columns.dtypes import F64
from pumice.columns.views import Task
from pumice.framework import points
from pumice.framework.placing import unopposed
from pumice.framework.session import Session
from pumice.framework.statement import Kind as OperationKind
from pumice.framework.statement import Operation, Plan
from pumice.volcano.alike import Aftermath
from pumice.volcano.worksheet import Worksheet

#: What a dry run depends on besides the domain.
Kind = tuple[object, ...]

#: Dry runs kept at most; when there are more, all are forgotten.
KNOWN_MAX = 20_000


@dataclass(slots=True)
class Candidate:
    """One domain in which the job could be placed. ``subs`` are the hypernodes its sub-jobs took there."""

    hypernode: int
    plan: Plan
    worksheet: Worksheet
    score: float
    works: bool
    subs: dict[int, int] = field(default_factory=dict)

    def candidate(self, worksheet: Worksheet) -> Candidate:
        """Itself: it was made for this very worksheet."""
        return self


@dataclass(slots=True)
class DryRun:
    """Positions in the sheet that were placed, and where; ``works`` False: the job did not fit. ``taken`` is the
    hypernode that its sub-job took, ``aftermath`` what the try left on the tasks of the sheet."""

    domain: int
    books: F64
    view: F64
    works: bool
    aftermath: Aftermath
    operations: tuple[tuple[OperationKind, tuple[int, ...], list[int]], ...] = ()
    position: int = 0
    score: float = 0.0
    taken: int = -1

    def candidate(self, worksheet: Worksheet) -> Candidate:
        """The same placement for the tasks of another, equal job."""
        (sub, sheet), *_ = worksheet.sheets.items()
        plan = tuple(
            Operation(kind, [sheet.rows[p] for p in positions], nodes) for kind, positions, nodes in self.operations
        )
        left = worksheet.copy()
        left.pop()
        left.sheets[sub].position = self.position
        if left.sheets[sub]:
            left.push(sub)
        return Candidate(self.domain, plan, left, self.score, self.works, {sub: self.taken})


class DryRuns:
    """Found in this action so far, by kind of job and domain."""

    def __init__(self, ssn: Session) -> None:
        self._ssn = ssn
        self._known: dict[tuple[Kind, int], DryRun] = {}

    @cached_property
    def _usable(self) -> bool:
        ssn = self._ssn
        return ssn.mergeable and ssn.rooms_by_class and not ssn.has(points.best_node)

    def recall(self, kind: Kind | None, hypernode: int) -> DryRun | None:
        """What an equal job found in the domain, if nothing there has changed since."""
        known = self._known.get((kind, hypernode)) if kind is not None else None
        if known is None:
            return None
        nodes, rows = self._ssn.tables.nodes, self._ssn.tables.tree.nodes[hypernode]
        same = (known.books == nodes.books[rows]).all() and (known.view == nodes.view[rows]).all()
        return known if same else None

    def note(self, kind: Kind, worksheet: Worksheet, found: Candidate, aftermath: Aftermath) -> None:
        """Keep what a dry run found."""
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        (sub, sheet), *_ = worksheet.sheets.items()
        position = {row: i for i, row in enumerate(sheet.rows)}
        nodes, rows = self._ssn.tables.nodes, self._ssn.tables.tree.nodes[found.hypernode]
        self._known[kind, found.hypernode] = DryRun(
            domain=found.hypernode,
            books=nodes.books[rows],
            view=nodes.view[rows],
            works=found.works,
            aftermath=aftermath,
            operations=tuple((op.kind, tuple(position[r] for r in op.rows), op.nodes) for op in found.plan),
            position=found.worksheet.sheets[sub].position,
            score=found.score,
            taken=found.subs.get(sub, -1),
        )

    def kind_of(self, job: int, worksheet: Worksheet) -> Kind | None:
        """What the dry run depends on besides the domain; None when on too much."""
        if not self._usable or len(worksheet.sheets) != 1:
            return None
        ssn, tables = self._ssn, self._ssn.tables
        (sub, sheet), *_ = worksheet.sheets.items()
        fresh = sheet.position == 0 and len(sheet.rows) == tables.jobs.size[job] and tables.subs.hypernode[sub] < 0
        if not fresh or not sheet.is_one_run or tables.jobs.has_policy[job] or tables.jobs.hypernode[job] >= 0:
            return None
        rows = sheet.rows
        if (tables.tasks.nominated[rows] >= 0).any() or tables.tasks.gate[rows].any():
            return None
        if not unopposed(ssn, Task(tables, rows[0]), ssn.all_nodes):
            return None
        missing = ssn.job_missing(job)
        allowed = ssn.allowed_count(int(tables.jobs.queue[job]), rows[0], max(1, missing))
        bound = ssn.topology.job_bound(job)
        roles = tuple(sorted(tables.jobs.role_min[job].items()))
        return (
            int(tables.tasks.cls[rows[0]]),
            int(tables.tasks.role[rows[0]]),
            len(rows),
            missing,
            allowed,
            bound,
            roles,
            int(tables.jobs.min_available[job]),
            ssn.topology.sub_bound(sub),
        )
