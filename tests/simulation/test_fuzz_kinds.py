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
from pumice.ours.reservations.plan import Plan
from pumice.runtime.bind_checks import BindChecks
from pumice.runtime.policy.languages import builtin_registry
from pumice.sim.fuzz.case import FuzzCase, Kind, draw, draw_mixed, play
from pumice.sim.fuzz.play_result import PlayResult
from pumice.sim.fuzz.world_counts import WorldCounts

REGISTRY = builtin_registry()
CASES = [(Kind.STORM, "volcano"), (Kind.STORM, "kai"), (Kind.RESERVED, "volcano")]
#: What a broken scheduler does: all tenants share one account of steps; later jobs take what is reserved.
BROKEN: dict[Kind, tuple[type, str, Any]] = {
    Kind.STORM: (Budget, "_account_of", lambda _, job: (0, "")),
    Kind.RESERVED: (Plan, "_lost_to", lambda plan, _: np.zeros(plan.ssn.tables.classes.capacity)),
}
#: Seeds of which some let the broken scheduler break the law.
SEEDS_OF = {Kind.STORM: range(15), Kind.RESERVED: range(33, 48)}
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
    problems = {each.problem[:5] for each in played(kind, dialect, SEEDS_OF[kind]).values() if each.problem}
    assert problems == {LAWS[kind]}


@pytest.mark.parametrize(("kind", "dialect"), CASES)
def test_a_world_of_a_kind_can_be_saved_and_run_again(kind: Kind, dialect: str) -> None:
    case = draw(4, REGISTRY, dialect=dialect, kind=kind)
    again = FuzzCase.from_json(json.loads(json.dumps(case.to_json())))
    assert again.kind == kind
    assert play(again, REGISTRY) == play(case, REGISTRY)


def test_a_run_of_all_kinds_counts_the_worlds_of_each_kind_and_those_with_evictions() -> None:
    found = json.loads(CliRunner().invoke(main, ["fuzz", "--kind", "any", "--seeds", "0..39", "--json"]).stdout)
    cases = [draw_mixed(seed, REGISTRY) for seed in range(40)]
    kinds = {(case.kind, case.conf.get("dialect", "volcano")) for case in cases}
    assert found["kinds"].keys() == {f"{kind} {dialect}" for kind, dialect in kinds}
    assert kinds >= {(kind, dialect) for kind in (Kind.CROWDED, Kind.STORM) for dialect in ("volcano", "kai")}
    for name in ("worlds", "placing", "evicting"):
        assert found[name] == sum(count[name] for count in found["kinds"].values())
    assert found["evicting"] >= found["worlds"] / 3
    assert found["findings"] == {}


def test_the_share_of_worlds_with_evictions_is_printed_for_each_kind() -> None:
    counts = WorldCounts()
    for seed, result in enumerate([PlayResult("", 2, 1), PlayResult("", 2), PlayResult(""), PlayResult("S1: broken")]):
        counts.add(draw(seed, REGISTRY, kind=Kind.STORM), result)
    assert counts.to_text("1 break a law") == (
        "4 worlds, 1 break a law; in 2 pods were bound, in 1 (25%) some were evicted"
    )
    counts.add(draw(0, REGISTRY, dialect="kai"), PlayResult("", 1))
    assert counts.to_text("1 break a law").splitlines()[1:] == [
        "  crowded kai: 1 worlds; in 1 pods were bound, in 0 (0%) some were evicted",
        "  storm volcano: 4 worlds; in 2 pods were bound, in 1 (25%) some were evicted",
    ]


def test_every_world_with_a_storm_has_room_for_the_other_gang() -> None:
    """A world in which that gang is not served without the storm proves nothing."""
    for dialect in ("volcano", "kai"):
        assert all(each.binds for each in played(Kind.STORM, dialect, range(15, 35)).values())


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--kind", "storm", "--faults", "none"], "for crowded worlds only"),
        (["--kind", "reserved", "--dialect", "kai"], "no action of KAI asks ours/reserve"),
        (["--kind", "any", "--dialect", "kai"], "a run of all kinds is in both languages"),
    ],
)
def test_options_that_do_not_fit_a_kind_are_refused(arguments: list[str], word: str) -> None:
    found = CliRunner().invoke(main, ["fuzz", *arguments])
    assert found.exit_code == 2
    assert word in found.stderr


#: Crowded worlds in which binds wait while nodes go and are cordoned.
QUEUED = {"queued_max_s": 10.0, "node_cordoned_every_s": 40.0, "node_gone_every_s": 80.0, "pod_deleted_every_s": 60.0}
SEEDS = range(6, 12)
#: Seeds of worlds of KAI in which a gang falls below its minimum while binds of it wait.
BELOW_MINIMUM = (8, 9)


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
