"""Questions about claims of devices in a session with pods that have claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pumice.columns.dtypes import Bool
from pumice.columns.rows import NodeRows
from pumice.columns.views import Node, Task, TaskClass
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.framework.plugin.filter_result import Code, Unfit
from pumice.framework.plugin.incremental import TaskFilter
from pumice.framework.plugin.point import PODS, ROWS
from pumice.model.decisions import CLAIMS
from pumice.placing.claims.filter import ClaimFilter
from pumice.placing.claims.ledger import COLUMNS, ClaimLedger, claim_ledger
from pumice.placing.claims.resolve import asking_by_devices
from pumice.placing.claims.searches import LOOKS_MAX

#: What the answers rest on.
CLAIM_READS = (ROWS, PODS, *COLUMNS)

TOO_MANY_SELECTORS = "its selectors take more steps than those of the claims before it left in this cycle"


class Claiming:
    """Answers questions about claims. ``ledger``: which claim holds which devices."""

    def __init__(self, ledger: ClaimLedger) -> None:
        self.ledger = ledger
        self._filter = ClaimFilter(ledger)
        self._claims = ledger.tables.classes.claims | asking_by_devices(ledger.tables)

    def register(self, ssn: Session, refused: Callable[[Task], Unfit | None]) -> None:
        """Register hooks for the plugin that is being opened."""
        ssn.add(points.pre_predicate, refused, CLAIM_READS)
        ssn.add(points.predicate, self.filter_of, CLAIM_READS)
        ssn.add(points.waits, self.waits, CLAIM_READS)
        ssn.add(points.on_allocate, self.ledger.placed)
        ssn.add(points.on_deallocate, self.ledger.left)
        ssn.add(points.bind_context, self.granted)

    def refused(self, task: Task, prefix: str = "") -> Unfit | None:
        """Return why no node needs to be examined, or None."""
        # Before claims are looked at, because that evaluates their selectors.
        if self.ledger.is_too_costly(task.row):
            return Unfit(prefix + TOO_MANY_SELECTORS, Code.UNRESOLVABLE, steps=LOOKS_MAX)
        problem = self.ledger.problem(task.row)
        return Unfit(prefix + problem, Code.UNRESOLVABLE) if problem else None

    def filter_of(self, cls: TaskClass) -> TaskFilter | None:
        """Return the filter for tasks of a class by their claims, or None if they have none."""
        return self._filter if self._claims[cls.row] else None

    def waits(self, task: Task, nodes: NodeRows) -> Bool | None:
        """Return the nodes on which the task must wait for devices, or None for none. Shape (rows,)."""
        return self._filter.waits(task, nodes)

    def granted(self, task: Task, node: Node) -> Mapping[str, object] | None:
        """Return what is passed on with the task's binding."""
        found = self.ledger.grants(task.row, node.row)
        # None for most tasks, so that their bindings carry no context.
        return {CLAIMS: found} if found else None


def claiming_of(ssn: Session) -> Claiming:
    """Return the object of the session. The first plugin that needs it makes it while it opens."""
    return ssn.shared(Claiming, lambda: Claiming(claim_ledger(ssn)))
