"""Runs for other tools: Batsim's columns for evalys, and tracks for Perfetto."""

from __future__ import annotations

import csv
import io
import json
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from pumice.cli.main import main
from pumice.report.batsim import Placements, intervals
from pumice.report.perfetto import Perfetto


def event(t: float, kind: str, pod: str = "", job: str = "ns/j", node: str = "n0") -> dict[str, object]:
    return {"t": t, "event": kind, "job": job, "pod": pod, "node": node}


@pytest.mark.parametrize(
    ("places", "text"), [([], ""), ([3], "3"), ([4, 1, 2, 3, 7, 7], "1-4 7"), ([0, 2, 4], "0 2 4"), ([1, 0], "0-1")]
)
def test_places_are_interval_sets(places: list[int], text: str) -> None:
    assert intervals(places) == text


def test_a_job_is_where_it_was_placed_last() -> None:
    found = Placements(["n0", "n1", "n2"])
    for each in (
        event(1, "bind", "a"),
        event(1, "bind", "b", node="n1"),
        event(2, "gone", "a"),  # evicted, and placed anew
        event(3, "bind", "a", node="n2"),
        event(4, "bind", "c", job="ns/k", node="new"),
        event(9, "done"),
    ):
        found.add(each)
    assert (found.of("ns/j"), found.of("ns/k"), found.of("ns/none")) == ("1-2", "3", "")


def slices(*events: dict[str, object], end: float = 100.0) -> list[tuple[object, ...]]:
    file = io.StringIO()
    writer = Perfetto(file, ["n0", "n1"])
    for each in events:
        writer.add(each)
    writer.close(end)
    found = json.loads(file.getvalue())["traceEvents"]
    names = {each["pid"]: each["args"]["name"] for each in found if each["name"] == "process_name"}
    return [
        (names[each["pid"]], each["tid"], each["name"], each["ts"] / 1e6, each["dur"] / 1e6, *each["args"].values())
        for each in found
        if each["ph"] == "X"
    ]


def test_a_job_is_a_slice_on_each_of_its_nodes() -> None:
    assert slices(
        event(1, "bind", "a"),
        event(1, "bind", "b"),
        event(2, "bind", "c", node="n1"),
        event(3, "running", "a"),
        event(9, "done"),
    ) == [("n0", 1, "ns/j", 1, 8, 2, "succeeded"), ("n1", 1, "ns/j", 2, 7, 1, "succeeded")]


def test_slices_that_overlap_are_on_tracks_of_their_own() -> None:
    assert slices(
        event(1, "bind", "a"),
        event(2, "bind", "x", job="ns/k"),
        event(3, "gone", "a"),
        event(4, "bind", "y", job="ns/l"),
        event(5, "running", "old", job="ns/m", node="n7"),  # there before the run, on a node that came later
    ) == [
        ("n0", 1, "ns/j", 1, 2, 1, "gone"),
        ("n0", 2, "ns/k", 2, 98, 1, "open"),
        ("n0", 1, "ns/l", 4, 96, 1, "open"),
        ("n7", 1, "ns/m", 5, 95, 1, "open"),
    ]


def test_a_simulation_writes_both(tmp_path: Path) -> None:
    jobs, tracks = tmp_path / "out_jobs.csv", tmp_path / "tracks.json"
    words = ["simulate", "examples/demo", "--jobs", str(jobs), "--perfetto", str(tracks)]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    with jobs.open(newline="") as file:
        rows = list(csv.DictReader(file))
    by_job = {row["job"]: row for row in rows}
    etl = by_job["demo/etl-1"]
    assert (etl["job_id"], etl["workload_name"], etl["allocated_resources"]) == ("etl-1", "demo", "0-3")
    for row in rows:  # Batsim's times are ours under other names
        assert (row["submission_time"], row["starting_time"], row["finish_time"], row["waiting_time"]) == (
            row["submitted_s"], row["started_s"], row["ended_s"], row["wait_s"],
        )  # fmt: skip
    assert by_job["demo/giant"]["allocated_resources"] == by_job["demo/giant"]["starting_time"] == ""
    found = [each for each in json.loads(tracks.read_text())["traceEvents"] if each["ph"] == "X"]
    assert {each["name"] for each in found} == {row["job"] for row in rows} - {"demo/giant"}
    spans: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for each in found:
        spans.setdefault((each["pid"], each["tid"]), []).append((each["ts"], each["ts"] + each["dur"]))
    for listed in spans.values():  # no two slices of one track overlap
        listed.sort()
        assert all(end <= begin for (_, end), (begin, _) in pairwise(listed))
