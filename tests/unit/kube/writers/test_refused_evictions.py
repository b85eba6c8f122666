"""A pod whose eviction is refused is spared for a while, so that no plan counts on it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pumice.kube.informers.informer_cache import InformerCache
from pumice.kube.writers.refused_evictions import RefusedEvictions
from pumice.model.decisions import Bind, Evict
from pumice.model.events import Gone, Seen, Undone
from pumice.model.pod import Pod
from pumice.testing.build import cluster, node, pod, run
from tests.unit.volcano.evicting import LEVELS, PREEMPT, gang

VICTIM = pod("r", on="n1", resource_version="1")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_an_eviction_that_is_refused_for_an_hour_is_tried_less_and_less() -> None:
    clock = Clock()
    spared, tried = RefusedEvictions(clock), 0
    for _ in range(3600):
        clock.now += 1.0
        spared.over()
        if not spared.marked(VICTIM).stays:
            tried += 1
            spared.refused(VICTIM.key, VICTIM.uid)
    assert 10 <= tried <= 20


def test_what_is_given_back_is_said_with_the_pod_that_stays() -> None:
    cache = InformerCache(lambda: None)
    cache.apply([Seen(VICTIM)])
    cache.drain()
    cache.give_back(Evict(VICTIM.key, VICTIM.uid, "n1", "ns/job", "preempt"))
    assert cache.drain() == [Undone(VICTIM.key, VICTIM.uid), Seen(replace(VICTIM, stays=True))]
    newer = replace(VICTIM, resource_version="2")
    cache.apply([Seen(newer)])  # whatever is heard of it meanwhile
    assert cache.drain() == [Seen(replace(newer, stays=True))]


@pytest.mark.parametrize(
    "end",
    [
        pytest.param([Gone(Pod, VICTIM.key), Seen(VICTIM)], id="it went, and is there again"),
        pytest.param([Seen(replace(VICTIM, uid="other"))], id="another one of the name"),
    ],
)
def test_another_pod_is_not_spared(end: list[Seen | Gone]) -> None:
    cache = InformerCache(lambda: None)
    cache.apply([Seen(VICTIM)])
    cache.give_back(Evict(VICTIM.key, VICTIM.uid, "n1", "ns/job", "preempt"))
    cache.drain()
    cache.apply(end)
    last = cache.drain()[-1]
    assert isinstance(last, Seen) and isinstance(last.obj, Pod) and not last.obj.stays


def test_a_bind_that_failed_spares_nobody() -> None:
    cache = InformerCache(lambda: None)
    cache.apply([Seen(VICTIM)])
    cache.drain()
    cache.give_back(Bind(VICTIM.key, VICTIM.uid, "n1", "ns/job"))
    assert cache.drain() == [Undone(VICTIM.key, VICTIM.uid)]


def test_no_plan_counts_on_a_pod_that_stays_and_none_goes_in_vain() -> None:
    group, *low = gang("low", 2, on="n")
    state = cluster(LEVELS, node("n", 2), group, *low, gang("high", 2, 2, level="high"))
    assert len(run(state, PREEMPT).evicted) == 2
    assert isinstance(low[0], Pod)
    state.apply(Seen(replace(low[0], stays=True)))
    assert run(state, PREEMPT).evicted == []
    state.apply(Seen(low[0]))
    assert len(run(state, PREEMPT).evicted) == 2
