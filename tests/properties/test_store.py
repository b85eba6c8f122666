"""However the store came to know a cluster, its tables are the same."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.model.config_map import ConfigMap
from pumice.model.events import Gone, Object, Seen
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.model.queue import PriorityClass, Queue
from pumice.model.topology import HyperNode
from pumice.model.workloads.composite import CompositePodGroup
from pumice.model.workloads.podgroup import PodGroup
from pumice.model.workloads.workload import Workload
from pumice.state.store import Store
from tests.properties.changes import BESIDE, changes, key_in_kind
from tests.properties.named import disagreements, named
from tests.properties.worlds import Shape, worlds


def fresh(objects: list[Object]) -> Store:
    """A store that sees each object once."""
    store = Store()
    for item in objects:
        store.apply(Seen(item))
    return store


def key_of(item: Object) -> tuple[type[Object], str]:
    return type(item), key_in_kind(item)


@given(objects=worlds(Shape(topology=True)), dice=st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_order_of_arrival_does_not_matter(objects: list[Object], dice: Random) -> None:
    wanted = named(fresh(objects))
    shuffled = dice.sample(objects, len(objects))
    store = Store()
    for item in shuffled:
        store.apply(Seen(item))
        if dice.random() < 0.3:
            store.snapshot()
    assert not disagreements(named(store), wanted)
    for item in dice.sample(objects, len(objects)):
        store.apply(Seen(item))  # seeing the same thing again is harmless
    assert not disagreements(named(store), wanted)


@given(objects=worlds(Shape(topology=True, nodes_max=4, jobs_max=3)), data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_history_ends_like_a_fresh_start(objects: list[Object], data: st.DataObject) -> None:
    """S9: what was kept by increments is what is recomputed."""
    store, now = fresh(objects), {key_of(item): item for item in objects}
    for _ in range(data.draw(st.integers(1, 8))):
        event = data.draw(changes(list(now.values())))
        store.apply(event)
        if isinstance(event, Gone):
            del now[event.kind, event.key]
        else:
            now[key_of(event.obj)] = event.obj
        if data.draw(st.booleans()):
            store.snapshot()
    found, wanted = named(store), named(fresh(list(now.values())))
    assert not disagreements(found, wanted)


def test_every_kind_of_object_can_change() -> None:
    """The strategy of changes knows all kinds but those of which PodGroups and pods are made before the store."""
    known = {*BESIDE, Pod, Node, PodGroup, Queue, PriorityClass, HyperNode}
    assert set(Object.__args__) == known | {CompositePodGroup, ConfigMap, Workload}
