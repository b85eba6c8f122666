"""Jobs inside one domain: what a trial that is recalled says is what it said when it was tried."""

from __future__ import annotations

from pumice.framework.memo import Memo
from pumice.testing.build import cluster, hypernode, node, podgroup, pods, policy, queue, resource, run

CONF = """
actions: "allocate"
tiers: [{plugins: [{name: gang}, {name: proportion}]}]
"""


def test_a_recalled_trial_still_says_that_the_queue_was_full() -> None:
    state = cluster(
        queue("small", capability=resource(1, "1Gi")),
        node("n"),
        hypernode("rack", 1, ["n"]),
        podgroup("g", 1, "small", phase="Inqueue", tier=1, soft=True),
        pods("g", 1, cpu=2),
    ).snapshot()
    memo, under = Memo(), policy(CONF)
    first, second = (run(state, under, memo=memo).outcome.entries for _ in range(2))
    assert [(entry.subject, entry.what) for entry in first] == [("ns/g", "queue full")]
    assert second == first
