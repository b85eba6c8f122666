"""A case says what it found and what it wanted, and refuses what no case has."""

from __future__ import annotations

from pathlib import Path

import pytest

from pumice.testing.cases import check_case, read_cases

CASE = """
- case: one pod, one node
  plugins: [gang, predicates]
  nodes: {a: {cpu: 1}}
  gangs: {g: {min: 1, pods: 2}}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "cases.yaml"
    path.write_text(CASE + text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "reports"),
    [
        pytest.param("", "bound: found {'g-0': 'a'}, wanted {}", id="more is bound than was said"),
        pytest.param(
            "  bound: {g-0: a}\n  waits: {g-1: no}", "waits: found {'g-1': '0/1 nodes are", id="told otherwise"
        ),
        pytest.param("  bound: {g-0: a}\n  phases: {g: Running}", "phases: found {'g': 'Inqueue'}", id="phase"),
        pytest.param("  bound: {g-0: a}\n  first: [g-1]", "first: found ('g-0',), wanted ('g-1',)", id="order"),
    ],
)
def test_what_does_not_come_true_is_reported(tmp_path: Path, text: str, reports: str) -> None:
    (case,) = read_cases(written(tmp_path, text))
    with pytest.raises(AssertionError, match="one pod, one node") as caught:
        check_case(case)
    assert reports in str(caught.value)


def test_a_key_that_no_case_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="found \\['binds'\\], wanted of"):
        read_cases(written(tmp_path, "  binds: {}"))


def test_a_field_that_no_node_has_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "")
    path.write_text(path.read_text().replace("cpu: 1", "cpus: 1"), encoding="utf-8")
    (case,) = read_cases(path)
    with pytest.raises(TypeError, match="cpus"):
        check_case(case)
