"""What one scheduling cycle decided."""

from __future__ import annotations

from functools import cached_property

from pumice.library.columns.cycles import (
    CYCLE_JOB_COLUMNS,
    CYCLE_POD_COLUMNS,
    DECISION_COLUMNS,
    cycle_job_rows,
    cycle_pod_rows,
    decision_rows,
)
from pumice.library.html import html_facts
from pumice.library.table import Table
from pumice.library.text import screen
from pumice.runtime.one_cycle import Answer


class Cycle:
    """What one scheduling cycle decided. ``binds``: pod -> node."""

    def __init__(self, answer: Answer, policy: str) -> None:
        self.answer, self.policy = answer, policy
        self.digest, self.binds, self.pipelined = answer.digest, answer.binds, dict(answer.pipelined)
        self.evicted = [each.pod for each in answer.evicts]

    @cached_property
    def _pod_rows(self) -> list[tuple[object, ...]]:
        return cycle_pod_rows(self.answer)

    @cached_property
    def pods(self) -> Table:
        """A row for each pod that has not ended."""
        return Table("pods", CYCLE_POD_COLUMNS, lambda: self._pod_rows)

    @cached_property
    def jobs(self) -> Table:
        """A row for each PodGroup."""
        return Table("jobs", CYCLE_JOB_COLUMNS, lambda: cycle_job_rows(self.answer, self._pod_rows))

    @cached_property
    def decisions(self) -> Table:
        """A row for each decision, in the order in which they were taken, and then for each reservation."""
        return Table("decisions", DECISION_COLUMNS, lambda: decision_rows(self.answer))

    @property
    def faults(self) -> tuple[str, ...]:
        """Plugins that failed: the job that they were asked about was skipped."""
        return tuple(map(str, self.answer.outcome.faults))

    def _facts(self) -> dict[str, str]:
        found = self.answer
        facts = {
            "policy": self.policy,
            "pods": f"{len(found.binds):,} bound, {len(found.pipelined):,} pipelined, {len(found.evicts):,} evicted, "
            f"{len(found.unscheduled):,} waiting",
            "digest": found.digest,
        }
        return facts | ({"faults": self.faults[0]} if self.faults else {})

    def __repr__(self) -> str:
        return screen(["cycle", *(f"  {name:8} {value}" for name, value in self._facts().items())])

    def _repr_html_(self) -> str:
        return html_facts("cycle", self._facts())
