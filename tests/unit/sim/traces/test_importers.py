"""Readers of published traces, on samples that were made after their documentation: examples/traces."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from pumice.model.devices.gpu import GpuShare
from pumice.sim.traces import azure_packing
from pumice.sim.traces.recognise import READERS, recognise
from pumice.sim.traces.trace import Trace, TraceError

SAMPLES = Path(__file__).parents[4] / "examples" / "traces"
#: Formats with a sample, and what is read: the folder, or one file of it.
SOURCES = {
    "philly": "philly",
    "helios": "helios",
    "pai-2020": "pai-2020",
    "alibaba-dlrm-2025": "alibaba-dlrm-2025",
    "alibaba-spot-2026": "alibaba-spot-2026",
    "google-2019": "google-2019/instance_events.json",
    "azure-packing": "azure-packing/packing.sqlite",
}


def read(source: Path | str) -> Trace:
    found = recognise(source)
    assert found is not None
    return found.read()


def whats(trace: Trace) -> list[str]:
    return [f"{Path(problem.where).name}: {problem.what}" for problem in trace.problems]


@pytest.fixture
def copied(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of the sample that the test names."""
    return Path(shutil.copytree(SAMPLES / request.param, tmp_path / request.param))


@pytest.mark.parametrize("kind", SOURCES)
def test_each_sample_is_read_whole_and_says_what_is_not_used(kind: str) -> None:
    source = SAMPLES / SOURCES[kind]
    trace = read(f"{kind}:{source}" if kind == "google-2019" else source)
    assert trace.problems == [] and len(trace.jobs) >= 20
    assert min(job.arrival_s for job in trace.jobs) >= 0 and all(job.duration_s > 0 for job in trace.jobs)
    said = any("not used" in note or "cannot be mapped" in note for note in trace.notes)
    assert said == (kind != "alibaba-spot-2026")  # whose columns are all used
    known = {queue.name for queue in trace.queues}
    assert {job.queue for job in trace.jobs} <= known
    assert kind in READERS and all(path.stat().st_size <= 20_000 for path in (SAMPLES / kind).iterdir())


def test_helios_jobs_are_divided_among_their_nodes() -> None:
    trace = read(SAMPLES / "helios")
    first = trace.jobs[0]
    assert (first.name, first.arrival_s) == ("900001", 0)
    gangs = [job for job in trace.jobs if job.size > 1]
    assert gangs and all(job.tasks[0].spec.request.get("nvidia.com/gpu") == 8000 for job in gangs)
    assert trace.nodes is not None and len(trace.nodes) == 13  # 104 GPUs
    limits = {queue.name: queue.capability for queue in trace.queues}
    assert limits["vcTwo"] is not None and limits["vcTwo"].get("nvidia.com/gpu") == 40_000


@pytest.mark.parametrize("copied", ["helios"], indirect=True)
def test_helios_names_the_first_wrong_row(copied: Path) -> None:
    file = copied / "cluster_log.csv"
    rows = file.read_text().splitlines()
    rows[3] = rows[3].replace(",1,", ",none,", 1)
    rows[5] = rows[5].replace("2020-", "then-", 1)
    file.write_text("\n".join(rows))
    problems = whats(read(copied))
    assert [each.partition(": ")[2][:13] for each in problems] == ["1 row left ou"] * 2
    assert "line 4 ('none')" in " ".join(problems) and "line 6 ('then-06-09" in " ".join(problems)


def test_pai_tasks_are_roles_with_parts_of_gpus() -> None:
    trace = read(SAMPLES / "pai-2020")
    assert len(trace.jobs) == 30 and trace.nodes is not None and len(trace.nodes) == 8
    roles = {tuple(task.role for task in job.tasks) for job in trace.jobs}
    assert {("tensorflow",), ("ps", "worker-1"), ("pytorchworker",)} <= roles
    shares = {task.spec.gpu_share for job in trace.jobs for task in job.tasks}
    assert GpuShare(0.25) in shares and GpuShare(0.5) in shares
    job = next(job for job in trace.jobs if len(job.tasks) == 2)
    assert job.min_available == job.size and job.user


def test_pai_tables_may_have_a_header_and_jobs_with_a_wrong_task_are_left_out(tmp_path: Path) -> None:
    rows = [
        "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type",
        "a,ps,1.0,Terminated,10.0,30.0,400.0,10.0,,CPU",
        "a,worker,2.0,Terminated,12.0,50.0,600.0,29.3,150.0,T4",
        "b,tensorflow,1.0,Terminated,20.0,30.0,600.0,29.3,50.0,MISC",
        "c,tensorflow,1.0,Running,20.0,,600.0,29.3,50.0,MISC",
    ]
    file = tmp_path / "pai_task_table.csv"
    file.write_text("\n".join(rows))
    trace = read(file)
    assert [(job.name, job.arrival_s, job.duration_s) for job in trace.jobs] == [("b", 0, 10)]
    assert whats(trace) == [
        "pai_task_table.csv: 1 row left out, plan_gpu is neither a multiple of 100 nor below 100: line 3 ('150.0')",
        "pai_task_table.csv: 1 row left out, end_time is missing (the task had not ended, or never ran): "
        "line 5 ('Running')",
    ]


DLRM = (
    "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,memory_request,"
    "memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,deletion_time\n"
)


def test_dlrm_instances_from_before_the_trace_are_there_at_its_start(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    rows = [
        "instance_1,HN,app_0,12,12,1,1,25,25,120.0,120.0,680.0,800.0,8,,,",
        "instance_2,CN,app_1,64,64,0,0,1,1,320.0,320.0,255.0,300.0,-1,100.0,130.0,190.0",
        "instance_3,CN,app_1,64,64,0,0,1,1,320.0,320.0,255.0,300.0,-1,NaN,NaN,50.0",
        "instance_4,XX,app_1,64,64,0,0,1,1,320.0,320.0,255.0,300.0,-1,NaN,NaN,50.0",
        "instance_5,CN,app_1,64,64,0,0,1,1,320.0,320.0,255.0,300.0,-1,100.0,130.0,90.0",
    ]
    file.write_text(DLRM + "\n".join(rows))
    trace = read(file)
    assert [(job.name, job.arrival_s, job.duration_s) for job in trace.jobs] == [
        ("instance-1", 0, float("inf")),
        ("instance-2", 100, 60),
        ("instance-3", 0, 50),
    ]
    assert [each.split(" left out, ")[1] for each in whats(trace)] == [
        "role is neither CN nor HN: line 5 ('XX')",
        "deletion_time is before the start: line 6 ('90.0')",
    ]
    assert "(1 rows)" in " ".join(trace.notes)


def test_spot_jobs_have_a_lower_priority_and_models(tmp_path: Path) -> None:
    trace = read(SAMPLES / "alibaba-spot-2026")
    assert {job.priority_class for job in trace.jobs} == {"priority-0", "priority-1000"}
    assert {each.value for each in trace.priorities} == {0, 1000}
    assert all(job.tasks[0].spec.affinity.node_required for job in trace.jobs)
    assert {queue.name for queue in trace.queues} == {"org-3", "org-13", "org-57"}
    for path in (SAMPLES / "alibaba-spot-2026").iterdir():
        text = path.read_text()
        (tmp_path / path.name).write_text(text.replace(",Spot", ",Spotty", 1).replace("8,GPU", "8,", 1))
    assert "job_type is none of HP, Spot: line" in whats(read(tmp_path))[0]


def google(kind: int | str, time: int, **more: object) -> dict[str, object]:
    return {
        "time": str(time * 10**6), "type": kind, "collection_id": "7", "collection_type": 0, "priority": 200,
        "alloc_collection_id": "0", "instance_index": 3, "resource_request": {"cpus": 0.5, "memory": 0.25}, **more,
    }  # fmt: skip


def test_google_instances_run_as_long_as_they_ran_in_all(tmp_path: Path) -> None:
    file = tmp_path / "events"
    events = [
        google("FINISH", 90),
        google(0, 10),  # events are in no order
        google(3, 20),
        google("EVICT", 30),
        google(3, 50),
        google(0, 10, collection_id="8"),
        google(0, 1, collection_id="9", collection_type="ALLOC_SET"),
        google(77, 1, collection_id="10"),
        google(3, 5, collection_id="11"),
    ]
    file.write_text("".join(json.dumps(each) + "\n" for each in events) + "[1]\n")
    trace = read(f"google-2019:{file}")
    first, second = trace.jobs
    assert (first.name, first.arrival_s, first.duration_s, first.priority_class) == ("c7-3", 10, 50, "priority-200")
    assert (second.name, second.duration_s) == ("c11-3", float("inf"))
    assert first.tasks[0].spec.request.milli_cpu == 32_000
    assert [each.split(" left out, ")[1] for each in whats(trace)] == [
        "instances of alloc sets, which only reserve room: line 7",
        "type is above 10: line 8 ('77')",
        "a line is no JSON object: line 10 ('[1]')",
        "an instance never ran: c8-3",
    ]


def test_google_events_may_be_a_flat_table(tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    file.write_text(
        "time,type,collection_id,collection_type,priority,alloc_collection_id,instance_index,machine_id,"
        "resource_request_cpus,resource_request_memory\n"
        "1000000,0,7,0,100,0,0,1,0.5,0.5\n2000000,3,7,0,100,0,0,1,0.5,0.5\n5000000,6,7,0,100,0,0,1,0.5,0.5\n"
    )
    trace = read(f"google-2019:{file}")
    assert [(job.arrival_s, job.duration_s) for job in trace.jobs] == [(1, 3)]
    file.write_text("time,type\n1,2\n")
    with pytest.raises(TraceError, match="missing columns alloc_collection_id, collection_id"):
        read(f"google-2019:{file}")


def azure(path: Path, *requests: tuple[object, ...]) -> Path:
    with sqlite3.connect(path) as database:
        database.execute("create table kinds (id, vmTypeId, machineId, core, memory, hdd, ssd, nic)")
        database.execute("create table requests (vmId, tenantId, vmTypeId, priority, starttime, endtime)")
        kinds = [(0, 1, 5, 0.25, 0.5, 0, 0, 0), (1, 1, 6, 0.5, 0.5, 0, 0, 0), (2, 2, 6, 1.5, 0.5, 0, 0, 0)]
        database.executemany("insert into kinds values (?,?,?,?,?,?,?,?)", kinds)
        database.executemany("insert into requests values (?,?,?,?,?,?)", requests)
    database.close()
    return path


def test_azure_tables_of_very_many_rows_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(azure_packing, "LINES_MAX", 2)
    file = azure(tmp_path / "a.sqlite", *((vm, 1, 1, 0, 0.0, 1.0) for vm in range(3)))
    with pytest.raises(TraceError, match="table requests: more than 2 rows"):
        read(file)


def test_azure_machines_are_parts_of_one_kind(tmp_path: Path) -> None:
    file = azure(
        tmp_path / "a.sqlite",
        (1, 1, 1, 0, -2.0, 1.0),
        (2, 1, 1, 1, 0.5, None),
        (3, 1, 2, 0, 0.5, 1.0),
        (4, 1, 1, 7, 0.5, 1.0),
        (5, 1, 1, 0, 0.5, 0.25),
        (6, 1, 1, 0, "soon", 1.0),
    )
    trace = read(file)
    assert [(job.name, job.arrival_s, job.duration_s, job.priority_class) for job in trace.jobs] == [
        ("vm-1", 0, 86_400, "high"),
        ("vm-2", 43_200, float("inf"), "low"),
    ]
    assert trace.jobs[0].tasks[0].spec.request.milli_cpu == 16_000
    assert [each.split(" left out, ")[1] for each in whats(trace)] == [
        "core is above 1: vmTypeId 2 ('1.5')",
        "a type of virtual machine does not run on the machine that is simulated: vmId 3 ('2')",
        "priority is neither 0 nor 1: vmId 4 ('7')",
        "endtime is before the start: vmId 5 ('0.25')",
        "starttime is not a number: vmId 6 ('soon')",
    ]


def test_files_that_are_no_packing_trace_say_so(tmp_path: Path) -> None:
    file = tmp_path / "other.sqlite"
    with sqlite3.connect(file) as database:
        database.execute("create table other (vmId, tenantId)")
    database.close()
    with pytest.raises(TraceError, match="missing columns 'vmTypeId'"):
        read(file)
    (tmp_path / "broken.sqlite").write_bytes(b"SQLite format 3\0" + b"x" * 1000)
    with pytest.raises(TraceError, match="cannot be read as SQLite"):
        read(tmp_path / "broken.sqlite")


def attempt(start: object, end: object, *gpus: int) -> dict[str, object]:
    return {"start_time": start, "end_time": end, "detail": [{"ip": "m1", "gpus": ["gpu"] * each} for each in gpus]}


def test_philly_jobs_are_a_pod_for_each_server(tmp_path: Path) -> None:
    whole = {"status": "Pass", "vc": "ee9e8c", "user": "u", "submitted_time": "2017-10-07 01:00:00"}
    jobs = [
        {**whole, "jobid": "application_1", "attempts": [
            attempt("2017-10-07 01:10:00", "2017-10-07 01:20:00", 8, 8, 4),
            attempt("2017-10-07 01:30:00", "2017-10-07 01:35:00", 8, 8, 8),
        ]},
        {**whole, "jobid": "application_2", "attempts": []},
        {**whole, "jobid": "application_3", "attempts": [attempt("2017-10-07 01:10:00", None, 1)]},
        {**whole, "jobid": 4, "attempts": [attempt("2017-10-07 01:10:00", "2017-10-07 01:10:01", 1)]},
        {**whole, "jobid": "application_5", "attempts": [attempt("2017-10-07 01:10:00", "2017-10-07 01:10:01")]},
        7,
    ]  # fmt: skip
    file = tmp_path / "cluster_job_log"
    file.write_text(json.dumps(jobs))
    trace = read(tmp_path)
    (job,) = trace.jobs
    assert (job.queue, job.duration_s, job.arrival_s, job.user) == ("vc-ee9e8c", 900, 0, "u")
    assert [(task.role, task.replicas) for task in job.tasks] == [("gpus-4", 1), ("gpus-8", 2)]
    assert [each.split(" left out, ")[1] for each in whats(trace)] == [
        "a job has no attempt: entry 2 ('application-2')",
        "an attempt has no end_time (it still ran, or was not logged): entry 3",
        "jobid is not a text: entry 4 ('a number')",
        "no attempt names a GPU: entry 5 ('application-5')",
        "an entry is not a job: entry 6 ('a number')",
    ]
    file.write_text("{}")
    with pytest.raises(TraceError, match="wanted a list of jobs"):
        read(file)


def test_executions_without_arrivals_cannot_be_simulated(tmp_path: Path) -> None:
    file = tmp_path / "asi.csv"
    file.write_text("pod_id,workload_id,gpu_spec_public,gpu_request,duration_hours\np,w,A,1,2\n")
    with pytest.raises(TraceError, match="found executions without arrivals, which cannot be simulated"):
        recognise(file)


@pytest.mark.parametrize("kind", [kind for kind in SOURCES if kind not in ("google-2019", "azure-packing")])
def test_folders_without_the_file_say_which_is_wanted(kind: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"found no|Is a directory|No such file"):
        READERS[kind](tmp_path)
