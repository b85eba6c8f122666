"""Nodes that were chosen ahead of need: they are used up in order, and hold while nothing else moves."""

from __future__ import annotations

from pumice.framework.cycle.session import Session
from pumice.framework.memo import Memo
from pumice.placing.batch import placing_of
from pumice.placing.k_best import LOOK_MAX
from pumice.placing.prefetch import PrefetchedPlacements
from pumice.testing.build import cluster, node, pods, session


class Chooser:
    """Chooses nodes 0, 1, …, as many as there are, and writes down how many were asked for."""

    def __init__(self, nodes: int = 10**6) -> None:
        self.nodes, self.asked = nodes, list[int]()

    def choose(self, count: int) -> list[int]:
        self.asked.append(count)
        return list(range(min(count, self.nodes)))


def opened() -> tuple[Session, PrefetchedPlacements]:
    ssn = session(cluster(node("n"), pods("g", 2)))
    return ssn, PrefetchedPlacements(ssn.memo, placing_of(ssn).feasible)


def test_what_is_taken_is_not_given_again() -> None:
    _, prefetched = opened()
    chooser = Chooser()
    assert prefetched.next("q", 2, chooser.choose) == [0, 1]
    prefetched.took(2)
    assert prefetched.next("q", 2, chooser.choose) == [0, 1], "none were left: they are chosen anew, and more of them"
    prefetched.took(1)
    assert prefetched.next("q", 2, chooser.choose) == [1, 2], "from where the last one stopped"
    assert chooser.asked == [2, 8]


def test_ever_more_are_chosen_up_to_a_bound() -> None:
    _, prefetched = opened()
    chooser = Chooser()
    for _ in range(8):
        count = len(prefetched.next("q", LOOK_MAX, chooser.choose))
        prefetched.took(count)
    assert set(chooser.asked) == {LOOK_MAX}
    assert len(prefetched.next("q", LOOK_MAX + 1, chooser.choose)) == LOOK_MAX + 1, "but as many as are wanted now"


def test_questions_are_kept_apart() -> None:
    _, prefetched = opened()
    one, other = Chooser(), Chooser()
    prefetched.next("one", 1, one.choose)
    prefetched.took(0)
    assert prefetched.next("other", 3, other.choose) == [0, 1, 2]
    assert (one.asked, other.asked) == ([1], [3])


def test_they_hold_no_longer_once_something_moved_otherwise() -> None:
    ssn, prefetched = opened()
    chooser = Chooser()
    prefetched.next("q", 1, chooser.choose)
    prefetched.took(0)
    prefetched.next("q", 1, chooser.choose)
    assert chooser.asked == [1], "nothing was taken"
    (row, _) = ssn.tables.tasks.alive.nonzero()[0].tolist()
    with ssn.statement() as stmt:
        stmt.allocate([row], [0])
        prefetched.next("q", 1, chooser.choose)
        assert chooser.asked == [1, 1]


def test_what_was_placed_without_them_uses_none_of_them_up() -> None:
    _, prefetched = opened()
    chooser = Chooser()
    prefetched.next("q", 3, chooser.choose)
    prefetched.none()
    prefetched.took(3)
    assert prefetched.next("q", 3, chooser.choose) == [0, 1, 2]
    assert chooser.asked == [3]


def test_fewer_where_no_node_is_left() -> None:
    _, prefetched = opened()
    assert prefetched.next("q", 5, Chooser(nodes=2).choose) == [0, 1]


def test_once_no_node_is_left_nobody_looks_for_one_again() -> None:
    ssn, _ = opened()
    for to_the_last, asked in ((True, [3]), (False, [3, 12])):
        chooser = Chooser(nodes=2)
        prefetched = PrefetchedPlacements(Memo(), placing_of(ssn).feasible, to_the_last=to_the_last)
        assert prefetched.next("q", 3, chooser.choose) == [0, 1] and not prefetched.none_is_left("q"), "two are"
        prefetched.took(2)
        assert prefetched.none_is_left("q") is to_the_last
        assert prefetched.next("q", 1, chooser.choose) == ([] if to_the_last else [0])
        assert chooser.asked == asked
