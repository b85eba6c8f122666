"""Every reader on a few lines: what becomes of a good one, and what is said of a bad one."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from pumice.model.devices.gpu import GpuShare
from pumice.sim.traces import acme, openb, philly_gavel, swf, tiresias
from pumice.sim.traces.recognise import recognise
from pumice.sim.traces.trace import Trace, TraceError

PHILLY = "ResNet-18 (batch size 32)\tcmd %s\t-n\t1\t{steps}\t{at}\t{size}\n"
RATES = {
    "v100": {
        "('ResNet-18 (batch size 32)', 1)": {"null": 10.0, "('A3C', 1)": [1.0, 2.0]},
        "('ResNet-18 (batch size 32)', 2)": {"null": 15.0},
        "('A3C', 1)": {"null": 0.0},
    }
}
ACME = "job_id,arrival_time,num_iteration,gpu_workers,gpu_per_worker,cpu_per_gpu_worker,tensorsizes\n"
TIRESIAS = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
CLUSTER = "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n"
SWF = "{job} {submit} 5 {run} {size} -1 -1 {size} {wanted} -1 0 -1 -1 -1 -1 -1 -1 0\n"
OPENB = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
)
OPENB_NODES = "sn,cpu_milli,memory_mib,gpu,model\n"


def philly(folder: Path, **files: str) -> Path:
    (folder / "simulation_throughputs.json").write_text(json.dumps(RATES))
    (folder / "seed0").mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / "seed0" / f"{name}.trace").write_text(text)
    return folder


def whats(trace: Trace) -> list[str]:
    """The problems without the folder they are in."""
    return [f"{Path(problem.where).name}: {problem.what}" for problem in trace.problems]


def test_philly_durations_queues_and_sizes(tmp_path: Path) -> None:
    vc1 = PHILLY.format(steps=100, at="0.000000", size=1) + PHILLY.format(steps=300, at=6, size=2)
    vc2 = PHILLY.format(steps=400, at=7, size=4) + "\n"
    found = recognise(philly(tmp_path, b_1=vc1, a2=vc2))
    assert found is not None
    assert found.kind == "philly-gavel"
    trace = found.read()
    assert [(j.name, j.queue, j.size, j.min_available, j.arrival_s, j.duration_s) for j in trace.jobs] == [
        ("a2-00001", "vc-a2", 4, 4, 7, 10),
        ("b-1-00001", "vc-b-1", 1, 1, 0, 10),
        ("b-1-00002", "vc-b-1", 2, 2, 6, 20),
    ]
    assert [q.name for q in trace.queues] == ["vc-a2", "vc-b-1"]
    assert trace.nodes is not None
    assert len(trace.nodes) == 125
    assert trace.jobs[0].tasks[0].spec is trace.jobs[2].tasks[0].spec
    assert any(note.startswith("1 jobs have a gang size without a measured throughput") for note in trace.notes)
    assert trace.problems == []


@pytest.mark.parametrize(
    ("given", "named"),
    [
        pytest.param(".", "seed0/../simulation_throughputs.json", id="folder"),
        pytest.param("seed0/vc.trace", "seed0/../simulation_throughputs.json", id="file"),
    ],
)
def test_philly_names_its_throughputs_as_they_were_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, named: str
) -> None:
    philly(tmp_path, vc=PHILLY.format(steps=100, at=0, size=1))
    monkeypatch.chdir(tmp_path)
    assert f"durations are total_steps / throughput on v100, from {named}" in philly_gavel.read(Path(given)).notes


def test_philly_bad_rows_are_counted_and_named_and_the_rest_served(tmp_path: Path) -> None:
    lines = [
        PHILLY.format(steps=100, at=0, size=1),
        PHILLY.format(steps="many", at=0, size=1),
        PHILLY.format(steps="nan", at=0, size=1),
        PHILLY.format(steps=100, at=0, size=-2),
        PHILLY.format(steps=100, at=0, size=10**18),
        PHILLY.format(steps=1e17, at=0, size=1),
        PHILLY.format(steps=100, at=0, size=1.5),
        "A3C\tcmd\t-n\t1\t100\t0\t1\n",
        "A3D\tcmd\t-n\t1\t100\t0\t1\n",
        "one\ttwo\n",
    ]
    trace = philly_gavel.read(philly(tmp_path, vc="".join(lines)) / "seed0" / "vc.trace")
    assert len(trace.jobs) == 1
    assert whats(trace) == [
        "vc.trace: 2 rows left out, total_steps is not a number: line 2 ('many'), line 3 ('nan')",
        "vc.trace: 1 row left out, scale_factor is below 1: line 4 ('-2')",
        "vc.trace: 1 row left out, scale_factor is above 100,000: line 5 ('1000000000000000000')",
        "vc.trace: 1 row left out, total_steps take more than 100 years: line 6 ('1e+17')",
        "vc.trace: 1 row left out, scale_factor is not a whole number: line 7 ('1.5')",
        "vc.trace: 1 row left out, throughput of the job type is 0 on v100: line 8 ('A3C')",
        "vc.trace: 1 row left out, no throughput for the job type in simulation_throughputs.json: "
        "line 9 (\"A3D (did you mean 'A3C'?)\")",
        "vc.trace: 1 row left out, a line does not have 7 or 10 columns: line 10 ('2 columns')",
    ]


@pytest.mark.parametrize(
    ("rates", "why"),
    [
        (None, "found no simulation_throughputs.json"),
        ("{", "not JSON"),
        ("[1]", "wanted a table with 'v100'"),
        ('{"k80": {}}', "found ['k80'], wanted a table with 'v100'"),
        ('{"v100": {"x": 1}}', "row 'x': wanted"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_philly_without_usable_throughputs(tmp_path: Path, rates: str | None, why: str) -> None:
    folder = tmp_path / "a" / "b" / "c" / "d" / "e"
    folder.mkdir(parents=True)
    (folder / "x.trace").write_text(PHILLY.format(steps=1, at=0, size=1))
    if rates is not None:
        (folder / "simulation_throughputs.json").write_text(rates)
    with pytest.raises(TraceError) as error:
        philly_gavel.read(folder)
    assert why in str(error.value)


def test_acme(tmp_path: Path) -> None:
    file = tmp_path / "converted_kalos_trace.csv"
    file.write_text(ACME + "0,0.0,208,8,8.0,15.0,10.0\n7,313.0,156,1,1.0,120.0,19.0\n")
    trace = recognise(tmp_path).read()  # type: ignore[union-attr]
    big, small = trace.jobs
    assert (big.size, big.duration_s, big.tasks[0].spec.request.milli_cpu) == (8, 104, 120_000)
    assert big.tasks[0].spec.request.get("nvidia.com/gpu") == 8000
    assert (small.size, small.arrival_s, small.tasks[0].spec.request.memory) == (1, 313, 1.9e12)
    assert trace.nodes is not None
    assert len(trace.nodes) == 302


def test_tiresias_with_racks(tmp_path: Path) -> None:
    (tmp_path / "60_job.csv").write_text(TIRESIAS + "0,1,0,606,vgg19,164,30\n1,8,30,133,vgg11,147,23\n")
    (tmp_path / "cluster_spec.csv").write_text(CLUSTER + "2,3,4,128,254")
    trace = recognise(tmp_path).read()  # type: ignore[union-attr]
    assert [(j.size, j.arrival_s, j.duration_s) for j in trace.jobs] == [(1, 0, 164), (8, 30, 147)]
    assert trace.nodes is not None
    assert len(trace.nodes) == 6
    assert [(h.name, [m.exact for m in h.members]) for h in trace.hypernodes] == [
        ("rack-000", ["node-00000", "node-00001", "node-00002"]),
        ("rack-001", ["node-00003", "node-00004", "node-00005"]),
    ]
    assert trace.nodes[5].labels["topology.kubernetes.io/rack"] == "rack-001"


def test_tiresias_without_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "60_job.csv").write_text(TIRESIAS + "0,1,0,606,vgg19,164,30\n")
    trace = tiresias.read(tmp_path)
    assert trace.nodes is None
    with pytest.raises(TraceError, match="its cluster is unknown: use --nodes"):
        trace.scene()


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ("", "found no row"),
        ("0,1,1,1,1", "num_switch is below 1"),
        ("99999,99999,1,1,1", "above 100,000"),
        ("1,2", "fields"),
    ],
)
def test_tiresias_with_a_bad_cluster(tmp_path: Path, rows: str, why: str) -> None:
    (tmp_path / "60_job.csv").write_text(TIRESIAS)
    (tmp_path / "cluster_spec.csv").write_text(CLUSTER + rows)
    with pytest.raises(TraceError, match=why):
        tiresias.read(tmp_path)


def test_swf(tmp_path: Path) -> None:
    file = tmp_path / "log.swf"
    rows = [
        "; UnixStartTime: 0\n; MaxNodes: 200\n; MaxProcs: 300\n\n",
        SWF.format(job=1, submit=1641021254, run=100, size=128, wanted=90),
        SWF.format(job=2, submit=1641021354, run=50, size=4, wanted=-1),
    ]
    file.write_text("".join(rows))
    trace = recognise(file).read()  # type: ignore[union-attr]
    assert [(j.name, j.size, j.arrival_s, j.duration_s, j.estimate_s) for j in trace.jobs] == [
        ("job-000005", 128, 0, 100, 90),
        ("job-000006", 4, 100, 50, None),
    ]
    assert trace.nodes is not None
    assert len(trace.nodes) == 300
    assert trace.notes[-1] == "jobs that ran longer than they had asked for, and do so here: 1"


def test_swf_bad_lines(tmp_path: Path) -> None:
    file = tmp_path / "log.swf"
    good = SWF.format(job=1, submit=0, run=10, size=2, wanted=20)
    bad = [
        SWF.format(job=2, submit=0, run=-1, size=2, wanted=20),
        SWF.format(job=3, submit=0, run=10, size=-1, wanted=20),
        SWF.format(job=4, submit="then", run=10, size=1, wanted=20),
        SWF.format(job=5, submit=0, run=1e18, size=1, wanted=20),
        "6 7 8\n",
    ]
    file.write_text(good + "".join(bad))
    trace = swf.read(file)
    assert len(trace.jobs) == 1
    assert [problem.split(" left out, ")[1].split(":")[0] for problem in whats(trace)] == [
        "run time (field 4) is below 0",
        "neither requested nor allocated processors are at least 1",
        "submit time (field 2) is not a number",
        "run time (field 4) is above 3,155,760,000",
        "a line does not have 18 fields",
    ]


def test_a_folder_with_one_swf_log_is_that_log(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(SWF.format(job=1, submit=0, run=10, size=2, wanted=20))
    source = recognise(tmp_path)
    assert source is not None and len(source.read().jobs) == 1
    (tmp_path / "more.swf").write_text("")
    with pytest.raises(TraceError, match=r"found 2 files \*\.swf: log\.swf, more\.swf; wanted one, name the file"):
        source.read()


def test_openb_reads_parts_of_gpus_and_names_what_it_leaves_out(tmp_path: Path) -> None:
    pods = [
        "p0,12000,16384,1,1000,,LS,Running,0,500,100",
        "p1,6000,12288,1,460,,LS,Running,10,20,10",
        "p2,6000,12288,0,0,,BE,Pending,10,20,",
        "p3,6000,12288,2,1000,V100M32|G2|V100M32,LS,Running,30,40,30",
        "p4,6000,12288,1,500,,LS,Running,10,20,10",
        "p0,1,1,0,0,,LS,Running,0,5,0",
        "p5,1,1,0,0,,LS,Running,9,5,",
        "p6,99999999999999999999,1,0,0,,LS,Running,9,5,",
    ]
    (tmp_path / "openb_pod_list_default.csv").write_text(OPENB + "\n".join(pods))
    (tmp_path / "openb_node_list_gpu_node.csv").write_text(
        OPENB_NODES + "n0,64000,262144,2,P100\nn1,32000,262144,0,\nn2,-1,1,1,\n"
    )
    trace = recognise(tmp_path).read()  # type: ignore[union-attr]
    assert [(j.name, j.arrival_s, j.duration_s) for j in trace.jobs] == [
        ("p0", 0, 400),
        ("p1", 10, 10),
        ("p2", 10, 10),
        ("p3", 30, 10),
        ("p4", 10, 10),
    ]
    assert trace.jobs[1].tasks[0].spec.gpu_share == GpuShare(0.46)
    required = trace.jobs[3].tasks[0].spec.affinity.node_required
    assert required is not None
    assert required[0].labels[0].values == ("G2", "V100M32")
    assert trace.jobs[2].tasks[0].spec.request.get("nvidia.com/gpu") == 0
    assert trace.nodes is not None
    assert [(n.name, n.labels.get("nvidia.com/gpu.product")) for n in trace.nodes] == [("n0", "P100"), ("n1", None)]
    assert whats(trace) == [
        "openb_pod_list_default.csv: 1 row left out, a name occurs twice: line 7 ('p0')",
        "openb_pod_list_default.csv: 1 row left out, deletion_time is before the start: line 8 ('5')",
        "openb_pod_list_default.csv: 1 row left out, cpu_milli is above 1,000,000,000: line 9 ('99999999999999999999')",
        "openb_node_list_gpu_node.csv: 1 row left out, cpu_milli is below 0: line 4 ('-1')",
    ]


def test_openb_without_times(tmp_path: Path) -> None:
    file = tmp_path / "openb_pod_list_multigpu20.csv"
    file.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,1000,1024,1,1000\np1,1000,1024,0,0\n")
    trace = openb.read(file)
    assert [(j.arrival_s, math.isinf(j.duration_s)) for j in trace.jobs] == [(0, True), (1, True)]
    assert trace.nodes is None


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (
            "job_id,num_gpus,submit_time,duration",
            "missing column 'num_gpu' (did you mean 'num_gpus'?); found job_id, num_gpus, submit_time, duration; "
            "wanted job_id, num_gpu, submit_time, duration",
        ),
        ("name,cpu_milli,memory_mib,gpus", "missing columns 'num_gpu' (did you mean 'gpus'?), 'gpu_milli'"),
        ("job_id,arrival_time,num_iteration,gpu_workers", "missing columns 'gpu_per_worker'"),
    ],
)
def test_missing_columns_are_named(tmp_path: Path, header: str, why: str) -> None:
    file = tmp_path / "jobs.csv"
    file.write_text(header + "\n1,2,3,4\n")
    found = recognise(file)
    assert found is not None
    with pytest.raises(TraceError) as error:
        found.read()
    assert why in str(error.value)


@pytest.mark.parametrize(
    "content", [b"", b"hello\nworld\n", b"a,b,c\n1,2,3\n", b"\0" * 100, b"x" * 10**6, b"\xff\xfe\x00"]
)
def test_what_is_no_trace_is_none(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "thing.dat"
    file.write_bytes(content)
    assert recognise(file) is None


def test_manifests_are_no_trace(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: Pod\n")
    assert recognise(tmp_path) is None
    assert recognise(tmp_path / "a.yaml") is None
    assert recognise(tmp_path / "nowhere") is None


def test_a_trace_can_be_named(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text("; only a comment\n")
    found = recognise(f"swf:{file}")
    assert found is not None
    assert (found.kind, found.path) == ("swf", file)
    with pytest.raises(TraceError, match=r"found trace kind 'swv' \(did you mean 'swf'\?\)"):
        recognise(f"swv:{file}")
    with pytest.raises(TraceError, match="no such file or folder"):
        recognise(f"swf:{file}x")


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"job_id" + b"x" * 100_000, "a line of more than 65,536 bytes"), (b"job_id,\0", "a zero byte")],
)
def test_files_that_are_no_tables_end_with_one_error(tmp_path: Path, content: bytes, why: str) -> None:
    file = tmp_path / "converted_x_trace.csv"
    file.write_bytes(content)
    with pytest.raises(TraceError, match=why):
        acme.read(tmp_path)


@pytest.mark.parametrize("read", [acme.read, tiresias.read, openb.read, philly_gavel.read, swf.read])
def test_folders_without_the_files_say_what_was_wanted(tmp_path: Path, read: object) -> None:
    with pytest.raises(TraceError, match="found"):
        read(tmp_path)  # type: ignore[operator]


def test_rows_of_the_wrong_length_and_quotes(tmp_path: Path) -> None:
    file = tmp_path / "converted_x_trace.csv"
    file.write_text("\ufeff" + ACME + '"1",0,2,1,1,1,1\n1,2\n\n2,0,2,1,1,1,1,9\n', encoding="utf-8")
    trace = acme.read(file)
    assert [j.name for j in trace.jobs] == ["kalos-00002-1"]
    assert whats(trace) == [
        "converted_x_trace.csv: 2 rows left out, a row does not have 7 fields: line 3 ('2 fields'), line 5 ('8 fields')"
    ]
