"""Hints about claims of volumes and devices say what they need, for all pods that wait."""

from __future__ import annotations

import pytest

from pumice.model.blockers import NodeFilter
from pumice.model.blockers.changes import AttachMore, Change, OfferDevices, OfferVolume
from pumice.reasons.nodes import for_pods
from pumice.reasons.sentences import sentence


@pytest.mark.parametrize(
    ("change", "needs"),
    [
        (OfferDevices("gpu.com", 1), "1 free device of class gpu.com"),
        (OfferDevices("gpu.com", 2), "2 free devices of class gpu.com"),
        (OfferDevices("gpu.com", 2, nodes=4), "2 free devices of class gpu.com on each of 4 nodes"),
        (OfferVolume("local", 5.0 * 1024**3), "1 volume of class local with 5 GiB"),
        (AttachMore("csi.com", 1, nodes=2), "2 nodes that can each attach 1 more volume of csi.com"),
        (AttachMore("csi.com", 1), "nodes that can attach 1 more volume of csi.com"),
    ],
)
def test_a_hint_names_what_claims_need(change: Change, needs: str) -> None:
    assert sentence(NodeFilter("predicates", 2, 3, "no", (change,))) == f"2 of 3 nodes: no; it needs {needs}"


def test_each_pod_that_waits_needs_as_much() -> None:
    found = NodeFilter("predicates", 2, 3, "no", (OfferDevices("gpu.com", 2), OfferVolume("local", 1.0)))
    assert for_pods(found, 3, apart=False).lift == (OfferDevices("gpu.com", 6), OfferVolume("local", 1.0, 3))
    on_each = OfferDevices("gpu.com", 2, nodes=3), OfferVolume("local", 1.0, nodes=3)
    assert for_pods(found, 3, apart=True).lift == on_each
    plain = NodeFilter("predicates", 2, 3, "no")
    assert for_pods(plain, 3, apart=True) is plain
