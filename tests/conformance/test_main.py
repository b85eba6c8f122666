"""``make conformance`` passes only if every listed folder has the counts that are listed for it and no case failed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.conformance.__main__ import main
from tests.conformance.runner import Status

FOLDERS: Mapping[str, Mapping[Status, int]] = {"some": {Status.ACCEPTED: 0, Status.NOT_YET: 0}}
CASE = """
name: a queue of its own
kind: action
conf: |
  actions: "allocate"
  tiers: [{plugins: [{name: gang}]}]
objects:
- {apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: q}, spec: {weight: 1}}
expect: {binds: {}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "some"
    made.mkdir()
    (made / "good.yaml").write_text(CASE)
    return made


def test_cases_that_pass_are_exit_code_0_with_their_counts(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(folder.parent, FOLDERS) == 0
    out, err = capfd.readouterr()
    assert out.splitlines()[-1].split() == ["some", "1", "0", "0", "0"]
    assert err == ""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (CASE.replace("binds: {}", "binds: {ns/p: n}"), "some: failed: some/other.yaml: bind of ns/p: expected 'n'"),
        (CASE.replace('"allocate"', '"juggle"'), "some: not_yet: some/other.yaml: action juggle"),
        ("kind: action", "some: failed: some/other.yaml: "),
    ],
    ids=["fails", "is not yet", "is unreadable"],
)
def test_a_case_that_no_longer_passes_is_named_and_exit_code_1(
    folder: Path, capfd: pytest.CaptureFixture[str], text: str, problem: str
) -> None:
    (folder / "other.yaml").write_text(text)
    assert main(folder.parent, FOLDERS) == 1
    assert problem in capfd.readouterr().err


def test_fewer_accepted_cases_than_listed_are_exit_code_1(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(folder.parent, {"some": {Status.ACCEPTED: 1, Status.NOT_YET: 0}}) == 1
    assert "some: accepted: found 0, wanted 1" in capfd.readouterr().err


def test_a_listed_folder_that_is_missing_is_exit_code_1(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(folder.parent, {**FOLDERS, "absent": FOLDERS["some"]}) == 1
    assert "absent: no report, exit code 2: error: " in capfd.readouterr().err


def test_no_recorded_cases_beside_the_checkout_are_skipped_aloud(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(tmp_path / "conformance", FOLDERS) == 0
    assert "SKIPPED" in capfd.readouterr().out
