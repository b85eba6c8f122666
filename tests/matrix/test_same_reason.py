"""One job has one reason: each command names the same job, code and sentence for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.matrix.kit import KAI, VOLCANO, Raw, kai_gang, volcano_gang, volcano_job, written
from tests.unit.cli.kit import run


def reasons(words: tuple[object, ...], job: str) -> dict[str, str]:
    """Return by command the sentence about a job, "" where it is not named."""
    listed = [each for each in run("explain", "--all", *words, "--json").json["waiting"] if job in each["jobs"]]
    (why,) = run("explain", job, *words, "--no-ways", "--json").json["reason"]
    simulated = run("simulate", *words, "--json").json
    alone = [each["why"] for each in simulated["never_run"] if each["job"] == job]
    return {
        "schedule": run("schedule", *words, "--json").json["hints"].get(job, ""),
        "next": _first(run("next", *words, "--json").json["waiting"], job, "sentence"),
        "explain --all": listed[0]["example"] if listed else "",
        "explain": why["sentence"],
        "simulate": _first(simulated["waiting"], job, "why"),
        "simulate, alone": alone[0] if alone else "",
    }


def _first(listed: list[Raw], job: str, field: str) -> str:
    return next((each[field] for each in listed if each["job"] == job), "")


@pytest.mark.parametrize(
    ("objects", "conf", "scheduler", "ours"),
    [
        pytest.param([*KAI, *kai_gang("a", 2)], "", "", "", id="kai-under-kai"),
        pytest.param(
            [*VOLCANO, *KAI, *kai_gang("a", 2)],
            "actions: allocate\ntiers: [{plugins: [{name: gang}]}]\n",
            "kai-scheduler",
            "volcano",
            id="kai-under-volcano",
        ),
        pytest.param(
            [*VOLCANO, *kai_gang("a", 2)], "dialect: pumice\n", "kai-scheduler", "volcano", id="kai-under-pumice"
        ),
        pytest.param(
            [*VOLCANO, *volcano_gang("a", 2)], "dialect: kai\n", "volcano", "kai-scheduler", id="gang-under-kai"
        ),
        pytest.param(
            [*VOLCANO, *volcano_job("a", 2)], "dialect: kai\n", "volcano", "kai-scheduler", id="job-under-kai"
        ),
    ],
)
def test_a_job_of_another_scheduler_says_so_in_each_command(
    tmp_path: Path, objects: list[Raw], conf: str, scheduler: str, ours: str
) -> None:
    words = written(tmp_path, conf, *objects)
    if not scheduler:
        assert len(run("schedule", *words, "--json").json["binds"]) == 2
        return
    expected = f"its pods name the scheduler {scheduler}; Pumice places those of {ours}"
    assert set(reasons(words, "ml/a").values()) == {expected}


def test_what_pods_of_another_scheduler_ask_for_is_counted(tmp_path: Path) -> None:
    words = written(tmp_path, "dialect: kai\n", *VOLCANO, *volcano_gang("a", 2, cores=3))
    (found,) = run("explain", "--all", *words, "--json").json["waiting"]
    assert (found["code"], found["cores"]) == ("Missing", 6.0)
