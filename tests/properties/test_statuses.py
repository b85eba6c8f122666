"""Jobs whose status is found in order, and not looked at again until they change, miss nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pumice.framework.memo import Memo
from pumice.model.events import Event, Gone, Object, Seen, Undone
from pumice.model.pod import Pod
from pumice.model.workloads.podgroup import PodGroup
from pumice.state.store import Store
from pumice.testing.build import Ran, policy, run
from tests.properties.changes import changes
from tests.properties.worlds import Shape, worlds

CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: sla}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}MORE]
"""
CONFS = {
    "plain": CONF.replace("MORE", ""),
    "topology": CONF.replace("MORE", ", {name: network-topology-aware}"),
    "allocate-only": CONF.replace("MORE", "").replace("enqueue, allocate, backfill", "allocate"),
}
Keyed = dict[tuple[type[Object], str], Object]


def key_of(item: Object) -> tuple[type[Object], str]:
    return type(item), item.key if isinstance(item, Pod | PodGroup) else item.name


class Pair:
    """One cluster, and two who run cycles on it: one with a memory of which jobs were in order, one without."""

    def __init__(self, objects: list[Object], conf: str) -> None:
        self.settling, self.plain, self.policy = Store(), Store(), policy(conf)
        self.memos = {id(self.settling): Memo(), id(self.plain): Memo(keeps=False)}
        self.now: Keyed = {}
        self.time = 0.0
        for item in objects:
            self.apply(Seen(item))

    def apply(self, event: Event) -> None:
        """Let it happen, and both see it."""
        for store in (self.settling, self.plain):
            store.apply(event)
        if isinstance(event, Gone):
            self.now.pop((event.kind, event.key), None)
        elif isinstance(event, Seen):
            self.now[key_of(event.obj)] = event.obj

    def cycle(self) -> Ran:
        """A cycle of each; what they say must be the same, and is written."""
        self.time += 1.0
        ours, plain = (self._run(store) for store in (self.settling, self.plain))
        assert ours.decisions == plain.decisions
        assert ours.outcome.groups == plain.outcome.groups
        for store in (self.settling, self.plain):
            store.remember(ours.outcome.writes)
            store.assume(ours.decisions)
        for update in ours.outcome.groups:
            group = self.now[PodGroup, update.job]
            assert isinstance(group, PodGroup)
            self.apply(Seen(replace(group, status=update.status)))
        return ours

    def _run(self, store: Store) -> Ran:
        return run(store, self.policy, now=self.time, memo=self.memos[id(store)])


def aftermath(data: st.DataObject, pair: Pair, ran: Ran) -> None:
    """Of what was decided some comes true, some does not, and of some nothing is heard."""
    for decision in ran.decisions:
        pod = pair.now[Pod, decision.pod]
        assert isinstance(pod, Pod)
        match data.draw(st.sampled_from(["runs", "runs", "refused", "nothing yet"])):
            case "runs":
                pair.apply(Seen(replace(pod, node_name=decision.node, phase="Running")))
            case "refused":
                pair.apply(Undone(decision.pod, decision.uid))


@pytest.mark.parametrize("conf", CONFS.values(), ids=CONFS)
@given(objects=worlds(Shape(topology=True, nodes_max=3, jobs_max=4, tasks_max=4)), data=st.data())
@settings(max_examples=25, deadline=None)
def test_same_statuses_with_and_without(conf: str, objects: list[Object], data: st.DataObject) -> None:
    pair = Pair(objects, conf)
    for _ in range(data.draw(st.integers(3, 8))):
        aftermath(data, pair, pair.cycle())
        for _ in range(data.draw(st.integers(0, 2))):
            pair.apply(data.draw(changes(list(pair.now.values()))))
