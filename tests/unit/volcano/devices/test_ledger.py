"""What is in use of cards, from cycle to cycle and within one."""

from __future__ import annotations

from pumice.model.decisions import Bind
from pumice.model.events import Gone, Seen, Undone
from pumice.model.pod import Pod
from pumice.testing.build import cluster, pod, podgroup, pods, policy, run, session
from pumice.testing.devices import shared_gpus, vgpu
from pumice.volcano.devices.cards import CORES, MEMORY, NUM
from tests.unit.volcano.devices.given import conf, has, said


def test_cards_given_in_the_last_cycle_are_taken_until_it_is_known_what_came_of_it() -> None:
    store = cluster(shared_gpus("n"), podgroup("g"), pods("g", 2, devices=vgpu(9000)))
    (first,) = run(store, conf()).decisions
    assert isinstance(first, Bind)
    store.assume([first])
    assert not run(store, conf()).binds
    store.apply(Undone(first.pod, first.uid))
    assert set(run(store, conf()).binds) == {first.pod}
    store.assume([first])
    bound = pod("g-0", "g", on="n", devices=vgpu(9000), annotations=said(first))
    store.apply(Seen(bound))
    assert not len(store.snapshot().tables.device_grants), "it says itself what it has"
    assert not run(store, conf()).binds
    store.apply(Gone(Pod, first.pod))
    assert set(run(store, conf()).binds) == {"ns/g-1"}


def test_nobody_is_bound_to_a_card_that_somebody_is_about_to_leave() -> None:
    there = has("old", "n", "n-0,NVIDIA,16384,0:", deletion=1.0)
    store = cluster(shared_gpus("n"), there, podgroup("g"), pods("g", 1, devices=vgpu(1000)))
    ran = run(store, conf())
    assert (ran.binds, ran.pipelined) == ({}, {"ns/g-0": "n"})


def test_a_placement_that_is_rolled_back_leaves_no_trace_on_cards() -> None:
    store = cluster(
        shared_gpus("n", 2), podgroup("g"), pods("g", 2, devices=vgpu(9000)), has("old", "n", "n-0,NVIDIA,50,5:")
    )
    ssn = session(store, conf())
    before, tasks = ssn.world.digest(), ssn.tables.tasks
    rows = [row for row in tasks.alive.nonzero()[0].tolist() if tasks.pods[row].name.startswith("g-")]
    old = next(row for row in tasks.alive.nonzero()[0].tolist() if tasks.pods[row].name == "old")
    with ssn.statement() as stmt:
        stmt.evict([old], "")
        assert stmt.allocate(rows[:1], [0]) is None
        assert stmt.pipeline(rows[1:], [0]) is None
        now, soon = (ssn.world.columns[f"deviceshare.{name}"].array[0] for name in ("now", "soon"))
        assert now[:, [NUM, MEMORY, CORES]].tolist() == [[1, 50, 5], [1, 9000, 0]]
        assert soon[:, [NUM, MEMORY, CORES]].tolist() == [[1, 9000, 0], [1, 9000, 0]]
    assert ssn.world.digest() == before


def test_without_pods_that_ask_nothing_is_kept_and_nobody_is_asked() -> None:
    ssn = session(cluster(shared_gpus("n"), podgroup("g"), pods("g", 1)), conf())
    assert not [name for name in ssn.world.columns if name.startswith("deviceshare.")]
    assert not [hook for hook in ssn.hooks.at(*policy(conf()).dialect.points.values()) if hook.plugin == "deviceshare"]
