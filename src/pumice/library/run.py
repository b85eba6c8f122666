"""A simulation that was run: its figures, and its tables."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from pumice.library.columns.events import EVENT_COLUMNS, POD_COLUMNS, EventRecord, pod_rows
from pumice.library.columns.figures import FIGURE_COLUMNS, figure_rows
from pumice.library.columns.jobs import (
    JOB_COLUMNS,
    QUEUE_COLUMNS,
    WAIT_COLUMNS,
    queue_rows,
    run_job_rows,
    wait_rows,
)
from pumice.library.columns.nodes import RUN_NODE_COLUMNS, run_node_rows
from pumice.library.columns.problems import PROBLEM_COLUMNS, problem_rows
from pumice.library.errors import InputError
from pumice.library.html import html_facts
from pumice.library.table import Table
from pumice.library.text import screen
from pumice.reasons.words import short_name
from pumice.report.comparison import figures_of
from pumice.report.summary import Summary, summarise
from pumice.report.units import duration, percent
from pumice.sim.run import Run as SimRun
from pumice.sim.scenes.inputs import Inputs


class Run:
    """A simulation that was run. Tables are made when they are first looked at."""

    def __init__(self, run: SimRun, inputs: Inputs, policy: str, record: EventRecord | None) -> None:
        """``record``: its events, None if they were not kept."""
        self.run, self.policy, self._inputs, self._record = run, policy, inputs, record

    @property
    def digest(self) -> str:
        """The digest of all decisions: equal digests mean equal decisions."""
        return self.run.digest

    @property
    def ending(self) -> str:
        """Why it ended: done, stuck (jobs wait for ever), until, interrupted, or circles."""
        return self.run.result.ending.value

    @cached_property
    def summary(self) -> Summary:
        """The figures as values, from which the report and the text of ``pumice simulate`` are made."""
        return summarise(self.run)

    @cached_property
    def jobs(self) -> Table:
        """A row for each job in order of arrival."""
        return Table("jobs", JOB_COLUMNS, lambda: run_job_rows(self.run))

    @cached_property
    def waits(self) -> Table:
        """A row for each stretch of time in which one job waited for reasons of one code."""
        return Table("waits", WAIT_COLUMNS, lambda: wait_rows(self.run))

    @cached_property
    def queues(self) -> Table:
        """A row for each queue that has jobs."""
        return Table("queues", QUEUE_COLUMNS, lambda: queue_rows(self.summary.queues))

    @cached_property
    def nodes(self) -> Table:
        """A row for each node of the cluster at the start."""
        return Table("nodes", RUN_NODE_COLUMNS, lambda: run_node_rows(self._inputs.nodes, self._busy()))

    @cached_property
    def events(self) -> Table:
        """Everything that happened, in order. Raises: InputError if events were not kept."""
        return Table("events", EVENT_COLUMNS, self._kept("events").rows.copy)

    @cached_property
    def pods(self) -> Table:
        """A row for each time that a pod was bound. Raises: InputError if events were not kept."""
        record = self._kept("pods")
        return Table("pods", POD_COLUMNS, lambda: pod_rows(record.rows))

    @cached_property
    def figures(self) -> Table:
        """Waits, completion times, use, fairness: the figures that comparisons are about."""
        return Table("figures", FIGURE_COLUMNS, lambda: figure_rows(figures_of(self.summary)))

    @cached_property
    def problems(self) -> Table:
        """What was wrong with the input, and what the simulation found wrong."""
        found = (*self._inputs.scene.problems, *self.summary.problems)
        return Table("problems", PROBLEM_COLUMNS, lambda: problem_rows(found))

    def to_dict(self) -> dict[str, Any]:
        """Return the run as ``pumice simulate --json`` prints it, less what the command itself knows."""
        return self.summary.to_json()

    def _kept(self, table: str) -> EventRecord:
        if self._record is None:
            raise InputError(f"{table}: events of this run were not kept; simulate with events=True")
        return self._record

    def _busy(self) -> dict[str, float]:
        history = self.run.history
        rows, width_s, grid = history.heat()
        # The last column is cut off by the end of the run, so its weight is smaller.
        seconds = max(history.now - history.start, 0.0)
        if not seconds:
            return {}
        found = {}
        for nodes, shares in zip(rows, grid, strict=True):
            lengths = [max(min(seconds - i * width_s, width_s), 0.0) for i in range(len(shares))]
            mean = sum(share * length for share, length in zip(shares, lengths, strict=True)) / seconds
            found.update(dict.fromkeys(nodes, mean))
        return found

    # -- to look at ----------------------------------------------------------------------------------------------------

    def _facts(self) -> dict[str, str]:
        result, summary = self.run.result, self.summary
        facts = {
            "policy": self.policy,
            "ending": f"{self.ending} after {duration(result.simulated_s)}, {result.cycles:,} cycles",
            "jobs": f"{result.completed:,} of {result.jobs:,} done, {len(result.pending):,} waiting, "
            f"{len(result.running):,} running",
        }
        if summary.wait is not None:
            facts["wait"] = (
                f"mean {duration(summary.wait.mean)}, {summary.wait.text(summary.wait.p90, duration)} for 90 %"
            )
        if summary.completion is not None:
            facts["completion"] = f"mean {duration(summary.completion.mean)}"
        for use in summary.utilisation[:4]:
            facts[f"{short_name(use.resource)} use"] = percent(use.mean)
        return facts | {"digest": self.digest}

    def __repr__(self) -> str:
        facts = self._facts()
        width = max(map(len, facts))
        return screen(["run", *(f"  {name.ljust(width)}  {value}" for name, value in facts.items())])

    def _repr_html_(self) -> str:
        return html_facts("run", self._facts())
