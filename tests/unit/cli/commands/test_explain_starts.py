"""``pumice explain --starts``: when waiting jobs are expected to start, as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from pumice.cli.main import main

GANG = str(Path(__file__).parents[4] / "examples/debug-gang")


def test_a_job_that_never_starts_says_why_nothing_can_be_said() -> None:
    result = CliRunner().invoke(
        main, ["explain", "ml/tf", GANG, "--no-ways", "--starts", "--within", "1h", "--samples", "2"]
    )
    assert result.exit_code == 0, result.output
    assert "start  not known: in 2 of 2 simulations it does not start" in result.stdout


def test_json_has_intervals_in_seconds() -> None:
    result = CliRunner().invoke(
        main, ["explain", "--all", GANG, "--starts", "--within", "1h", "--samples", "2", "--json"]
    )
    found = json.loads(result.stdout)["starts"]
    assert found["samples"] == 2 and found["until_s"] == 3600 and found["compared"] is None
    assert found["jobs"]["ml/tf"]["middle_s"] is None and found["jobs"]["ml/tf"]["interval_80_s"] == [None, None]


@pytest.mark.parametrize(
    ("words", "problem"),
    [(("--samples", "0"), "0 is not in the range 1<=x<=200"), (("--within", "soon"), "found 'soon', wanted a time")],
)
def test_wrong_bounds_are_named(words: tuple[str, ...], problem: str) -> None:
    result = CliRunner().invoke(main, ["explain", "ml/tf", GANG, "--starts", *words])
    assert result.exit_code == 2 and problem in result.stderr
