"""Hints about claims of volumes and devices say what they need, for all pods that wait."""

from __future__ import annotations

import pytest

from pumice.answers.codes import Code, code_of
from pumice.model.blockers import NodeFilter, SharedClaim
from pumice.model.blockers.changes import AttachMore, Change, OfferDevices, OfferVolume
from pumice.model.volumes import PersistentVolumeClaim
from pumice.reasons.nodes import for_pods
from pumice.reasons.sentences import sentence
from pumice.reasons.shared_claims import shared_claim
from pumice.reasons.view import View
from pumice.testing.build import cluster, node, podgroup, pods, run


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


def test_a_claim_that_pods_of_a_gang_share_ties_them_to_one_node() -> None:
    found = SharedClaim("ResourceClaim", "gpu", 3)
    text = "3 of its pods share ResourceClaim gpu, which can be used on one node only, and no node takes all of them"
    assert (sentence(found), code_of(found)) == (text, Code.DEVICE)


@pytest.mark.parametrize(("mode", "is_named"), [("ReadWriteOnce", True), ("ReadWriteMany", False)])
def test_a_volume_for_one_node_at_a_time_that_pods_share_is_named(mode: str, is_named: bool) -> None:
    claim = PersistentVolumeClaim("ns", "data", class_name="local", modes=(mode,))
    outcome = run(cluster(node("n"), claim, podgroup("g", 2), pods("g", 2, claim_names=("data",)))).outcome
    found = shared_claim(View(outcome), outcome.live_jobs.tolist()[0])
    assert found == (SharedClaim("PersistentVolumeClaim", "data", 2) if is_named else None)
