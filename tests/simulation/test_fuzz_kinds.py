"""Worlds of ``pumice fuzz --kind``: each kind's law holds in a few of them, and is broken by a broken scheduler."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from pumice.cli.main import main
from pumice.framework.cycle.budget import Budget
from pumice.ours.reservation_plan import Plan
from pumice.runtime.bind_checks import BindChecks
from pumice.runtime.policy.languages import builtin_registry
from pumice.sim.fuzz.case import FuzzCase, Kind, draw, play
from pumice.sim.fuzz.play_result import PlayResult

REGISTRY = builtin_registry()
CASES = [(Kind.STORM, "volcano"), (Kind.STORM, "kai"), (Kind.RESERVED, "volcano")]
#: What a broken scheduler does: all tenants share one account of steps; later jobs take what is reserved.
BROKEN: dict[Kind, tuple[type, str, Any]] = {
    Kind.STORM: (Budget, "_account_of", lambda _, job: (0, "")),
    Kind.RESERVED: (Plan, "_lost_to", lambda plan, _: np.zeros(plan.ssn.tables.classes.capacity)),
}
LAWS = {Kind.STORM: "S16: ", Kind.RESERVED: "S15: "}


def played(kind: Kind, dialect: str, seeds: range) -> dict[str, PlayResult]:
    options = f"--kind {kind} --dialect {dialect}"
    return {
        f"pumice fuzz {options} --seeds {seed}": play(draw(seed, REGISTRY, dialect=dialect, kind=kind), REGISTRY)
        for seed in seeds
    }


@pytest.mark.parametrize(("kind", "dialect"), CASES)
def test_the_law_of_a_kind_holds_where_there_is_something_to_break(kind: Kind, dialect: str) -> None:
    found = played(kind, dialect, range(15))
    assert {name: each.problem for name, each in found.items() if each.problem} == {}
    assert sum(each.binds > 0 for each in found.values()) >= 12


@pytest.mark.parametrize(("kind", "dialect"), CASES)
def test_the_law_of_a_kind_is_broken_by_a_broken_scheduler(
    kind: Kind, dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name, broken = BROKEN[kind]
    monkeypatch.setattr(owner, name, broken)
    problems = {each.problem[:5] for each in played(kind, dialect, range(15)).values() if each.problem}
    assert problems == {LAWS[kind]}


@pytest.mark.parametrize(("kind", "dialect"), CASES)
def test_a_world_of_a_kind_can_be_saved_and_run_again(kind: Kind, dialect: str) -> None:
    case = draw(4, REGISTRY, dialect=dialect, kind=kind)
    again = FuzzCase.from_json(json.loads(json.dumps(case.to_json())))
    assert again.kind == kind
    assert play(again, REGISTRY) == play(case, REGISTRY)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--kind", "storm", "--faults", "none"], "for crowded worlds only"),
        (["--kind", "reserved", "--dialect", "kai"], "no action of KAI asks ours/reserve"),
    ],
)
def test_options_that_do_not_fit_a_kind_are_refused(arguments: list[str], word: str) -> None:
    found = CliRunner().invoke(main, ["fuzz", *arguments])
    assert found.exit_code == 2
    assert word in found.stderr


#: Crowded worlds in which binds wait while nodes go and are cordoned.
QUEUED = {"queued_max_s": 10.0, "node_cordoned_every_s": 40.0, "node_gone_every_s": 80.0, "pod_deleted_every_s": 60.0}
SEEDS = range(4, 8)
#: Seeds of worlds of KAI in which a gang falls below its minimum while binds of it wait.
BELOW_MINIMUM = (17,)


def with_queued_binds(dialect: str, seeds: Iterable[int] = SEEDS) -> set[str]:
    """Return what the worlds break."""
    cases = [draw(seed, REGISTRY, faults=QUEUED, dialect=dialect) for seed in seeds]
    return {problem for case in cases if (problem := play(case, REGISTRY).problem)}


@pytest.mark.parametrize("dialect", ["volcano", "kai"])
def test_binds_that_wait_are_sent_only_if_they_still_hold(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert with_queued_binds(dialect) == set()
    monkeypatch.setattr(BindChecks, "why_not", lambda _, entry: "")
    broken = with_queued_binds(dialect)
    assert broken
    assert {each.partition(":")[0] for each in broken} <= {"S3", "S17"}


def test_binds_of_a_gang_that_cannot_be_whole_any_more_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    assert with_queued_binds("kai", BELOW_MINIMUM) == set()
    monkeypatch.setattr(BindChecks, "_gang_falls", lambda _, job: False)
    broken = with_queued_binds("kai", BELOW_MINIMUM)
    assert broken
    assert all(each.startswith("S17: ") and "can still run" in each for each in broken)
