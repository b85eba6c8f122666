"""What follows from node objects is built once for as long as none of them changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pumice.framework.cycle.session import Session
from pumice.framework.memo import Memo
from pumice.model.events import Gone, Seen
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.placing.derived import derived
from pumice.testing.build import cluster, node, pod, podgroup, policy, session

NOBODY = policy("tiers: []", actions="allocate")


class Sessions:
    """Sessions on one store with one memory; ``built`` counts how often an answer was made."""

    def __init__(self) -> None:
        zones = [node("a", labels={"zone": "x"}), node("b"), node("c", labels={"zone": "y"})]
        self.store, self.memo, self.built = cluster(zones, podgroup("g"), pod("p", "g")), Memo(), 0

    def open(self) -> Session:
        return session(self.store, NOBODY, memo=self.memo)

    def ask(self, question: str = "a question") -> int:
        """The answer to a question about nodes: how many answers were built before it was."""

        def build() -> int:
            self.built += 1
            return self.built

        return derived(self.open()).get(question, build)


def nothing(sessions: Sessions) -> None: ...


def a_pod_is_bound(sessions: Sessions) -> None:
    sessions.store.apply(Seen(pod("p", "g", on="a")))


def a_pod_goes(sessions: Sessions) -> None:
    sessions.store.apply(Gone(Pod, "ns/p"))


def a_label_is_new(sessions: Sessions) -> None:
    sessions.store.apply(Seen(node("b", labels={"zone": "x"})))


def a_node_comes(sessions: Sessions) -> None:
    sessions.store.apply(Seen(node("d")))


def a_node_goes(sessions: Sessions) -> None:
    sessions.store.apply(Gone(Node, "c"))


@pytest.mark.parametrize(
    ("happens", "built"),
    [
        (nothing, 1),
        (a_pod_is_bound, 1),
        (a_pod_goes, 1),
        (a_label_is_new, 2),
        (a_node_comes, 2),
        (a_node_goes, 2),
    ],
)
def test_it_is_built_anew_when_a_node_object_changes(happens: Callable[[Sessions], Any], built: int) -> None:
    sessions = Sessions()
    assert sessions.ask() == 1
    happens(sessions)
    assert sessions.ask() == built


def test_each_question_has_its_own_answer() -> None:
    sessions = Sessions()
    assert [sessions.ask(question) for question in ("one", "another", "one")] == [1, 2, 1]


def test_a_label_of_all_nodes() -> None:
    ssn = Sessions().open()
    facts = derived(ssn)
    zone = facts.label("zone")
    assert (zone.codes.tolist(), zone.values, len(facts)) == ([0, -1, 1], ["x", "y"], 3)
    assert facts.label("zone") is zone, "kept"
    assert derived(ssn) is facts, "whoever asks in a session asks the same"
    assert facts.label("rack").codes.tolist() == [-1, -1, -1]


def test_labels_that_no_node_has_share_one_column() -> None:
    facts = derived(Sessions().open())
    labels = [facts.label(key) for key in ("rack", "room", "")]

    assert labels[0] is labels[1] is labels[2]
    assert (labels[0].values, labels[0].codes.tolist(), labels[0].domain_of.tolist()) == ([], [-1] * 3, [0] * 4)
    assert sorted(facts.label("zone").values) == ["x", "y"]
