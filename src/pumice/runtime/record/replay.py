"""Run the cycles of a record again, and compare what they decide with what was decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from pumice.columns.snapshot import Snapshot
from pumice.columns.tables import Tables
from pumice.framework.cycle.observer import Observer, unobserved
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.cycle.ports import OutsideError
from pumice.framework.plugin.policy_file import Policy
from pumice.model.decisions import Decision, GateRemoval, PodGroupUpdate, PodNotice, Refusal, Writes
from pumice.model.events import News
from pumice.model.queue import QueueUsage
from pumice.model.resources import Resource
from pumice.runtime.digest import digest_of
from pumice.runtime.loop import Loop
from pumice.runtime.record.form import CycleRecord, Head
from pumice.runtime.record.reading import Begin, Conf, End, RecordError, Step, read_record
from pumice.state.store import Store

#: Makes a policy of a text that is read strictly unless the second argument is True. Raises: PolicyError.
PolicyOf = Callable[[str, bool], Policy]


class ReplayedCycle(Struct, frozen=True):
    """A cycle that was run again. ``recorded``, ``digest``: of the decisions then and now, "" for none. The outcome is
    valid until the next cycle is run."""

    number: int
    now: float
    conf: Conf
    policy: Policy
    snapshot: Snapshot
    outcome: Outcome
    decisions: tuple[Decision, ...]
    recorded: str
    digest: str

    @property
    def is_equal(self) -> bool:
        return self.recorded == self.digest


def replay(
    folder: Path, policy_of: PolicyOf, *, from_file: Path | None = None, observe: Observer = unobserved
) -> Iterator[ReplayedCycle | End]:
    """Yield every cycle of a record, and where a file of it ends before it should. ``from_file``: skip older ones.
    ``observe``: called with the name of each phase of the cycles as it begins.

    Raises: RecordError, PolicyError, OSError.
    """
    player: _Player | None = None
    conf, policies = Conf("", False), dict[Conf, Policy]()
    for entry in read_record(folder, from_file):
        match entry:
            case Begin(_, head):
                player = _Player(head, observe)
            case Conf():
                conf = entry
                if conf not in policies:
                    policies[conf] = policy_of(conf.text, conf.lenient)
            case Step(news, cycle) if player is not None:
                found = player.step(news, cycle, conf, policies[conf])
                if found is not None:
                    yield found
            case End():
                yield entry


class _Player:
    """A loop that is given what a file has."""

    def __init__(self, head: Head, observe: Observer) -> None:
        self._head: Head | None = head
        self._observe = observe
        self._store = Store(
            scheduler_names=head.scheduler_names,
            default_queue=head.default_queue,
            use_priority_classes=head.use_priority_classes,
            node_pool=head.node_pool,
        )
        self._cluster = _RecordedCluster()
        self._loop: Loop | None = None
        self._snapshot: Snapshot | None = None

    def step(self, news: Sequence[News], cycle: CycleRecord | None, conf: Conf, policy: Policy) -> ReplayedCycle | None:
        self._cluster.news += news
        loop = self._loop = self._loop or Loop(self._store, policy, self._cluster)
        if self._head is not None:
            head, self._head = self._head, None
            self._store.keep_usage(policy.usage_windows)
            loop.take_in()
            self._store.remember(_writes(head, self._store.snapshot(head.now).tables))
        if cycle is None:
            loop.take_in()
            return None
        loop.policy = policy
        self._cluster.refuse({int(place): Refusal(reason) for place, reason in cycle.refusals.items()})
        loop.outside = lambda: _RecordedPrograms(cycle.answers)
        outcome = loop.step(cycle.now, self._observe, self._saw)
        decisions = tuple(loop.decisions)
        digest = digest_of(cycle.now, decisions)[:16] if decisions else ""
        assert self._snapshot is not None
        snapshot, self._snapshot = self._snapshot, None
        return ReplayedCycle(cycle.number, cycle.now, conf, policy, snapshot, outcome, decisions, cycle.digest, digest)

    def _saw(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot


class _RecordedCluster:
    """Gives events and refuses decisions as a record says, and does nothing else."""

    def __init__(self) -> None:
        self.news: list[News] = []
        self._refusals: Mapping[int, Refusal] = {}
        self._submitted = 0

    def refuse(self, refusals: Mapping[int, Refusal]) -> None:
        """Refuse these of the next cycle's decisions, by their number among all."""
        self._refusals, self._submitted = refusals, 0

    def drain(self) -> Sequence[News]:
        news, self.news = self.news, []
        return news

    def submit(self, decisions: Sequence[Decision]) -> Mapping[int, Refusal]:
        first, self._submitted = self._submitted, self._submitted + len(decisions)
        places = range(len(decisions)) if self._refusals else ()
        return {place: self._refusals[first + place] for place in places if first + place in self._refusals}

    def write_group(self, update: PodGroupUpdate) -> None: ...

    def write_queue(self, name: str, allocated: Resource, usage: QueueUsage | None = None) -> None: ...

    def remove_gate(self, removal: GateRemoval) -> None: ...

    def notice(self, notice: PodNotice) -> None: ...


class _RecordedPrograms:
    """Gives the answers of a record, in their order."""

    def __init__(self, answers: Sequence[tuple[bool, Any]]) -> None:
        self._answers = iter(answers)

    def ask(self, url: str, question: Mapping[str, object], within_s: float) -> Mapping[str, object]:
        is_answer, answer = next(self._answers, (False, "the record has no further answer"))
        if not is_answer:
            raise OutsideError(str(answer))
        if not isinstance(answer, dict):
            raise RecordError("an answer of a program in the record is not an object")
        return answer


def _writes(head: Head, tables: Tables) -> Writes:
    """Return what the store of the record remembered, by rows of another one."""
    kept = head.remembered
    return Writes(
        notes=kept.notes,
        job_hypernodes=_by_row(kept.jobs, tables.jobs, tables),
        sub_hypernodes=_by_row(kept.subs, tables.subs, tables),
    )


def _by_row(names: Mapping[str, str], table: Any, tables: Tables) -> dict[int, int]:
    rows = {uid: row for row, uid in enumerate(table.uids) if uid in names} if names else {}
    places = tables.tree.row_of
    return {rows[uid]: places[name] for uid, name in names.items() if uid in rows and name in places}


class Place(Struct, frozen=True):
    """Where a cycle is in a record: the file, and the number of the cycle."""

    path: Path
    number: int


def newest(folder: Path, wanted: Callable[[CycleRecord], bool]) -> Place | None:
    """Return where the newest cycle is that is wanted, None if there is none. Raises: RecordError, OSError."""
    path, found = folder, None
    for entry in read_record(folder):
        match entry:
            case Begin(path, _):
                pass
            case Step(_, CycleRecord() as cycle) if wanted(cycle):
                found = Place(path, cycle.number)
    return found


def cycle_at(folder: Path, place: Place, policy_of: PolicyOf) -> ReplayedCycle:
    """Run the cycles of a file up to one of them, and return that. Raises: RecordError, PolicyError, OSError."""
    for each in replay(folder, policy_of, from_file=place.path):
        if isinstance(each, ReplayedCycle) and each.number == place.number:
            return each
    raise RecordError(f"{place.path}: cycle {place.number} is not there")
