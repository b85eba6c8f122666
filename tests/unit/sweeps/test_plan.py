"""What is asked of a sweep becomes universes, or an error with all that is wrong."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from pumice.library.errors import InputError
from pumice.sweeps.arguments import with_arguments
from pumice.sweeps.request import is_request_file, read_request, seeds_of, settings_of_flags, sizes_of
from tests.unit.sweeps.kit import CONF, DEMO, plan, request

TOML = """
inputs = "demo"
policies = ["default", "demo/volcano-scheduler.conf"]
nodes = ["12x8gpu", "16x8gpu"]
seeds = "0..4"
until = "2h"
[set]
"nodeorder.leastrequested.weight" = [1, 5]
"""
YAML = """
inputs: demo
policies: [default, demo/volcano-scheduler.conf]
nodes: [12x8gpu, 16x8gpu]
seeds: [0, "1..4"]
until: 2h
set: {nodeorder.leastrequested.weight: [1, 5]}
"""


def test_a_plan_has_every_combination_once() -> None:
    found = plan(
        policies=["default", CONF], nodes=["12x8gpu", "16x8gpu"], arguments={"nodeorder.leastrequested.weight": [1, 5]}
    )
    assert len(found.universes) == len({each.digest for each in found.universes}) == 16
    assert str(found.universes[0]) == "default, nodeorder.leastrequested.weight=1, nodes 12x8gpu, seed 0"
    shards = [found.shard(number, 3) for number in (1, 2, 3)]
    assert sorted(str(each) for shard in shards for each in shard) == sorted(map(str, found.universes))


@pytest.mark.parametrize(("name", "text"), [("plan.toml", TOML), ("plan.yaml", YAML)])
def test_a_plan_file_says_the_same_in_toml_and_yaml(tmp_path: Path, name: str, text: str) -> None:
    shutil.copytree(DEMO, tmp_path / "demo")
    (tmp_path / name).write_text(text)
    assert is_request_file(tmp_path / name)
    found = read_request(tmp_path / name)
    assert found.inputs == [str(tmp_path / "demo")] and found.policies[1] == str(
        tmp_path / "demo/volcano-scheduler.conf"
    )
    assert seeds_of(found.seeds) == [0, 1, 2, 3, 4]
    assert found.arguments == {"nodeorder.leastrequested.weight": [1, 5]}


def test_manifests_are_no_plan() -> None:
    assert not any(is_request_file(path) for path in Path(DEMO).iterdir())


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("inputs = 'x'\nsizes = ['8x8gpu']", "unknown field `sizes`.*known: inputs, policies, set"),
        ("policies = ['default']", "missing required field `inputs`"),
        ("inputs = [", "cannot be read"),
        ("inputs = " + "[" * 100_000, "cannot be read: it is nested too deep"),
        ("inputs = 'x'\n" + "#" * (1 << 20) + "\nsizes = 3", "cannot be read: found more than 1048576 bytes"),
        ("inputs = 'x'\nset = 3", "set"),
    ],
)
def test_wrong_plan_files_are_named(tmp_path: Path, text: str, wanted: str) -> None:
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises(ValueError, match=wanted):
        read_request(tmp_path / "plan.toml")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("inputs: " + "[" * 5000, "cannot be read: .*nested more than 500 deep"),
        ("inputs: x\n---\ninputs: y", "cannot be read: found 2 documents, wanted one"),
        ("", "cannot be read: found 0 documents, wanted one"),
    ],
)
def test_yaml_that_is_no_plan_is_named_and_no_plan(tmp_path: Path, text: str, wanted: str) -> None:
    (tmp_path / "plan.yaml").write_text(text)
    assert not is_request_file(tmp_path / "plan.yaml")
    with pytest.raises(ValueError, match=wanted):
        read_request(tmp_path / "plan.yaml")


def test_everything_that_is_wrong_is_named_at_once() -> None:
    with pytest.raises(InputError) as caught:
        plan(
            policies=["default", "default", "gone.conf", CONF],
            arguments={"nodeorder.wieght": [1], "binpac.weight": [1, 2]},
            nodes=["16:cpu=32,memory=256Gi", "0x8gpu", "12x8gpu", "12x8gpu"],
            seeds="0..3,2",
            until="2x",
        )
    text = "\n".join(caught.value.problems)
    for part in (
        "policies: default: found twice",
        "gone.conf: No such file",
        "the policy does not name the plugin binpac",
        "nodes 16:cpu=32,memory=256Gi: no node has nvidia.com/gpu, which jobs of the input ask for",
        "nodes 0x8gpu: ",
        "nodes 12x8gpu: found twice",
        "seeds: found seed 2 twice",
        "until: found '2x'",
    ):
        assert part in text, text


def test_an_unknown_argument_is_named_with_the_one_that_is_meant() -> None:
    with pytest.raises(InputError, match=r"nodeorder.*leastrequested\.wieght.*did you mean"):
        plan(arguments={"nodeorder.leastrequested.wieght": [1, 2]})


@pytest.mark.parametrize("given", ["x", "3..1", "-1", "0..999999", "1..", ["a"]])
def test_seeds_that_cannot_be_read_are_named(given: Any) -> None:
    with pytest.raises(ValueError, match="wanted seeds such as"):
        seeds_of(given)


def test_flags_hold_several_values_with_commas() -> None:
    assert sizes_of(["16:cpu=32,memory=256Gi,gpu=4,12x8gpu", "8x8gpu"]) == [
        "16:cpu=32,memory=256Gi,gpu=4",
        "12x8gpu",
        "8x8gpu",
    ]
    assert settings_of_flags(["a.b=1,2.5,true,x", "a.b=3"]) == {"a.b": [1, 2.5, True, "x", 3]}
    with pytest.raises(ValueError, match=r"wanted PLUGIN\.ARGUMENT=VALUE"):
        settings_of_flags(["a.b"])


def test_a_universe_is_named_by_what_decides_it(tmp_path: Path) -> None:
    shutil.copytree(DEMO, tmp_path / "copy")
    copied = [each.digest for each in plan(inputs=[str(tmp_path / "copy")]).universes]
    assert copied == [each.digest for each in plan().universes]
    (tmp_path / "copy" / "queues.yaml").write_text("")
    assert not set(copied) & {each.digest for each in plan(inputs=[str(tmp_path / "copy")]).universes}
    for more in ({"until": "31m"}, {"policies": [CONF]}, {"nodes": ["13x8gpu"]}, {"shake": "61s"}):
        assert not set(copied) & {each.digest for each in plan(**more).universes}, more


def test_arguments_are_set_in_the_defaults_of_a_language() -> None:
    text = with_arguments("dialect: pumice\n", {"nodeorder.leastrequested.weight": 3})
    assert "leastrequested.weight: 3" in text and "gpuplacement" in text
    again = with_arguments("dialect: pumice\n", {"gpuplacement.policy": "x"})
    assert "leastrequested.weight: 0" in again
    with pytest.raises(ValueError, match=r"wanted PLUGIN\.ARGUMENT"):
        with_arguments("dialect: pumice\n", {"nodeorder": 3})


def test_a_request_of_one_policy_uses_that_of_the_input() -> None:
    assert {each.policy for each in plan(policies=[]).universes} == {CONF}
    assert request().period == 1.0
