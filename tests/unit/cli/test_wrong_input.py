"""Forty ways to be wrong, over all commands: one sentence that says where, what was found and what was wanted."""

from __future__ import annotations

import tempfile
from errno import EACCES
from pathlib import Path

import pytest

from pumice.sim.scenes import inputs
from tests.unit.cli.kit import GOOD, run

NO_SUCH = "gone: no such file or folder"
NOTHING = "found nothing usable, wanted manifests or a trace"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files of every wrong kind, and a good one."""
    folder = tmp_path_factory.mktemp("wrong")
    (folder / "good.yaml").write_text(GOOD)
    (folder / "empty.yaml").touch()
    (folder / "folder").mkdir()
    (folder / "bad.yaml").write_text("a: [1, 2\nb: }")
    (folder / "bytes").write_bytes(b"\xff\xfe")
    (folder / "table.csv").write_text("a,b,c\n1,2,3\n")
    (folder / "header.csv").write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\n")
    (folder / "key.conf").write_text('actoins: "allocate"\ntiers: []\n')
    (folder / "slurm.conf").write_text('dialect: slurm\nactions: "allocate"\n')
    (folder / "list.conf").write_text("[1, 2]")
    result = run("simulate", folder / "good.yaml", "--until", "60s", "--save-cycle", 1, folder / "cycle.pumice")
    assert result.code == 0, result.err
    whole = (folder / "cycle.pumice").read_bytes()
    (folder / "cut.pumice").write_bytes(whole[: len(whole) // 2])
    return folder


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("simulate gone", NO_SUCH),
        ("simulate empty.yaml", f"empty.yaml: {NOTHING}"),
        ("simulate folder", f"folder: {NOTHING}"),
        ("simulate bad.yaml", "bad.yaml document 1: is not valid YAML: line 2, column 2"),
        ("simulate bytes", "bytes: is not UTF-8 text: byte 0 is 0xff"),
        ("simulate cycle.pumice", "cycle.pumice: found a snapshot of one cycle, wanted manifests or a trace"),
        ("simulate swf:table.csv", "table.csv: found no row of a swf trace that can be used: 2 rows left out"),
        ("simulate openb:header.csv", "header.csv: found no row of a openb trace that can be used: it has none"),
        ("simulate acme:table.csv", "missing columns 'job_id'"),
        ("simulate slurm:table.csv", "found trace kind 'slurm', wanted one of philly-gavel"),
        ("simulate good.yaml --conf gone", NO_SUCH),
        ("simulate good.yaml --conf folder", "folder: cannot be read: Is a directory"),
        ("simulate good.yaml --conf bytes", "bytes: is not UTF-8 text: byte 0 is 0xff"),
        ("simulate good.yaml --conf key.conf", 'unknown key "actoins"; did you mean "actions"?'),
        ("simulate good.yaml --conf key.conf", "actions: found nothing, wanted a comma separated list"),
        ("simulate good.yaml --conf slurm.conf", 'dialect: found "slurm", wanted one of kai, pumice, volcano'),
        ("simulate good.yaml --conf list.conf", "list.conf: found a list, wanted a mapping with actions and tiers"),
        ("simulate good.yaml --conf empty.yaml", "found nothing, wanted a mapping with actions and tiers"),
        ("simulate good.yaml --until soon", "--until': found 'soon', wanted a time above 0"),
        ("simulate good.yaml --nodes 8x", "--nodes: found '8x', wanted COUNT"),
        ("simulate good.yaml --faults gremlins=1", "--faults: found 'gremlins=1', wanted some of refused"),
        ("simulate good.yaml --report gone/x.html", "gone/x.html: the folder gone does not exist"),
        ("compare default default", "missing argument 'INPUT…'"),
        ("compare default folder good.yaml", "folder: found a folder, wanted a policy file"),
        ("compare default default empty.yaml", f"empty.yaml: {NOTHING}"),
        ("compare default default cycle.pumice", "cycle.pumice: found a snapshot of one cycle"),
        ("schedule empty.yaml", f"empty.yaml: {NOTHING}"),
        ("schedule cut.pumice", "cut.pumice: was truncated or changed"),
        ("schedule cycle.pumice good.yaml", "a snapshot contains a whole cluster: wanted no other input"),
        ("check-conf folder", "folder: cannot be read: Is a directory"),
        ("check-conf bytes", "bytes: is not UTF-8 text: byte 0 is 0xff"),
        ("check-conf good.yaml", "good.yaml: found 4 documents, wanted one"),
        ("fuzz --seeds 5..1", "found '5..1', wanted A..B with A no larger than B"),
        ("fuzz --seeds 1 --save good.yaml", "'good.yaml' is a file"),
        ("fuzz --seeds 1 --confs gone", "gone: cannot be read: No such file or directory"),
        ("fuzz --replay folder", "folder: cannot be read: Is a directory"),
        ("fuzz --replay bytes", "bytes: is not UTF-8 text: byte 0 is 0xff; wanted a world saved by fuzz"),
        ("fuzz --replay bad.yaml", "bad.yaml: is not valid JSON: line 1, column 1"),
        ("fill table.csv", "missing columns 'name'"),
        ("fill header.csv", "found no openb_node_list_gpu_node.csv"),
        ("bench --scenario gang --nodes 0 --pods 1 --gang 1", "nodes: found 0, wanted 1 to 10,000,000"),
        ("completion tcsh", "'tcsh' is not one of 'bash', 'zsh', 'fish'"),
        ("log-level 4 --socket-dir gone", "no scheduler listens here"),
        ("run --kubeconfig folder", "kubeconfig folder: cannot be read: folder: Is a directory"),
        ("conformance gone", NO_SUCH),
    ],
)
def test_each_wrong_input_gets_its_sentence(
    here: Path, monkeypatch: pytest.MonkeyPatch, command: str, says: str
) -> None:
    monkeypatch.chdir(here)
    result = run(*command.split())
    assert result.code == 2
    assert [line for line in result.lines("error") if says in line], result.err
    assert not [sign for sign in ("Errno", "codec", "NoneType", "Error:") if sign in result.err], result.err


@pytest.mark.parametrize("flags", [("--report", "x.html"), ("--save-cycle", "1", "c.pumice"), ("--jobs", "j.csv")])
def test_a_file_that_cannot_be_created_is_named_as_the_user_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(EACCES, "Permission denied", str(tmp_path / ".made.part"))

    (tmp_path / "in.yaml").write_text(GOOD)
    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    found = run("simulate", tmp_path / "in.yaml", *flags[:-1], tmp_path / flags[-1])
    assert (found.code, found.lines("error")) == (2, [f"{tmp_path / flags[-1]}: Permission denied"])


def test_a_folder_that_may_not_be_read_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(EACCES, "Permission denied", f"{path}/cluster_spec.csv")

    monkeypatch.setattr(inputs, "recognise", refuse)
    found = run("schedule", tmp_path)
    assert found.code == 2 and found.lines("error")[0] == f"{tmp_path}: cannot be read: Permission denied"
