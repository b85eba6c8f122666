"""One small cluster that changes step by step, and all that is checked at each step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from pumice.columns.snapshot import Snapshot
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Planner
from pumice.framework.memo import Memo
from pumice.framework.plugin.policy_file import Policy
from pumice.model.decisions import Bind, Evict
from pumice.model.events import Event, Gone, Object, Seen
from pumice.model.pod import Pod
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.loop import ListPlanner
from pumice.state.store import Store
from pumice.testing import changes
from pumice.testing.build import cluster
from pumice.testing.changes import Change, Objects
from pumice.testing.checks import asking as ask
from pumice.testing.checks import cycles, undoing
from pumice.testing.checks.answers import Answers, Asking
from pumice.testing.checks.breach import Breach
from pumice.testing.checks.cycles import Cycle, Quiet
from pumice.testing.checks.grounds import NOTHING, answers_rest_on_what_is_declared
from pumice.testing.checks.questions import Context, Question, draw_context, questions_of
from pumice.testing.checks.twins import equal_jobs_are_answered_equally, with_twin
from pumice.testing.clusters import Alter, key_of

BEGIN = 1000.0


class Start(Struct, frozen=True):
    """Where a walk begins. ``step``: number of its first step, for the dice. ``contexts``: how many questions each hook
    is asked at a time. ``thorough``: at every step, everything is checked except files. ``file_every``: the cluster is
    saved and read at one step out of this many, or at none for 0."""

    seed: str
    policy: Policy
    plugins: tuple[str, ...]
    objects: tuple[Object, ...]
    now: float = BEGIN
    step: int = 0
    contexts: int = 3
    thorough: bool = False
    file_every: int = 3


@dataclass(slots=True)
class Tally:
    """``steps``: clusters that were checked. ``asked``: number of questions by hook."""

    steps: int = 0
    asked: Counter[str] = field(default_factory=Counter)


class Walk:
    """A cluster, its changes so far, and the objects before each of them (``states``)."""

    def __init__(self, start: Start, alter: Alter | None = None) -> None:
        self.start, self.alter = start, alter
        self.objects: Objects = {key_of(obj): obj for obj in start.objects}
        self.now, self.step = start.now, start.step
        self.changes: list[Change] = []
        self.states: list[Start] = []
        self.tally = Tally()
        self._memo, self._asking_memo = Memo(), Memo()
        self._contexts: list[Context] = []
        self._before: tuple[Asking, Answers] | None = None
        self._quiet: Quiet | None = None
        self._last: Cycle | None = None
        self._store = Store()
        # # Actions that run only for waiting jobs would make sessions idle, and an idle session asks no hook.
        actions = tuple(replace(action, only_for_waiting=False) for action in start.policy.actions)
        self._policy = replace(start.policy, actions=actions)

    def run(self, steps: int) -> None:
        """Check this many clusters, one change apart. Raises: Breach."""
        self._begin()
        for left in reversed(range(steps)):
            self._check()
            if left:
                self._happen(changes.next_change(self._dice("change"), self.objects, self.alter))

    def again(self, happened: Iterable[Change]) -> None:
        """Repeat a walk with known changes. Raises: Breach."""
        self._begin()
        self._check()
        for change in happened:
            self._happen(change)
            self._check()

    def glance(self) -> None:
        """Check only that every hook can be asked and that a cycle runs. Raises: Breach."""
        self._begin()
        snapshot = self._store.snapshot(self.now)
        asking = self._open(snapshot)
        asking.all(self._questions(asking), use=True)
        cycles.nothing_failed(cycles.cycle(snapshot, self.start.policy, self.now, Memo()), self.start.plugins)

    def _begin(self) -> None:
        self._store = cluster(list(self.objects.values()))
        self._store.keep_usage(self._policy.usage_windows)

    def _dice(self, what: str) -> Random:
        """Return dice for one purpose at this step, so that leaving one check out does not change another."""
        return Random(f"{self.start.seed}/{self.step}/{what}")

    # -- what happens -------------------------------------------------------------------------------------------------

    def _happen(self, change: Change) -> None:
        """Apply a change to the objects and to the store."""
        self.states.append(replace(self.start, objects=tuple(self.objects.values()), now=self.now, step=self.step))
        self.changes.append(change)
        self.step += 1
        self.now += change.seconds
        # A change of the clock alone leaves the promise of the last cycle to be checked: it may sleep until then.
        if not change.seconds:
            self._quiet = None
        for event in self._carried_out() if change.carries_out else [change.event]:
            if event is not None:
                changes.apply(self.objects, event)
                self._store.apply(event)

    def _carried_out(self) -> list[Event]:
        """Return what the last cycle decided and wrote, as events."""
        assert self._last is not None
        found: list[Event] = []
        for decision in self._last.decisions:
            pod = self.objects.get((Pod, decision.pod))
            if isinstance(pod, Pod) and isinstance(decision, Bind):
                found.append(Seen(replace(pod, node_name=decision.node, phase="Running", start_time=self.now)))
            elif isinstance(decision, Evict):
                found.append(Gone(Pod, decision.pod))
        for update in self._last.outcome.groups:
            group = self.objects.get((PodGroup, update.job))
            if isinstance(group, PodGroup):
                found.append(Seen(replace(group, status=update.status)))
        writes = self._last.outcome.writes
        self._store.remember(writes)
        return found

    # -- what is checked ----------------------------------------------------------------------------------------------

    def _check(self) -> None:
        """Check the cluster as it is now. Raises: Breach."""
        self.tally.steps += 1
        snapshot = self._store.snapshot(self.now)
        asking, before = self._open(snapshot), self._before
        questions = self._questions(asking)
        state = undoing.state_of(asking.ssn)
        answers = asking.all(questions, use=True)
        self.tally.asked.update(f"{q.plugin}: {q.where}" for q in answers)
        undoing.questions_leave_nothing(state, asking, list(answers))
        if before is not None:
            self._compare(before, asking, answers)
        self._check_asking(asking, list(answers), answers)
        undoing.rollback_restores(asking, list(answers), answers, self._dice("rollback"))
        self._check_others(snapshot, list(answers), answers)
        if self._is_due(2, 4):
            self._check_twins()
        self._before = (asking, answers)
        self._check_cycles(snapshot)

    def _compare(self, before: tuple[Asking, Answers], asking: Asking, answers: Answers) -> None:
        """Compare with the answers before the last change. Raises: Breach.

        If an answer changed that should not have, a new session is asked first, because a hook that answers differently
        every time breaks another rule than one that declares too little.
        """
        try:
            answers_rest_on_what_is_declared(before[0], asking, before[1], answers, self.changes[-1].text)
        except Breach:
            _same(
                self._open(self._store.snapshot(self.now)),
                list(answers),
                answers,
                "reads",
                "in the next session",
                NOTHING,
            )
            raise

    def _open(self, snapshot: Snapshot, memo: Memo | None = None, planner: Planner | None = None) -> Asking:
        """Return a session to ask in. Raises: Breach if a plugin cannot be opened."""
        ssn = Session(snapshot, self._policy, self.now, planner or ListPlanner(), memo or Memo(keeps=False))
        return opened(ssn, self.start.plugins)

    def _questions(self, asking: Asking) -> list[Question]:
        """Return questions about most of what was asked about before, and about something new."""
        dice, wanted = self._dice("questions"), self.start.contexts
        # One context is replaced at a time: most questions must be repeated after the change to show what it changed.
        while len(self._contexts) >= wanted:
            self._contexts.pop(0)
        while len(self._contexts) < wanted:
            context = draw_context(asking.names, dice)
            if context is None:
                break
            self._contexts.append(context)
        each = (questions_of(hook, key[2], context) for key, hook in asking.hooks.items() for context in self._contexts)
        return list(dict.fromkeys(question for question in each if question is not None))

    def _is_due(self, number: int, of: int) -> bool:
        """Return True if the check with this number is due at this step."""
        return self.start.thorough or self.step % of == number

    def _check_asking(self, asking: Asking, questions: Sequence[Question], answers: Answers) -> None:
        """Ask in other ways: one row at a time, in another order, about another job like it. Raises: Breach."""
        dice = self._dice("asking")
        if self._is_due(0, 4):
            ask.rows_are_single(asking, questions, answers, dice)
            ask.several_are_each(asking, questions)
        if self._is_due(1, 4):
            ask.order_does_not_matter(asking, questions, answers, dice)
            ask.comparisons_are_orders(asking, questions)
        if self._is_due(2, 4):
            ask.nodes_are_independent(asking, questions, answers)
        if self._is_due(3, 4):
            # Last, because these place tasks, which are taken back afterwards.
            ask.rows_after_more_are_what_they_will_be(asking, dice)
            ask.tasks_in_turn_follow_placements(asking, dice)
            ask.silence_is_for_the_class(asking, questions, dice)
            ask.silence_lasts(asking, questions, dice)

    def _check_others(self, snapshot: Snapshot, questions: Sequence[Question], answers: Answers) -> None:
        """Ask in other sessions on the same cluster: one in which every decision is refused, one with a memo, and, if
        the cluster has no history yet, one with its objects in another order. Raises: Breach."""
        dice = self._dice("others")
        if self._is_due(0, 2):
            refused = self._open(snapshot, planner=undoing.RefusingPlanner())
            undoing.refusal_restores(refused, questions, answers, dice)
        if self._is_due(1, 2):
            remembering = self._open(snapshot, self._asking_memo)
            _same(remembering, questions, answers, "memo", "with a memo")
            self._asking_memo.end(remembering.ssn.world)
        # After a change, the order in which objects came is part of the history, and rows may rightly differ.
        if not self.changes:
            objects = list(self.objects.values())
            other = cluster(dice.sample(objects, len(objects)))
            other.keep_usage(self._policy.usage_windows)
            _same(
                self._open(other.snapshot(self.now)),
                questions,
                answers,
                "order",
                "when its objects came in another order",
            )

    def _check_twins(self) -> None:
        """In a cluster with a copy of one job, which differs in one field."""
        dice = self._dice("twins")
        twins = with_twin(self.objects.values(), dice)
        if twins is None:
            return
        store = cluster(list(twins.objects))
        store.keep_usage(self._policy.usage_windows)
        snapshot = store.snapshot(self.now)
        equal_jobs_are_answered_equally(self._open(snapshot), twins, dice)
        policy, plugins = self.start.policy, self.start.plugins
        plain = cycles.cycle(snapshot, policy, self.now, Memo(keeps=False))
        cycles.memo_changes_nothing(cycles.cycle(snapshot, policy, self.now, Memo()), plain, plugins)

    def _check_cycles(self, snapshot: Snapshot) -> None:
        """Run cycles on the cluster and compare them. Raises: Breach."""
        policy, plugins = self.start.policy, self.start.plugins
        every = self.start.file_every
        read = cycles.through_a_file(snapshot, self.now) if every and self.step % every == 0 else snapshot
        plain = cycles.cycle(read, policy, self.now, Memo(keeps=False))
        cycles.nothing_failed(plain, plugins)
        try:  # a third cycle, on the snapshot without a memo, is only needed to tell what made the difference
            cycles.memo_changes_nothing(cycles.cycle(snapshot, policy, self.now, self._memo), plain, plugins)
        except Breach:
            if read is snapshot:
                raise
            seen = cycles.cycle(snapshot, policy, self.now, Memo(keeps=False))
            cycles.a_file_changes_nothing(plain, seen, plugins)
            raise
        cycles.sleeps_until_it_wakes(self._quiet, plain, self.now, plugins)
        self._quiet = cycles.quiet_until(plain, self.now) or self._quiet
        self._last = plain


def _same(
    asking: Asking, questions: Sequence[Question], answers: Answers, rule: str, when: str, advice: str = ""
) -> None:
    """Raise Breach if a question gets another answer in this session."""
    for question in questions:
        if asking.arguments(question) is None:
            continue
        found = asking.ask(question)
        if found != answers[question]:
            facts = [("asked", question.text), ("answer", answers[question]), (when, found)]
            raise Breach(rule, question.plugin, question.where, f"answers otherwise {when}", facts, advice or _SAME)


_SAME = (
    "The same cluster, the same answer: nothing may depend on the number of a row, on the order in which sets are gone"
    " through, on dice, or on what an earlier session left in a module."
)


def opened(ssn: Session, plugins: Sequence[str]) -> Asking:
    """Return a session with every plugin open. Raises: Breach."""
    try:
        ssn.open()
        return Asking(ssn, plugins)
    except Exception as error:
        plugin, hook = getattr(error, "plugin", plugins[0]), getattr(error, "hook", "")
        facts = [("at", getattr(error, "where", "?"))]
        raise Breach(
            "raises", plugin, f"{hook} at opening", str(getattr(error, "problem", error)), facts, _OPENING
        ) from error


_OPENING = "A plugin that cannot be opened stops every cycle: nothing is decided."
