"""What ``pumice fuzz`` searches by the thousand (``make fuzz``): a few of its worlds, and that it finds, cuts down,
keeps and runs again. Worlds that broke a law once are in ``tests/cases/fuzz``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from pumice.cli.main import main
from pumice.runtime.policy.languages import builtin_registry
from pumice.sim.fuzz.case import FuzzCase, draw, play
from pumice.sim.fuzz.confs import needed_by
from pumice.sim.fuzz.shrink import shrunk

REGISTRY = builtin_registry()
KEPT = sorted((Path(__file__).parents[1] / "cases" / "fuzz").glob("*.json"))
SEEDS = range(20)


def test_no_world_breaks_a_law_and_in_most_there_is_something_to_break() -> None:
    """Laws of what is bound and evicted hold in a world without pods, whatever the scheduler does."""
    played = {seed: play(draw(seed, REGISTRY), REGISTRY) for seed in SEEDS}
    broken = {f"pumice fuzz --seeds {seed}": each.problem for seed, each in played.items() if each.problem}
    assert broken == {}
    assert sum(each.binds > 0 for each in played.values()) >= len(SEEDS) * 4 // 5
    assert sum(each.evictions > 0 for each in played.values()) >= len(SEEDS) // 4


@pytest.mark.parametrize("seed", range(4))
def test_no_world_of_kais_breaks_a_law(seed: int) -> None:
    case = draw(seed, REGISTRY, dialect="kai")
    assert {"Queue", "PodGroup", "Topology"} <= {raw["kind"] for raw in case.objects}
    assert play(case, REGISTRY).problem == "", f"pumice fuzz --dialect kai --seeds {seed}"


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_what_once_broke_a_law_does_so_no_more(path: Path) -> None:
    assert play(FuzzCase.from_json(json.loads(path.read_text())), REGISTRY).problem == ""


def test_a_seed_is_a_world() -> None:
    assert draw(3, REGISTRY) == draw(3, REGISTRY) != draw(4, REGISTRY)
    again = FuzzCase.from_json(json.loads(json.dumps(draw(3, REGISTRY).to_json())))
    assert again.to_json() == draw(3, REGISTRY).to_json()


def test_policies_are_drawn_from_every_action_and_plugin() -> None:
    drawn = [draw(seed, REGISTRY).conf for seed in range(200)]
    dialect = REGISTRY.dialects["volcano"]
    actions = {action for conf in drawn for action in conf["actions"].split(", ")}
    plugins = {entry["name"] for conf in drawn for tier in conf["tiers"] for entry in tier["plugins"]}
    assert (actions, plugins) == (set(dialect.actions), set(dialect.plugins))


def test_a_finding_is_cut_down_to_what_breaks_the_law() -> None:
    def breaks(case: FuzzCase) -> str:
        kinds = [raw["kind"] for raw in case.objects]
        return "S1: too much" if "Queue" in kinds and '"gang"' in json.dumps(case.conf) else ""

    small = shrunk(draw(5, REGISTRY), breaks)
    assert [raw["kind"] for raw in small.objects] == ["Queue"]
    left = {entry["name"] for tier in small.conf["tiers"] for entry in tier["plugins"]}
    assert left == needed_by(small.conf["actions"].split(", ")) & left, "what evictions need to come to an end stays"
    assert small.faults == {}


def test_a_failing_world_is_printed_and_kept_and_can_be_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pumice.sim.laws.evictions.EvictionLaws.check", lambda _: "S5: so it is said")
    found = CliRunner().invoke(main, ["fuzz", "--seeds", "7", "--save", str(tmp_path)])
    (kept,) = tmp_path.glob("*.json")
    assert found.exit_code == 1
    assert f"seed 7: S5: so it is said\n  {kept}" in found.stderr
    again = CliRunner().invoke(main, ["fuzz", "--replay", str(kept), "--json"])
    assert json.loads(again.stdout) == {
        "worlds": 1,
        "placing": 0,
        "evicting": 0,
        "kinds": {"crowded volcano": {"worlds": 1, "placing": 0, "evicting": 0}},
        "findings": {str(kept): "S5: so it is said"},
    }


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--seeds", "3..x"], "wanted A..B"),
        (["--faults", "rain=2%"], "--faults: found 'rain=2%'"),
        (["--replay", "there-is-none.json"], "there-is-none.json: cannot be read: No such file"),
    ],
)
def test_wrong_input_says_what_was_wanted(arguments: list[str], word: str) -> None:
    found = CliRunner().invoke(main, ["fuzz", *arguments])
    assert found.exit_code == 2
    assert word in found.stderr
