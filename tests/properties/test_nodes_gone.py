"""Pods may name nodes that do not exist. Such a pod is on no node: neither the last one, nor the first."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from pumice.framework.plugin.policy_file import Policy
from pumice.kai.table import DEFAULT_CONF as KAI_CONF
from pumice.model.decisions import Evict
from pumice.model.events import Object
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.model.resources import Resource
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry
from pumice.testing.build import cluster, run
from pumice.testing.clusters import Alter, small_cluster
from pumice.testing.kai_clusters import NEAR, in_words_of_kai

WORLDS = 240
NOW = 1000.0
VOLCANO_CONF = """
actions: "enqueue, allocate, backfill, preempt, reclaim, gangpreempt, gangreclaim, shuffle"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}, {name: rescheduling}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}, {name: binpack}]
"""
LANGUAGES: dict[str, tuple[str, Alter | None]] = {"volcano": (VOLCANO_CONF, None), "kai": (KAI_CONF, in_words_of_kai)}
#: A node that can be of no use, which has the last row where it is.
LAST = Node("zz-last", Resource(), unschedulable=True)


def world(dice: Random, alter: Alter | None) -> list[Object]:
    """Make a small cluster in which some pods name nodes that do not exist; in some there is no node at all."""
    share, bare = dice.choice((0.2, 0.5, 1.0)), dice.random() < 0.3
    found = [_lost(obj, dice, share) for obj in (*small_cluster(dice, alter=alter), NEAR)]
    return [obj for obj in found if not (bare and isinstance(obj, Node))]


def _lost(obj: Object, dice: Random, share: float) -> Object:
    if not isinstance(obj, Pod) or dice.random() > share:
        return obj
    if not obj.node_name and dice.random() < 0.3:
        return replace(obj, nominated_node="gone")
    phase = dice.choice(("Running", "Running", "Pending"))
    deletion = NOW if dice.random() < 0.2 else None
    return replace(obj, node_name="gone", phase=phase, deletion=deletion, gates=())


def policy(language: str) -> Policy:
    return policy_of(LANGUAGES[language][0], builtin_registry())


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_node_that_does_not_exist_is_no_other_node(language: str) -> None:
    """A further node, on which nothing can run, has the last row and changes no decision."""
    under, alter, decided = policy(language), LANGUAGES[language][1], 0
    for seed in range(WORLDS):
        objects = world(Random(f"{language} {seed}"), alter)
        ran = run(cluster(*objects), under, now=NOW)
        more = run(cluster(*objects, LAST), under, now=NOW)
        assert not ran.outcome.faults and not more.outcome.faults, seed
        assert ran.decisions == more.decisions, seed
        on = {obj.key: obj.node_name for obj in objects if isinstance(obj, Pod)} | ran.binds
        assert all(each.node == on[each.pod] for each in ran.decisions if isinstance(each, Evict)), seed
        decided += bool(ran.decisions)
    assert decided > WORLDS / 4
