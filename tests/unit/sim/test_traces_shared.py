"""The real traces, where they are beside the checkout: counts and sizes as their READMEs give them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pumice.sim.traces.recognise import recognise
from pumice.sim.traces.trace import Trace
from tests.unit.sim.kit import SHARED, WITHOUT_SHARED

TRACES = SHARED / "traces"

pytestmark = pytest.mark.skipif(not TRACES.is_dir(), reason=WITHOUT_SHARED)


def read(path: str | Path) -> Trace:
    found = recognise(TRACES / path)
    assert found is not None
    return found.read()


def gang_sizes(trace: Trace) -> dict[int, int]:
    return dict(sorted(Counter(job.size for job in trace.jobs).items()))


def test_philly_gavel() -> None:
    trace = read("philly-gavel")
    assert len(trace.jobs) == 15_264
    assert len(trace.queues) == 15
    assert gang_sizes(trace) == {
        1: 10480,
        2: 463,
        4: 2044,
        7: 2,
        8: 1916,
        12: 6,
        16: 255,
        20: 1,
        24: 5,
        32: 91,
        64: 1,
    }
    assert trace.problems == []
    days = 86400
    assert 125 < max(job.arrival_s for job in trace.jobs) / days < 126
    assert 131 < max(job.duration_s for job in trace.jobs) / days < 132
    assert sum(note.startswith("1,548 jobs have a gang size without") for note in trace.notes) == 1
    assert len({job.key for job in trace.jobs}) == 15_264


def test_philly_of_the_physical_cluster() -> None:
    trace = read("philly-gavel/physical")
    assert (len(trace.jobs), len(trace.queues), trace.problems) == (196, 2, [])


def test_acme() -> None:
    trace = read("acme-2023")
    gpus = Counter(job.size * int(job.tasks[0].spec.request.get("nvidia.com/gpu")) // 1000 for job in trace.jobs)
    assert dict(sorted(gpus.items())) == {
        1: 29,
        2: 41,
        8: 19,
        16: 11,
        32: 14,
        64: 22,
        96: 3,
        128: 3,
        256: 52,
        296: 1,
        320: 1,
        496: 4,
        504: 7,
        512: 73,
        1016: 1,
        1024: 38,
    }
    gpu_hours = sum(
        job.size * job.tasks[0].spec.request.get("nvidia.com/gpu") / 1000 * job.duration_s / 3600 for job in trace.jobs
    )
    assert round(gpu_hours) == 456_843
    assert trace.problems == []


@pytest.mark.parametrize(
    ("file", "jobs", "largest", "days"),
    [("theta_2022.swf", 23_911, 4048, 364), ("theta_2023.swf", 8_401, 4389, 132), ("theta_1000.swf", 1_000, 2048, 8)],
)
def test_theta(file: str, jobs: int, largest: int, days: int) -> None:
    trace = read(f"theta-alcf/{file}")
    assert len(trace.jobs) == jobs
    assert max(job.size for job in trace.jobs) == largest
    assert round(max(job.arrival_s + job.duration_s for job in trace.jobs) / 86400) == days
    assert trace.nodes is not None
    assert len(trace.nodes) == 4392
    assert trace.problems == []


def test_tiresias() -> None:
    trace = read("tiresias-2019")
    assert trace.nodes is not None
    assert (len(trace.jobs), len(trace.nodes), len(trace.hypernodes)) == (60, 16, 1)


def test_openb() -> None:
    trace = read("openb-2023")
    assert len(trace.jobs) == 8_152
    assert sum(job.tasks[0].spec.gpu_share is not None for job in trace.jobs) == 3_078
    assert trace.nodes is not None
    assert len(trace.nodes) == 1_213
    assert sum(node.allocatable.get("nvidia.com/gpu") for node in trace.nodes) == 6_212_000
    assert sum(node.allocatable.milli_cpu for node in trace.nodes) == 107_018_000
    assert trace.problems == []


@pytest.mark.parametrize("file", sorted(path.name for path in TRACES.glob("openb-2023/openb_pod_list_*.csv")))
def test_every_openb_list_can_be_read(file: str) -> None:
    trace = read(f"openb-2023/{file}")
    lines = len((TRACES / "openb-2023" / file).read_text().splitlines()) - 1
    assert len(trace.jobs) == lines
    assert trace.problems == []
