"""A few of the inputs that ``make fuzz-input`` makes by the thousand, and the laws themselves."""

from __future__ import annotations

import copy
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.fuzz.cases import SHARES, kind_of, make, run
from tests.fuzz.laws import Input, amount, broken
from tests.fuzz.mutate import mutated, smudged, written
from tests.fuzz.shrink import shrunk
from tests.fuzz.workers import Bounds, Fresh
from tests.fuzz.worlds import cluster

SEED, COUNT = 1, 250
PARTS = 4  # so that several workers of the test run share them; each imports everything anew


@pytest.mark.parametrize("part", range(PARTS))
def test_no_input_breaks_a_law(part: int) -> None:
    """Each in a process that is bounded in time and memory, as always."""
    found = {}
    with Fresh(Bounds()) as fresh:
        for number in range(part, COUNT, PARTS):
            reports = fresh.run(make(SEED, number))
            if reports.problems:
                found[number] = reports.problems[0]
    assert found == {}, f"python -m tests.fuzz --seed {SEED} --first {min(found)} --count 1"


def test_an_input_is_the_same_for_the_same_seed() -> None:
    made = [make(7, number) for number in range(30)]
    assert made == [make(7, number) for number in range(30)]
    assert made != [make(8, number) for number in range(30)]
    kinds = [kind_of(number) for number in range(100)]
    assert {kind: kinds.count(kind) for kind in SHARES} == SHARES


def test_mutation_leaves_what_it_was_given() -> None:
    dice = Random(3)
    for _ in range(50):
        world = cluster(dice)
        before = copy.deepcopy(world)
        assert mutated(dice, world, 8) != before
        assert world == before
        assert smudged(dice, written(world), 5)


# -- what the laws see

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"a": "b"}}, "spec": {}}
ROOM = {"status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "3"}}}
GROUP = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "g"},
    "spec": {"minMember": 2},
}


def pod(name: str, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "annotations": {"scheduling.k8s.io/group-name": "g"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"schedulerName": "volcano", "containers": [container], **spec},
    }


PODS = [pod("a"), pod("b")]
BOTH = {"default/a": "n", "default/b": "n"}


@pytest.mark.parametrize(
    ("objects", "binds", "law"),
    [
        pytest.param([NODE | ROOM, GROUP, *PODS], BOTH, "", id="none is broken"),
        pytest.param([NODE | ROOM, GROUP, *PODS], {"default/a": "n"}, "it needs 2", id="half a gang"),
        pytest.param(
            [NODE | ROOM, GROUP, pod("a"), pod("b", "0")], {"default/a": "n"}, "", id="the other asks for nothing"
        ),
        pytest.param([NODE | ROOM, GROUP, pod("a"), pod("b", "1500m")], BOTH, "holds 2.5", id="too much cpu"),
        pytest.param(
            [NODE | ROOM, GROUP, *PODS, pod("c", "500m", nodeName="n")], BOTH, "holds 2.5", id="with what runs"
        ),
        pytest.param([NODE | ROOM, GROUP, *PODS], {**BOTH, "default/a": "m"}, "not there", id="no such node"),
        pytest.param([NODE | ROOM, pod("a", nodeName="n")], {"default/a": "n"}, "bound before", id="bound twice"),
        pytest.param([NODE | ROOM, pod("a", schedulingGates=[{"name": "x"}])], {"default/a": "n"}, "gated", id="gate"),
        pytest.param([NODE | ROOM, pod("a", nodeSelector={"a": "c"})], {"default/a": "n"}, "selector", id="selector"),
        pytest.param(
            [NODE | ROOM | {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}, pod("a")],
            {"default/a": "n"},
            "taint",
            id="taint",
        ),
        pytest.param(
            [NODE | ROOM | {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}]
            + [pod("a", tolerations=[{"operator": "Exists"}])],
            {"default/a": "n"},
            "",
            id="tolerated",
        ),
        pytest.param(
            [NODE | ROOM | {"spec": {"unschedulable": True}}, pod("a")], {"default/a": "n"}, "cordoned", id="c"
        ),
        pytest.param(
            [NODE | ROOM | {"spec": {"unschedulable": True}}, pod("a", tolerations=[{"operator": "Exists"}])],
            {"default/a": "n"},
            "",
            id="a cordon is tolerated",
        ),
    ],
)
def test_laws_see_what_is_broken(objects: list[Any], binds: dict[str, str], law: str) -> None:
    found = list(broken(Input(objects), binds, ()))
    assert len(found) == bool(law)
    assert law in "".join(found)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("500m", 0.5), ("1Ki", 1024), ("1.5Gi", 1.5 * 2**30), ("2k", 2000), ("1e3", 1000), (3, 3)]
    + [("x", None), ("1Q", None), (True, None), (None, None), ("-1", None), ("", None)],
)
def test_amounts(text: Any, value: float | None) -> None:
    assert amount(text) == value


def test_a_finding_is_cut_down() -> None:
    case = {"files": {"a.yaml": "\n---\n".join("abcdefgh")}}
    small = shrunk(case, lambda each: ["it"] if {"c", "f"} <= set(each["files"]["a.yaml"]) else [], "it")
    assert small == {"files": {"a.yaml": "c\n---\nf"}}


def test_an_input_that_takes_too_long_or_ends_the_process_is_a_finding(tmp_path: Path) -> None:
    slow = {"kind": "manifests", "files": {"a.yaml": "{}"}, "conf": "default"}
    with Fresh(Bounds(seconds=0.0)) as fresh:
        assert fresh.run(slow).problems == ["it takes more than 0 s"]
    with Fresh(Bounds(megabytes=1)) as fresh:
        (problem,) = fresh.run(slow).problems[-1:]
        assert problem.startswith("it needs ") or problem == "it ended the process"


def test_a_fault_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr("pumice.sim.scenes.manifest_files.load_manifests", faulty)
    case = make(SEED, 0)
    assert case["kind"] == "manifests"
    assert "ZeroDivisionError: a fault" in run(case)[0]
