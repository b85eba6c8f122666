"""Plain tables: which column is which field is suggested or given, and always said."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import pumice
from pumice.cli.main import main
from pumice.model.devices.gpu import GpuShare
from pumice.sim.traces.csv_columns import parse
from pumice.sim.traces.recognise import recognise, split, with_columns
from pumice.sim.traces.trace import Trace, TraceError

TABLE = """jobid,team,owner,num_gpu,submit,runtime_min,mem_gb,comment
a,ml,ann,2,2024-01-01 10:00:00,5,16,hello
b,web,bob,0.5,2024-01-01T10:01:30Z,7,8,x
"""


def read(tmp_path: Path, text: str, columns: str = "", name: str = "jobs.csv") -> Trace:
    file = tmp_path / name
    file.write_text(text)
    found = recognise(f"csv({columns}):{file}")
    assert found is not None and found.kind == "csv"
    return found.read()


def error(tmp_path: Path, text: str, columns: str = "") -> str:
    with pytest.raises(TraceError) as caught:
        read(tmp_path, text, columns)
    return str(caught.value).replace(f"{tmp_path}/", "")


def whats(trace: Trace) -> list[str]:
    return [problem.what for problem in trace.problems]


def test_columns_and_units_are_suggested_and_said(tmp_path: Path) -> None:
    file = tmp_path / "jobs.csv"
    file.write_text(TABLE)
    found = recognise(file)
    assert found is not None and found.kind == "csv"
    trace = found.read()
    assert trace.notes[0] == (
        "columns: job=jobid,queue=team,user=owner,submitted=submit@date,duration=runtime_min@min,gpus=num_gpu@GPUs,"
        "memory=mem_gb@GB; not used: comment; other columns: --columns FIELD=COLUMN@UNIT,…"
    )
    a, b = trace.jobs
    assert (a.name, a.queue, a.arrival_s, a.duration_s, a.user) == ("a", "ml", 0, 300, "ann")
    assert (a.tasks[0].spec.request.get("nvidia.com/gpu"), a.tasks[0].spec.request.memory) == (2000, 16e9)
    assert (b.arrival_s, b.duration_s, b.tasks[0].spec.gpu_share) == (90, 420, GpuShare(0.5))
    assert [queue.name for queue in trace.queues] == ["ml", "web"]
    group, pods = a.expand(0.0)
    assert group.labels["pumice.dev/user"] == pods[0].labels["pumice.dev/user"] == "ann"


def test_given_columns_go_before_suggested_ones(tmp_path: Path) -> None:
    trace = read(tmp_path, TABLE, "gpus=num_gpu@percent,user=,queue=owner,duration=runtime_min@h")
    (a, b) = trace.jobs
    assert (a.queue, a.user, a.duration_s) == ("ann", "", 5 * 3600)
    assert a.tasks[0].spec.gpu_share == GpuShare(0.02)
    assert b.tasks[0].spec.gpu_share == GpuShare(0.005)
    assert "not used: team, comment" in trace.notes[0]


@pytest.mark.parametrize(
    ("header", "row", "seconds", "memory"),
    [
        ("submit_ms,end_ms,memory", "1000,61000,8", 60, 8 * 2**30),
        ("submitted,finished,mem_mib", "1700000000000,1700000060000,512", 60, 512 * 2**20),  # ms since the epoch
        ("created,ended,memory_bytes", "10,20,1000000", 10, 1e6),
        ("start_time,end_time,memory", "2020-06-09 18:41:01,2020-06-10,262144", 19139, 262144 * 2**20),
        ("timestamp,run_hours,ram", "5,2,68719476736", 7200, 64 * 2**30),
    ],
)
def test_units_follow_names_and_values(tmp_path: Path, header: str, row: str, seconds: float, memory: float) -> None:
    (job,) = read(tmp_path, f"{header}\n{row}\n").jobs
    assert (job.duration_s, job.arrival_s, job.tasks[0].spec.request.memory) == (seconds, 0, memory)


def test_gangs_priorities_and_totals(tmp_path: Path) -> None:
    text = "submit,duration,workers,gpu_num,minimum,priority,cores,timelimit\n5,10,4,8,3,7,2,20\n0,10,2,3,1,0,1,\n"
    trace = read(tmp_path, text, "total_gpus=gpu_num")
    (job,) = trace.jobs
    assert (job.size, job.min_available, job.arrival_s, job.estimate_s) == (4, 3, 0, 20)
    assert job.tasks[0].spec.request.get("nvidia.com/gpu") == 2000
    assert [(each.name, each.value) for each in trace.priorities] == [("priority-7", 7)]
    assert job.priority_class == "priority-7"
    assert whats(trace) == [
        "1 row left out, GPUs of a pod are neither a whole number nor a part of one: line 3 ('1.5')"
    ]


def test_rows_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    rows = ["x,0,5,1", "x,0,5,1", "y,then,5,1", "z,0,-1,1", "a b,0,5,1", "c,0,5", "d,9,5,nan"]
    assert whats(read(tmp_path, "job,submit,duration,cpus\n" + "\n".join(rows))) == [
        "1 row left out, a name occurs twice: line 3 ('x')",
        "1 row left out, submit is not a number: line 4 ('then')",
        "1 row left out, duration is below 0: line 5 ('-1')",
        "1 row left out, job is empty, too long, or has spaces or /: line 6 ('a b')",
        "1 row left out, a row does not have 4 fields: line 7 ('3 fields')",
        "1 row left out, cpus is not a number: line 8 ('nan')",
    ]
    rows = ["a,2024-01-01,2023-12-31,1", "b,2024-01-01,2024-13-01,1", "c,2024-01-01,2024-01-02,1"]
    trace = read(tmp_path, "job,start,end,cpus\n" + "\n".join(rows), "started=start@date,ended=end@date")
    assert [job.name for job in trace.jobs] == ["c"]
    assert whats(trace) == [
        "1 row left out, a job ends before it starts: line 2 ('2023-12-31')",
        "1 row left out, end is not a date such as 2020-06-09 18:41:01: line 3 ('2024-13-01')",
    ]


@pytest.mark.parametrize(
    ("text", "columns", "said"),
    [
        ("a,b\n1,2\n", "", "jobs.csv: columns: found no column for submitted, when a job arrives; suggested by their "
         "names: nothing; the table has a, b; say it with --columns FIELD=COLUMN"),
        ("submit,b\n1,2\n", "", "found no column for duration, or started and ended; suggested by their names: sub"),
        ("submit,run\n1,2\n", "", "found no column for any of gpus, cpus and memory, which pods ask for"),
        ("submit,run,gpus\n1,2,3\n", "gpus=gpu", "found no column 'gpu' (did you mean 'gpus'?); the table has submit"),
        ("submit,run,gpus\n1,2,3\n", "gups=gpus", "found the field 'gups' (did you mean 'gpus'?), wanted one of job"),
        ("submit,run,gpus\n1,2,3\n", "gpus", "found 'gpus', wanted FIELD=COLUMN or FIELD=COLUMN@UNIT"),
        ("submit,run,gpus\n1,2,3\n", "gpus=gpus@min", "gpus: found the unit 'min', wanted one of GPUs, milli, percent"),
        ("submit,run,gpus\n1,2,3\n", "queue=gpus@s", "queue: found the unit 's', but it has none"),
        ("submit,run,gpus\n1,2,3\n", "gpus=gpus,gpus=run", "found gpus twice"),
        ("submit,run,gpus,g\n1,2,3,4\n", "gpus=gpus,total_gpus=g", "found gpus and total_gpus, wanted one of them"),
        ("submit;run;gpus\n1;2;3\n", "", "found ';' between columns, wanted commas"),
        ("submit,run,run\n1,2,3\n", "", "found a column twice or without a name"),
        ("submit,run,gpus\n", "", "found no row of a csv trace that can be used: it has none"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_what_there_is(tmp_path: Path, text: str, columns: str, said: str) -> None:
    assert said in error(tmp_path, text, columns)


def test_all_problems_of_a_mapping_are_said_at_once() -> None:
    with pytest.raises(TraceError) as caught:
        parse("gups=x, memory=m@GI,queue")
    assert all(name in str(caught.value) for name in ("gups", "GI", "'queue'"))


def test_a_format_that_is_taken_by_its_header_is_said(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("job_id,num_gpu,submit_time,duration,queue\n1,1,0,5,a\n")
    found = recognise(file)
    assert found is not None
    note, *_, unused = found.read().notes
    assert note == (f"{file}: recognised as tiresias by the names of its columns; csv:{file} reads it as a plain table")
    assert unused == "columns not used: job_id, queue"
    file.write_text("job_id,gpus,submit_time,duration,queue\n1,1,0,5,a\n")
    found = recognise(file)
    assert found is not None
    with pytest.raises(
        TraceError, match="its columns are most like those of tiresias; csv:.*mine.csv reads it as a plain"
    ):
        found.read()


def test_inputs_are_rewritten_with_columns() -> None:
    assert with_columns(["a.csv", "csv:b", "swf:c", "d.yaml"], "gpus=x") == [
        "csv(gpus=x):a.csv", "csv(gpus=x):b", "swf:c", "d.yaml",
    ]  # fmt: skip
    assert with_columns(["a.csv"], "") == ["a.csv"]
    with pytest.raises(TraceError, match="found no plain table among the inputs"):
        with_columns(["swf:c"], "gpus=x")
    assert split("csv(gpus=GPU/h,memory=a:b):/x/y.csv") == ("csv(gpus=GPU/h,memory=a:b)", Path("/x/y.csv"))


def test_commands_and_the_library_take_columns(tmp_path: Path) -> None:
    file = tmp_path / "jobs.csv"
    file.write_text(TABLE.replace("0.5", "1"))
    words = [str(file), "--columns", "queue=owner", "--nodes", "1x4gpu"]
    result = CliRunner().invoke(main, ["simulate", *words, "--json"])
    assert result.exit_code == 0 and '"ann"' in result.stdout
    assert "note: columns: job=jobid,queue=owner,submitted=submit@date" in result.stderr
    result = CliRunner().invoke(main, ["compare", "default", "default", *words, "--repeats", "1", "--workers", "1"])
    assert "queue=owner" in result.stderr
    result = CliRunner().invoke(main, ["sweep", *words, "--out", str(tmp_path / "out"), "--workers", "1"])
    assert result.exit_code == 0 and "queue=owner" in result.stderr
    cluster = pumice.load(file, nodes="1x4gpu", columns="queue=owner")
    assert cluster.simulate().queues["queue"] == ["ann", "bob"]
    assert "queue=owner" in repr(cluster)
    with pytest.raises(pumice.InputError, match="found the field 'que'"):
        pumice.load(file, columns="que=owner")
