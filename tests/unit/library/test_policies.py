"""Policies as a file, a text, and functions in Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pumice
from pumice.api import F64, JobRows, Session, plugin, points
from pumice.library.policies import PolicyLike
from tests.tidy import repo

DEMO = str(repo.ROOT / "examples" / "demo")


def conf(*plugins: str) -> str:
    return 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n' + "".join(f"  - {{name: {each}}}\n" for each in plugins)


@plugin("smallest-first")
@points.job_order
def smallest_first(ssn: Session, jobs: JobRows, *, sign: float = 1.0) -> F64:
    """Jobs of few pods go first."""
    return sign * np.array([group.min_member for group in jobs.groups], dtype=np.float64)


def digest(policy: PolicyLike) -> str:
    return pumice.load(DEMO).simulate(policy, until="2h", events=False).digest


def test_a_function_is_asked_before_the_plugins_of_the_file() -> None:
    found = pumice.policy(smallest_first)
    assert found.name == "default + smallest-first"
    assert "smallest-first" in found.text.split("- plugins:")[1]
    assert digest(found) != digest("default")
    assert digest(smallest_first) == digest(["default", smallest_first]) == digest(found)


def test_a_function_that_the_file_names_gets_its_arguments() -> None:
    plain = conf("smallest-first", "gang", "predicates")
    turned = conf("smallest-first, arguments: {sign: -1}", "gang", "predicates")
    named = pumice.policy(turned, smallest_first)
    assert named.text.count("smallest-first") == 1
    assert digest(named) != digest(pumice.policy(plain, smallest_first))


def test_a_text_and_a_file_are_the_same_policy(tmp_path: Path) -> None:
    path = tmp_path / "own.conf"
    path.write_text(conf("gang", "predicates"))
    assert digest(path) == digest(str(path)) == digest(conf("gang", "predicates")) != digest("default")
    assert pumice.policy("dialect: kai\n").policy.dialect.name == "kai"


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        (("default", "default"), "found 2 policy files"),
        ((print,), "wanted a function or class under @plugin"),
        ((conf("drff"),), 'did you mean "drf"'),
        (("kind: ConfigMap\ndata: {}\n", smallest_first), "need a plain policy file"),
        (("dialect: volcan\n\nactions: x\n", smallest_first), "volcan"),
        (("actions: [\n- x\n", smallest_first), "policy: is not valid YAML"),
    ],
)
def test_wrong_policies_are_named(parts: tuple[str, ...], wanted: str) -> None:
    with pytest.raises(ValueError, match=wanted):
        pumice.policy(*parts)


def test_a_function_leaves_texts_of_the_file_as_they_are() -> None:
    found = pumice.policy(conf("sla, arguments: {sla-waiting-time: 1:30}"), smallest_first, strict=False)
    assert "sla-waiting-time: '1:30'" in found.text, "a time of day is the number 90 in YAML 1.1"


def test_a_file_that_is_too_long_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "long.conf"
    path.write_text("#" * (3 << 20))
    with pytest.raises(pumice.PolicyError, match="found 1048577 characters, wanted at most 1048576"):
        pumice.policy(path)


def test_a_function_cannot_take_the_name_of_a_built_in_plugin() -> None:
    @plugin("drf")
    @points.job_order
    def drf(ssn: Session, jobs: JobRows) -> F64:
        return np.zeros(len(jobs.groups))

    with pytest.raises(pumice.PolicyError, match="plugin drf: a built-in or installed plugin has this name"):
        pumice.policy(drf)
