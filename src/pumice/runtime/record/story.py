"""What happened to one job: each change of why it waits, and each decision about it, from a record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches

from msgspec import Struct

from pumice.answers.codes import Code, code_of
from pumice.model.decisions import Bind, Evict
from pumice.reasons.blockers import Blockers
from pumice.reasons.shown_names import ShownNames
from pumice.runtime.record.reading import End
from pumice.runtime.record.replay import ReplayedCycle

#: It waits for admission or for a node; it does not, and has pods with a node, or none (it was just admitted, or has no
#: pods yet); there is no such job any more.
WAITS, HOLDS_NODES, HAS_NO_NODE, IS_GONE = "waits", "holds nodes", "has no node", "is gone"


class JobChange(Struct, frozen=True):
    """A cycle after which something about the job was different. ``state``: one of those above. ``code``: of what was
    nearest in its way, None if it did not wait. ``bound``, ``evicted``: pods about which the cycle decided so."""

    cycle: int
    now: float
    state: str
    code: Code | None
    sentence: str
    bound: int = 0
    evicted: int = 0


def story(cycles: Iterable[ReplayedCycle | End], job: str) -> Iterator[JobChange | End]:
    """Yield the changes of a job, by its key or by what people call it, the oldest first, and where a file of the
    record ends early."""
    before: tuple[str, Code | None] | None = None
    for each in cycles:
        if isinstance(each, End):
            yield each
            continue
        found = change_after(each, job)
        if found is None and before is not None and before[0] != IS_GONE:
            found = JobChange(each.number, each.now, IS_GONE, None, "")
        if found is None:
            continue
        if found.bound or found.evicted or (found.state, found.code) != before:
            yield found
        before = found.state, found.code


def change_after(cycle: ReplayedCycle, job: str) -> JobChange | None:
    """Return how a job was after a cycle, None if there was no such job."""
    blockers, uids = Blockers(cycle.outcome), cycle.outcome.tables.jobs.uids
    shown = ShownNames(cycle.outcome.tables)
    row = next((row for row in cycle.outcome.live_jobs.tolist() if job in (uids[row], shown.of(uids[row]))), None)
    if row is None:
        return None
    bound = sum(isinstance(each, Bind) and each.job == uids[row] for each in cycle.decisions)
    evicted = sum(isinstance(each, Evict) and each.job == uids[row] for each in cycle.decisions)
    if row not in blockers.waiting.tolist():
        tables = cycle.outcome.tables
        holds = bool((tables.tasks.node[tables.jobs.tasks[row]] >= 0).any())
        return JobChange(cycle.number, cycle.now, HOLDS_NODES if holds else HAS_NO_NODE, None, "", bound, evicted)
    nearest = blockers.nearest(row)
    return JobChange(cycle.number, cycle.now, WAITS, code_of(nearest), shown.sentence(nearest), bound, evicted)


def waited_by_code(moments: Sequence[JobChange], until: float) -> dict[Code, float]:
    """Return for how many seconds a job waited for each reason, the longest first. ``until``: time of the last cycle.

    A reason holds from the cycle that found it to the next one that found another."""
    found: dict[Code, float] = {}
    ends = [*(each.now for each in moments[1:]), until]
    for each, end in zip(moments, ends, strict=False):
        if each.code is not None:
            found[each.code] = found.get(each.code, 0.0) + max(end - each.now, 0.0)
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


class JobNames:
    """The names of jobs that were seen, for a name that no job has. ``until``: time of the last cycle."""

    def __init__(self, wanted: str) -> None:
        self.wanted, self._seen, self.until = wanted, dict[str, None](), 0.0

    def watch(self, cycles: Iterable[ReplayedCycle | End]) -> Iterator[ReplayedCycle | End]:
        """Yield the cycles as they are."""
        for each in cycles:
            if isinstance(each, ReplayedCycle):
                self.until = each.now
                uids, shown = each.outcome.tables.jobs.uids, ShownNames(each.outcome.tables)
                self._seen.update(dict.fromkeys(shown.of(uids[row]) for row in each.outcome.live_jobs.tolist()))
            yield each

    @property
    def near(self) -> list[str]:
        """Return names like the one that is wanted."""
        named = [key for key in self._seen if key.rpartition("/")[2] == self.wanted.rpartition("/")[2]]
        return list(dict.fromkeys((*named, *get_close_matches(self.wanted, self._seen, 3, 0.5))))[:3]
