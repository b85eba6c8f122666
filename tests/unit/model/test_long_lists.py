"""Lists within a pod are bounded; a pod that goes over a bound is named and counts as one that cannot be read does."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.model.manifest import Decoder
from pumice.model.manifest.decoder import Reading
from pumice.model.manifest.reading.bounds import ENTRIES_MAX, POD_TERMS_MAX
from pumice.model.pod import UNREAD_GATE, Pod
from pumice.sim.workloads.hostile_lists import LISTS

Raw = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
REQUEST = {"requests": {"cpu": "2"}}


def pod(spec: Raw, **more: Any) -> Raw:
    containers = [{"name": "c", "image": "i", "resources": REQUEST}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "n", "name": "a"},
        "spec": {"containers": containers, **spec, **more},
    }


def read(raw: Raw, decoder: Decoder | None = None) -> tuple[Pod, Reading]:
    reading = (decoder or Decoder()).read(raw)
    assert isinstance(reading.value, Pod)
    return reading.value, reading


@pytest.mark.parametrize("kind", LISTS)
def test_a_list_as_long_as_its_bound_is_read(kind: str) -> None:
    most, of = LISTS[kind]

    assert read(pod(of(0, most)))[1].error is None


@pytest.mark.parametrize("kind", LISTS)
def test_one_entry_more_holds_the_pod_back_and_says_how_many_there_may_be(kind: str) -> None:
    most, of = LISTS[kind]
    decoder = Decoder()
    for _ in range(2):  # the second one may not find the first one's spec in a cache
        found, reading = read(pod(of(0, most + 1)), decoder)

        assert UNREAD_GATE in found.gates
        assert f"found {most + 1} " in str(reading.error)
        assert str(reading.error).endswith(f"in one pod, wanted at most {most}")
        assert "Pod n/a: spec." in str(reading.error)


@pytest.mark.parametrize("kind", ["anti", "anti-keys", "ports", "containers", "pod-values"])
def test_a_pod_with_too_many_on_a_node_closes_the_node(kind: str) -> None:
    most, of = LISTS[kind]
    found, reading = read(pod(of(0, most + 1), nodeName="n1"))

    assert found.closes_node
    assert reading.effect == "it counts, and its node accepts no new pods"


def test_a_pod_with_too_many_node_terms_on_a_node_still_counts_and_leaves_it_open() -> None:
    most, of = LISTS["node-terms"]
    found, _ = read(pod(of(0, most + 1), nodeName="n1"))

    assert (found.closes_node, found.spec.request.milli_cpu) == (False, 2000.0)


def test_all_lists_of_terms_about_pods_share_one_bound() -> None:
    spread = LISTS["spread"][1](0, POD_TERMS_MAX)
    both = spread | LISTS["anti"][1](0, 1)

    assert read(pod(spread))[1].error is None
    assert f"topologySpreadConstraints: found {POD_TERMS_MAX + 1} terms about pods" in str(read(pod(both))[1].error)


def test_selectors_of_all_terms_share_one_bound() -> None:
    terms = [{"topologyKey": "z", "labelSelector": {"matchLabels": {f"l{k}": "v" for k in range(45)}}}] * 3
    error = read(pod({"affinity": {"podAntiAffinity": {REQUIRED: terms}}}))[1].error

    assert f"podAntiAffinity.{REQUIRED}[2]: found 135 selector entries in one pod" in str(error)
    assert str(error).endswith(f"at most {ENTRIES_MAX}")
