"""Kinds ``action`` and ``cycles``: one session or more on one cluster."""

from __future__ import annotations

from msgspec.structs import replace

from pumice.cycle import run_cycle
from pumice.framework.plugin.policy_file import Policy
from pumice.framework.plugin.registry import Registry
from pumice.model.events import Seen
from tests.conformance.runner.case import Case
from tests.conformance.runner.differences import Differences
from tests.conformance.runner.expected import compare_expected
from tests.conformance.runner.notes import prepare
from tests.conformance.runner.observed import Observation, compare_observed
from tests.conformance.runner.policies import actions_of, policy_of_case
from tests.conformance.runner.result import NotYet, Unusable
from tests.conformance.runner.session import Opened, Recorder, open_session
from tests.conformance.runner.world import World


def run_action(case: Case, registry: Registry) -> Differences:
    """One session, compared with ``expect`` while it is open or with ``observed`` after it closed."""
    policy = policy_of_case(case, registry)
    world = World(case)
    if case.generated:
        return _run_whole(case, policy, world)
    if "expect" not in case.raw:
        raise Unusable("wanted expect")
    opened = open_session(world.store.snapshot(), policy, case.now)
    after = prepare(case, opened.ssn)
    opened.run(actions_of(case.conf))
    observed = case.raw.get("observed") if case.raw.get("deterministic") is True else None
    found = compare_expected(opened, case.raw["expect"], observed)
    after(found)
    return _judged(found, world)


def _run_whole(case: Case, policy: Policy, world: World) -> Differences:
    recorder = Recorder()
    outcome = run_cycle(world.store.snapshot(), policy, case.now, recorder)
    seen = Observation(outcome, recorder)
    observed = case.raw.get("observed")
    if observed is None:  # an input on which Volcano panics: it is enough that Pumice does not
        return Differences()
    return _judged(compare_observed(seen, observed, str(case.raw.get("deterministic"))), world)


def run_cycles(case: Case, registry: Registry) -> Differences:
    """Several sessions on one cluster whose binds are never confirmed: pods stay Binding."""
    policy = policy_of_case(case, registry)
    world = World(case)
    found = Differences()
    for number, cycle in enumerate(case.raw["cycles"], start=1):
        world.add(cycle.get("add") or ())
        opened = open_session(world.store.snapshot(), policy, case.now)
        opened.run(actions_of(cycle))
        for line in compare_expected(opened, cycle["expect"]).lines:
            found.lines.append(f"cycle {number}: {line}")
        _settle(world, opened)
    return _judged(found, world)


def _settle(world: World, opened: Opened) -> None:
    """Close the session, write PodGroup statuses, and assume what was decided."""
    outcome = opened.close()
    world.store.remember(outcome.writes)
    groups = {group.key: group for group in outcome.tables.jobs.groups if group is not None}
    for update in outcome.groups:
        world.store.apply(Seen(replace(groups[update.job], status=update.status)))
    world.store.assume(opened.recorder.taken)


def _judged(found: Differences, world: World) -> Differences:
    """A difference does not count against a case whose objects need what Pumice does not have.

    Agreement does: Pumice refuses pods that need it, and so may the reference have done.
    Raises: NotYet naming what is lacking.
    """
    if found and world.lacking:
        raise NotYet(", ".join(sorted(world.lacking)))
    return found
