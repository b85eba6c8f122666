"""One job has one reason: each command names the same job, code and sentence for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.matrix.inputs import CONFS, JOBS_INPUTS, written_input
from tests.matrix.kit import KAI, NODE, VOLCANO, Raw, kai_gang, pod, volcano_gang, volcano_job, written
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


def test_pods_that_fit_are_counted_under_kai_too(tmp_path: Path) -> None:
    words = written(tmp_path, "", *KAI, *kai_gang("a", 3, cores=7))
    assert set(reasons(words, "ml/a").values()) == {
        "1 of 3 pods fit; the other 2 ask for 7 cores each, and n has 1 free"
    }


def test_who_comes_first_is_not_called_older(tmp_path: Path) -> None:
    words = written(tmp_path, "", *KAI, *kai_gang("a", 2, cores=3), *kai_gang("b", 2, cores=3))
    found = run("next", *words, "--json").json["waiting"]
    expected = "8 cores are free and 1 other gang of queue team takes them first: ml/a asks for 6"
    assert [(each["job"], each["sentence"]) for each in found] == [("ml/b", expected)]


def test_what_is_left_in_pieces_is_named_where_it_would_be_enough_in_all(tmp_path: Path) -> None:
    second = {**NODE, "metadata": {"name": "n2"}}
    words = written(tmp_path, "", second, *KAI, *kai_gang("a", 2, cores=6), *kai_gang("b", 1, cores=3))
    (found,) = run("next", *words, "--json").json["waiting"]
    assert found["sentence"].endswith("ml/a asks for 12, and at most 2 are left on one node")


def test_promises_are_not_given_to_those_alone_that_still_wait_for_them(tmp_path: Path) -> None:
    second = {**NODE, "metadata": {"name": "n2"}}
    sizes = {"a": 3, "b": 3, "c": 3, "d": 3, "e": 7, "f": 3}  # of the first four two fit on a node, and "f" in all
    pods = [pod(name, "volcano", cores) for name, cores in sizes.items()]
    words = written(tmp_path, CONFS["volcano"], second, *VOLCANO, *pods)
    (found,) = [each for each in run("next", *words, "--json").json["waiting"] if each["job"] == "ml/podgroup-ml-e"]
    assert found["sentence"] == "queue default: 0 of 16 cores used and 12 promised, asks for 7"


def test_a_limit_that_is_the_size_of_the_cluster_is_the_clusters_in_a_shortage(tmp_path: Path) -> None:
    second = {**NODE, "metadata": {"name": "n2"}}
    gangs = [*volcano_job("a", 4, cores=3), *volcano_job("b", 6, cores=7), *volcano_job("c", 4, cores=3)]
    words = written(tmp_path, CONFS["volcano"], second, *VOLCANO, *gangs)
    (why,) = run("explain", "ml/c", *words, "--no-ways", "--json").json["reason"]
    assert (why["code"], why["sentence"]) == ("Shortage", "cluster: 12 of 16 cores promised, asks for 12")


@pytest.mark.parametrize("name", ["volcano-gang", "kai-gang"])
def test_a_gang_that_runs_whole_waits_in_no_command(tmp_path: Path, name: str) -> None:
    jobs = written_input(tmp_path, JOBS_INPUTS[name], running="first")
    assert all(each["job"] != "ml/first" for each in run("next", jobs, "--json").json["waiting"])
    assert all("ml/first" not in each["jobs"] for each in run("explain", "--all", jobs, "--json").json["waiting"])
    assert "ml/first" not in run("schedule", jobs, "--json").json["hints"]
    assert run("explain", "ml/first", jobs, "--json").json["verdict"] == "starts"
