"""Every waiting job of a cycle has a blocker, in both languages, whatever the cluster: over the worlds of the fuzz."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import get_args

import pytest

from pumice.answers.codes import code_of
from pumice.answers.waiting_codes import waiting_codes
from pumice.kai.table import DEFAULT_CONF as KAI_CONF
from pumice.model.blockers import Behind, Blocker
from pumice.model.blockers.changes import Change, NotKnown
from pumice.model.events import Object
from pumice.model.manifest import Decoder, ManifestError
from pumice.reasons.blockers import Blockers, blockers_of
from pumice.reasons.hints import LENGTH_MAX, hint_of
from pumice.reasons.sentences import sentence
from pumice.runtime.one_cycle import schedule_once
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry
from pumice.testing.kai_clusters import NEAR, in_words_of_kai
from pumice.volcano.table import DEFAULT_CONF
from tests.fuzz.mutate import mutated
from tests.fuzz.worlds import CONFS, cluster

EVICTING = DEFAULT_CONF.replace("allocate, backfill", "allocate, preempt, reclaim, backfill")
POLICIES = {**CONFS, "evicting": EVICTING, "kai": KAI_CONF}
WORLDS = 100


def world(seed: int, *, is_kai: bool) -> list[Object]:
    """A sound cluster of the fuzz, or one with mistakes of which what can be read is there."""
    dice, decoder, found = Random(seed), Decoder(), list[Object]()
    raws = mutated(dice, cluster(dice), dice.choice((0, 0, 1, 3)))
    for raw in raws if isinstance(raws, list) else []:
        try:
            obj = decoder.decode(raw)
        except ManifestError:
            continue
        if isinstance(obj, get_args(Object)):  # jobs that a controller makes pods of are not
            found.append(in_words_of_kai(obj, dice) if is_kai else obj)
    return [*found, NEAR] if is_kai else found


def blockers(name: str) -> dict[str, tuple[Blocker, ...]]:
    """Of one cycle of each world, by world and job."""
    under = policy_of(POLICIES[name], builtin_registry())
    found: dict[str, tuple[Blocker, ...]] = {}
    for seed in range(WORLDS):
        outcome = schedule_once(world(seed, is_kai=name == "kai"), under, 1_000.0).outcome
        of_jobs = Blockers(outcome)
        each_alone = {row: code_of(of_jobs.nearest(row)) for row in of_jobs.waiting.tolist()}
        assert dict(waiting_codes(outcome)) == each_alone, seed
        found |= {f"{seed}: {key}": each for key, each in blockers_of(outcome).items()}
    return found


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_every_waiting_job_has_a_blocker_that_can_be_shown_and_lifted(name: str) -> None:
    found = blockers(name)
    assert len(found) > WORLDS // 2, "some jobs wait"
    for key, each in found.items():
        assert each and each != (Behind(),), key
        assert all(sentence(one) for one in each), key
        changes = [change for one in each for change in one.lift]
        assert all(isinstance(change, Change) for change in changes) and len(changes) >= len(each), key
        assert all(change.because for change in changes if isinstance(change, NotKnown)), key
        assert len(hint_of(each[0])) <= LENGTH_MAX, key
        assert json.loads(json.dumps([one.plain for one in each])), key
    assert len(Counter(one.code for each in found.values() for one in each)) >= 5, "of several kinds"
