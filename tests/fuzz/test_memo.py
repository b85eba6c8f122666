"""The memo changes nothing: what is kept, shared or skipped by it has no part in any decision, reason or text.

Each cycle of a history of the fuzz worlds is run twice, with the memo of the cycles before and with one that keeps
nothing, so every mechanism that ``framework.memo`` lists is absent from one of the two.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from msgspec.structs import replace

from pumice.framework.memo import Memo
from pumice.model.decisions import Bind
from pumice.model.events import Event, Gone, Seen
from pumice.model.pod import Pod
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry
from pumice.state.store import Store
from pumice.testing import changes
from pumice.testing.changes import Objects
from pumice.testing.checks.cycles import Cycle, cycle, facts_of
from tests.fuzz.test_blockers import POLICIES, world

HISTORIES = 8
CYCLES = 5


def carried_out(ran: Cycle, objects: Objects, now: float) -> list[Event]:
    """Bound pods run, evicted ones are gone."""
    found: list[Event] = []
    for decision in ran.decisions:
        pod = objects.get((Pod, decision.pod))
        if isinstance(pod, Pod) and isinstance(decision, Bind):
            found.append(Seen(replace(pod, node_name=decision.node, phase="Running", start_time=now)))
        elif isinstance(pod, Pod):
            found.append(Gone(Pod, decision.pod))
    return found


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_cycles_with_and_without_a_memo_are_equal(name: str) -> None:
    under, seen = policy_of(POLICIES[name], builtin_registry()), Counter[str]()
    for seed in range(HISTORIES):
        dice, now, memo = Random(f"memo {seed}"), 1_000.0, Memo()
        store = Store(scheduler_names=("volcano", "kai-scheduler"))
        objects: Objects = {}
        events: list[Event] = [Seen(obj) for obj in world(seed, is_kai=name == "kai")]
        for number in range(CYCLES):
            for event in events:
                changes.apply(objects, event)
                store.apply(event)
            snapshot = store.snapshot(now)
            plain = facts_of(without := cycle(snapshot, under, now, Memo(keeps=False)))
            ours = facts_of(cycle(snapshot, under, now, memo))
            for what, value in plain.items():
                assert ours[what] == value, f"world {seed}, cycle {number}: {what}"
            seen.update(type(decision).__name__ for decision in without.decisions)
            seen["reasons"] += len(plain["trace"]) + len(plain["statuses"])
            # One after the other: what was decided happens, nothing happens, one thing happens.
            change = changes.next_change(dice, objects, None) if number % 3 == 2 else None
            events = carried_out(without, objects, now) if number % 3 == 0 else []
            if change is not None:
                now += change.seconds
                events = [event for event in [change.event] if event is not None]
    assert seen["Bind"] and seen["reasons"], "something was decided, and something refused"
