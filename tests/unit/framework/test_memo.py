"""The one cache: when an answer holds, what is forgotten, and what one cycle hands to the next."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.column import Column, Versions
from pumice.columns.snapshot import Snapshot
from pumice.framework import memo as module
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.world import World
from pumice.framework.memo import Memo, ground, ground_of_rows
from pumice.framework.plugin.policy_file import Policy
from pumice.model.decisions import Bind
from pumice.model.events import Seen
from pumice.runtime.loop import ListPlanner
from pumice.state.store import Store
from pumice.testing.build import cluster, node, pod, podgroup, pods, policy, queue, resource
from pumice.volcano.accounting import ACCOUNTING

POLICY = policy("tiers: []", actions="allocate")


class Asking:
    """Puts a question to a memo, and counts how often it had to be answered anew."""

    def __init__(self, memo: Memo) -> None:
        self.memo, self.answered = memo, 0

    def __call__(self, question: Any = "q", *rests_on: Any, size: int = 0) -> int:
        def build() -> int:
            self.answered += 1
            return self.answered

        return self.memo.get(question, rests_on, build, size)


# -- what is true of rows


STAMPS, FAILED = np.array([5, 6, 7]), np.array([0, 0, 9])


@pytest.mark.parametrize(
    ("stamps", "failed", "kept"),
    [
        pytest.param([5, 6, 7], [0, 0, 9], [True, False, True], id="rows that were kept, as they were"),
        pytest.param([8, 6, 7], [0, 0, 9], [False, False, True], id="not a row with another stamp"),
        pytest.param([5, 6, 7], [0, 0, 3], [True, False, False], id="nor where the second stamp is another"),
        pytest.param([5, 6, 7, 8], [0, 0, 9, 0], [False] * 4, id="none of a table that has grown"),
    ],
)
def test_rows_are_kept_while_all_their_stamps_are_the_same(
    stamps: list[int], failed: list[int], kept: list[bool]
) -> None:
    memo = Memo()
    memo.keep_rows("q", np.array([True, False, True]), STAMPS, FAILED)
    assert memo.rows_kept("q", np.array(stamps), np.array(failed)).tolist() == kept
    assert not memo.rows_kept("r", STAMPS, FAILED).any(), "another question"


def test_stamps_that_are_written_on_later_are_not_those_that_were_kept() -> None:
    memo, stamps, failed = Memo(), STAMPS.copy(), FAILED.copy()
    memo.keep_rows("q", np.ones(3, dtype=bool), stamps, failed)
    stamps[0], failed[1] = 50, 60
    assert memo.rows_kept("q", stamps, failed).tolist() == [False, False, True]


# -- when an answer holds


@pytest.mark.parametrize(
    ("first", "second", "answered"),
    [
        pytest.param(("q", 1), ("q", 1), 1, id="the same question on the same ground"),
        pytest.param(("q", 1), ("q", 2), 2, id="other ground"),
        pytest.param(("q", 1), ("r", 1), 2, id="another question"),
        pytest.param(("q", 1), ("q", 1, 2), 2, id="more ground"),
        pytest.param(("q", (1, b"ab")), ("q", (1, b"ab")), 1, id="equal ground is the same"),
        pytest.param((("q", 1),), (("q", 1),), 1, id="and so are equal questions"),
    ],
)
def test_when_a_question_is_answered_anew(first: Any, second: Any, answered: int) -> None:
    ask = Asking(Memo())
    ask(*first)
    ask(*second)
    assert ask.answered == answered


def test_a_state_that_comes_back_is_known_again_while_nothing_was_found_out_in_between() -> None:
    ask = Asking(Memo())
    ask("q", 1)
    assert ask.memo.recall("q", (2,)) is None, "looking for what is not there forgets nothing"
    ask("q", 1)
    assert ask.answered == 1


def test_only_the_last_answer_is_kept() -> None:
    ask = Asking(Memo())
    assert [ask("q", ground) for ground in (1, 2, 1)] == [1, 2, 3]


def test_what_keeps_nothing_answers_every_question_anew() -> None:
    ask = Asking(Memo(keeps=False))
    assert [ask("q", 1) for _ in range(3)] == [1, 2, 3]
    assert ask.memo.recall("q", (1,)) is None


def test_what_is_kept_may_be_recalled() -> None:
    memo = Memo()
    assert memo.keep("q", (1,), "answer") == "answer"
    assert (memo.recall("q", (1,)), memo.recall("q", (2,)), memo.recall("r", (1,))) == ("answer", None, None)


# -- grounds


def test_ground_of_columns_is_their_versions() -> None:
    versions = Versions(7)
    columns = [Column(np.zeros(2), versions.next()) for _ in range(3)]
    assert ground(*columns) == (7, 8, 9)
    assert ground() == ()


def test_ground_of_rows_is_their_stamps() -> None:
    stamps = np.array([5, 6, 7, 8])
    assert ground_of_rows(stamps, np.array([1, 3])) == np.array([6, 8]).tobytes()
    assert ground_of_rows(stamps, np.array([1, 3])) != ground_of_rows(stamps, np.array([3, 1]))
    with pytest.raises(AssertionError, match="keeps no stamps"):
        ground_of_rows(None, np.array([0]))


# -- row by row


def test_only_rows_that_changed_are_asked_about() -> None:
    memo, asked = Memo(), []

    def of(rows: Any) -> Any:
        asked.append(rows.tolist())
        return rows * 10

    stamps = np.array([1, 1, 1])
    assert memo.by_row("q", (), stamps, of).tolist() == [0, 10, 20]
    stamps[1] = 2
    assert memo.by_row("q", (), stamps, of).tolist() == [0, 10, 20]
    memo.by_row("q", (), stamps, of)
    assert asked == [[0, 1, 2], [1]]
    memo.by_row("q", ("other ground",), stamps, of)
    memo.by_row("q", ("other ground",), np.array([1, 2, 1, 1]), of)
    assert asked[2:] == [[0, 1, 2], [0, 1, 2, 3]], "other ground, and another number of rows"


def test_an_answer_that_was_given_stays_as_it_was() -> None:
    memo, stamps = Memo(), np.array([1, 1])
    given = memo.by_row("q", (), stamps, lambda rows: rows.astype(float))
    stamps[0] = 2
    memo.by_row("q", (), stamps, lambda rows: np.full(len(rows), 9.0))
    assert given.tolist() == [0, 1]


def test_an_answer_in_which_no_row_is_another_is_the_one_of_before() -> None:
    memo, stamps = Memo(), np.array([1, 1])
    given = memo.by_row("q", (), stamps, lambda rows: rows.astype(float))
    stamps[1] = 2
    assert memo.by_row("q", (), stamps, lambda rows: rows.astype(float)) is given
    assert memo.by_row("q", (), stamps, lambda rows: rows + 5.0) is given, "its rows are known as they are now"


# -- what is forgotten


def test_what_nobody_asks_for_is_forgotten_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWERS_MAX", 10)
    ask = Asking(Memo())
    ask("often", 1)
    for number in range(100):
        ask(("seldom", number), 1)
        ask("often", 1)
    assert ask.answered == 101, "what is asked for again and again is kept"
    kept = [number for number in range(100) if ask.memo.recall(("seldom", number), (1,)) is not None]
    assert 0 < len(kept) <= 20 and kept[-1] == 99


def test_large_answers_are_forgotten_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BYTES_MAX", 1000)
    ask = Asking(Memo())
    for number in range(10):
        ask(number, 1, size=400)
    kept = [number for number in range(10) if ask.memo.recall(number, (1,)) is not None]
    assert kept and len(kept) <= 6 and kept[-1] == 9


# -- from one cycle to the next


def made(world: World, memo: Memo, values: list[float]) -> Column[Any]:
    """A plugin's column of nodes, as it makes it while it opens."""
    _, column = world.column("a.share", "node", values=np.array(values))
    memo.begin_column(world, "a.share")
    return column


def begun(memo: Memo, snapshot: Snapshot, *under: Any, now: float = 0.0, conf: Policy = POLICY) -> World:
    world = World(snapshot, now, ACCOUNTING)
    memo.begin(world, conf, *under)
    return world


def state() -> Store:
    return cluster(node("n0"), node("n1"), podgroup("g"), pods("g", 2), podgroup("h", creation=1.0), pods("h", 1))


@pytest.mark.parametrize(
    ("second", "kept"),
    [
        pytest.param(lambda memo, store: begun(memo, store.snapshot()), True, id="the next cycle of a store"),
        pytest.param(lambda memo, store: begun(memo, state().snapshot()), False, id="a cycle of another store"),
        pytest.param(
            lambda memo, store: begun(memo, store.snapshot(), conf=policy("tiers: []", actions="backfill")),
            False,
            id="under another policy",
        ),
        pytest.param(lambda memo, store: begun(memo, store.snapshot(), "shard"), False, id="with another shard"),
    ],
)
def test_for_whom_answers_hold(second: Any, kept: bool) -> None:
    store, memo = state(), Memo()
    memo.end(begun(memo, store.snapshot()))
    memo.keep("q", (1,), "answer")
    second(memo, store)
    assert (memo.recall("q", (1,)) == "answer") is kept


MOVES = {
    "nothing": (lambda store: None, set(), set()),
    "a bind": (lambda store: store.assume([Bind("ns/g-0", "ns-g-0", "n1", "ns/g")]), {1}, {0}),
    "a group that waits on": (
        lambda store: store.apply(Seen(podgroup("h", creation=1.0, phase="Inqueue"))),
        set(),
        {1},
    ),
    "a queue that says what it holds": (lambda store: store.apply(Seen(queue(allocated=resource(1)))), set(), set()),
}


@pytest.mark.parametrize(("event", "nodes", "jobs"), MOVES.values(), ids=MOVES)
def test_rows_that_no_event_touched_have_the_stamps_of_before(event: Any, nodes: set[int], jobs: set[int]) -> None:
    store, memo = state(), Memo()
    first = begun(memo, store.snapshot())
    before = {name: getattr(first.tables, name).stamps.copy() for name in ("nodes", "jobs")}
    memo.end(first)
    event(store)
    second = begun(memo, store.snapshot())
    for name, changed in (("nodes", nodes), ("jobs", jobs)):
        found = (getattr(second.tables, name).stamps != before[name]).nonzero()[0]
        assert set(found.tolist()) == changed


@pytest.mark.parametrize(
    ("store", "event"),
    [
        pytest.param(state(), queue("q", capability=resource(gpu=1)), id="a queue speaks of it"),
        pytest.param(state(), node("n1", gpu=1), id="a node offers it"),
        pytest.param(state(), pod("g-0", "g", gpu=1), id="a pod asks for it"),
        pytest.param(cluster(podgroup("g")), queue("q", capability=resource(gpu=1)), id="there is no node"),
    ],
)
def test_a_resource_that_nobody_had_counted_is_news_of_every_node(store: Store, event: Any) -> None:
    memo = Memo()
    first = begun(memo, store.snapshot())
    memo.end(first)
    store.apply(Seen(event))
    second = begun(memo, store.snapshot())
    assert second.tables.nodes["books"].version != first.tables.nodes["books"].version
    assert not set(second.tables.nodes.stamps.tolist()) & set(first.tables.nodes.stamps.tolist())


def _placed(store: Store, memo: Memo, planner: ListPlanner, conf: Policy) -> tuple[Session, Any]:
    """A cycle that has put the first task on the second node, and the stamps of nodes as it began."""
    ssn = Session(store.snapshot(), conf, 0.0, planner, memo)
    ssn.open()
    before = ssn.tables.nodes.stamps.copy(), ssn.tables.nodes["books"].version
    stmt = ssn.statement()
    stmt.allocate([0], [1])
    stmt.commit()
    memo.end(ssn.world)
    return ssn, before


def test_what_a_cycle_did_and_the_store_assumes_is_known_to_the_next() -> None:
    """What a cycle left is compared with what the store makes of it: equal bytes are the same version again."""
    store, memo, planner = state(), Memo(), ListPlanner()
    conf = policy("tiers: [{plugins: [{name: predicates}]}]", actions="allocate")
    first, before = _placed(store, memo, planner, conf)
    store.assume(planner.taken, first.tables)
    for _ in range(2):  # and to the one after it, though nothing was written since
        later = Session(store.snapshot(), conf, 0.0, planner, memo)
        assert (later.tables.nodes.stamps == first.tables.nodes.stamps).all()
        assert later.tables.jobs.stamps[0] != first.tables.jobs.stamps[0], "not worth finding out"
        assert later.tables.nodes["books"].version == first.tables.nodes["books"].version != before[1]
        assert later.tables.nodes["view"].version == first.tables.nodes["view"].version
        assert (later.tables.nodes.stamps != before[0]).nonzero()[0].tolist() == [1]
        memo.end(later.world)


def test_what_a_cycle_did_and_nobody_took_over_is_undone_in_the_next() -> None:
    store, memo = state(), Memo()
    conf = policy("tiers: [{plugins: [{name: predicates}]}]", actions="allocate")
    first, before = _placed(store, memo, ListPlanner(), conf)
    second = Session(store.snapshot(), conf, 0.0, ListPlanner(), memo)
    assert (second.tables.nodes.stamps != first.tables.nodes.stamps).nonzero()[0].tolist() == [1]
    assert second.tables.nodes["books"].version != first.tables.nodes["books"].version
    assert (second.tables.nodes.books == store.snapshot().tables.nodes.books).all()
    assert (second.tables.nodes.stamps == before[0]).all()


@pytest.mark.parametrize(("now", "same"), [(0.0, True), (1.0, False)])
def test_the_clock_has_a_version_too(now: float, same: bool) -> None:
    store, memo = state(), Memo()
    first = begun(memo, store.snapshot())
    memo.end(first)
    assert (begun(memo, store.snapshot(), now=now).now.version == first.now.version) is same


@pytest.mark.parametrize(
    ("values", "same", "rows"),
    [
        pytest.param([1.0, 2.0], True, set(), id="made anew, and equal"),
        pytest.param([1.0, 3.0], False, {1}, id="one row is another"),
    ],
)
def test_a_column_that_a_plugin_makes_anew(values: list[float], same: bool, rows: set[int]) -> None:
    store, memo = state(), Memo()
    first = begun(memo, store.snapshot())
    column = made(first, memo, [1.0, 2.0])
    memo.begun(first)
    stamps = first.tables.nodes.stamps.copy()
    memo.end(first)
    second = begun(memo, store.snapshot())
    again = made(second, memo, values)
    assert (again.version == column.version) is same
    assert set((second.tables.nodes.stamps != stamps).nonzero()[0].tolist()) == rows


@pytest.mark.parametrize(
    ("values", "as_was", "rows"),
    [
        pytest.param([1.0, 2.0], "begun", set(), id="what was done came to nothing"),
        pytest.param([1.0, 5.0], "ended", {1}, id="it was done"),
        pytest.param([1.0, 7.0], "", {1}, id="something else was"),
        pytest.param([3.0, 2.0], "", {0}, id="another row is another"),
    ],
)
def test_a_column_that_a_session_wrote(values: list[float], as_was: str, rows: set[int]) -> None:
    """It has the version of what it is again, and rows of which the plugin says otherwise have other stamps."""
    store, memo = state(), Memo()
    first = begun(memo, store.snapshot())
    column = made(first, memo, [1.0, 2.0])
    memo.begun(first)
    stamps, versions = first.tables.nodes.stamps.copy(), {"begun": column.version}
    first.journal.put(column, 1, 5.0)
    versions["ended"] = column.version
    memo.end(first)
    second = begun(memo, store.snapshot())
    again = made(second, memo, values)
    assert [name for name, version in versions.items() if version == again.version] == ([as_was] if as_was else [])
    assert set((second.tables.nodes.stamps != stamps).nonzero()[0].tolist()) == rows


def test_a_column_of_another_name_or_shape_is_new() -> None:
    store, memo = state(), Memo()
    first = begun(memo, store.snapshot())
    _, column = first.column("a.share", values=np.zeros(2))
    memo.begin_column(first, "a.share")
    memo.end(first)
    second = begun(memo, store.snapshot())
    for name, count in (("a.other", 2), ("a.share", 3)):
        _, other = second.column(name, values=np.zeros(count))
        memo.begin_column(second, name)
        assert other.version != column.version


def test_a_memo_that_keeps_nothing_holds_no_world() -> None:
    store, memo = state(), Memo(keeps=False)
    first = begun(memo, store.snapshot())
    memo.end(first)
    store.apply(Seen(pod("g-0", "g")))
    assert begun(memo, store.snapshot()).now.version != first.now.version


def test_a_column_that_had_no_row_goes_on_with_some() -> None:
    """A cluster without a node: then there are some, and what the plugin says of them is new."""
    store, memo = cluster(queue("default")), Memo()
    for objects, rows in (([], 0), ([node("n0")], 1)):
        for each in objects:
            store.apply(Seen(each))
        world = begun(memo, store.snapshot())
        _, column = world.column("a.shares", "node", values=np.ones((rows, 2)))
        memo.begin_column(world, "a.shares")
        memo.begun(world)
        memo.end(world)
        assert column.array.shape == (rows, 2)
