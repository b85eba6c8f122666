"""dialect: pumice: Volcano's session under our default policy; all names are plain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.api import Job, Session, plugin, points
from pumice.framework.plugin.errors import PolicyError
from pumice.framework.plugin.policy_file import Policy, read_policy
from pumice.ours.language import DEFAULT_ACTIONS, DEFAULT_TIERS
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import LANGUAGES, builtin_registry
from pumice.testing.build import cluster, node, podgroup, pods, run
from pumice.testing.build import policy as volcano_policy
from pumice.volcano.table import VOLCANO

REGISTRY = builtin_registry()
GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "policy-file.md"
DEFAULT = {"dialect": "pumice", "actions": ", ".join(DEFAULT_ACTIONS), "tiers": list(DEFAULT_TIERS)}


def read(**more: Any) -> Policy:
    return read_policy({"dialect": "pumice", **more}, REGISTRY)


def names(policy: Policy) -> list[list[str]]:
    return [[option.spec.name for option in tier] for tier in policy.tiers]


def test_a_file_with_nothing_but_the_dialect_has_the_default_policy() -> None:
    short, long = policy_of("dialect: pumice\n", REGISTRY), policy_of(json.dumps(DEFAULT), REGISTRY)
    assert (short.actions, short.tiers) == (long.actions, long.tiers) and short.warnings == ()
    assert read(tiers=[]).tiers == ()


def test_the_guide_shows_the_default_policy() -> None:
    block = next(text for text in GUIDE.read_text().split("```yaml\n") if text.startswith("dialect: pumice"))
    shown = read_policy(yaml.safe_load(block.partition("```")[0]), REGISTRY)
    assert (shown.actions, shown.tiers) == (read().actions, read().tiers)


@pytest.mark.parametrize(
    ("name", "same_as"),
    [("gang", "volcano/gang"), ("gpuplacement", "ours/gpuplacement"), ("pumice/gang", "volcano/gang")],
)
def test_names_need_no_prefix(name: str, same_as: str) -> None:
    found, wanted = (read(tiers=[{"plugins": [{"name": each}]}]).options[0].spec for each in (name, same_as))
    assert found.target is wanted.target


def test_other_languages_reach_its_plugins() -> None:
    conf = {"dialect": "kai", "tiers": [{"plugins": [{"name": "pumice/gpuplacement"}]}]}
    assert names(read_policy(conf, REGISTRY)) == [["gpuplacement"]]


def test_plugins_of_users_are_found_by_their_plain_names() -> None:
    @plugin("quiet")
    @points.job_order
    def quiet(ssn: Session, job: Job, other: Job) -> int:
        return 0

    extended = REGISTRY.with_plugins(VOLCANO.name, [quiet])
    assert "quiet" in extended.plugins("pumice")
    assert names(read_policy({"dialect": "pumice", "tiers": [{"plugins": [{"name": "quiet"}]}]}, extended)) == [
        ["quiet"]
    ]


@pytest.mark.parametrize(
    ("conf", "problem"),
    [
        ({"dialect": "punice"}, 'dialect: found "punice", wanted one of kai, pumice, volcano'),
        (
            {"tiers": [{"plugins": [{"name": "gpuplacment"}]}]},
            'unknown plugin "gpuplacment"; did you mean "gpuplacement"?',
        ),
        ({"actions": "alocate"}, 'unknown action "alocate"; did you mean "allocate"?'),
        ({"actions": "consolidation"}, 'unknown action "consolidation"'),
    ],
)
def test_what_is_wrong_is_named(conf: dict[str, Any], problem: str) -> None:
    with pytest.raises(PolicyError) as error:
        read(**conf)
    assert problem in str(error.value)


def test_it_is_listed_with_its_session() -> None:
    assert sorted(LANGUAGES) == ["kai", "pumice", "volcano"]
    found = LANGUAGES["pumice"]
    assert (found.closes, found.points, found.scheduler) == (VOLCANO.closes, VOLCANO.points, VOLCANO.scheduler)


def decisions(policy: Policy) -> list[Any]:
    groups = [podgroup(f"g{i}", i + 1) for i in range(4)]
    nodes = [node(f"n{i}", 8, "32Gi", 4 * (i % 2)) for i in range(6)]
    asked = [pod for i in range(4) for pod in pods(f"g{i}", i + 1, gpu=i % 3)]
    return run(cluster(nodes, groups, asked), policy).decisions


def test_two_runs_decide_the_same_and_not_as_volcano_does() -> None:
    first = decisions(read())
    assert first == decisions(read()) and len(first) == 10
    assert first != decisions(volcano_policy())
