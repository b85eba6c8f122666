"""Whatever a reader trips over becomes a problem with file and place; the other documents are served."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pumice.framework.plugin.errors import PolicyError
from pumice.model.manifest import Decoder
from pumice.runtime.files.documents import Document, documents, yaml_documents
from pumice.runtime.files.manifests import load_manifests
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.problems.problem import Problem
from pumice.sim.scenes.inputs import read_inputs
from pumice.volcano.table import volcano_registry

QUEUE = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\n"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("!!bool foo", "line 5, column 7: found 'foo' under bool"),
        ("!!int foo", "line 5, column 7: found 'foo' under int"),
        ("!!int ''", "line 5, column 7: found '' under int"),
        ("!!float foo", "line 5, column 7: found 'foo' under float"),
        ("!!timestamp foo", "could not determine a constructor for the tag 'tag:yaml.org,2002:timestamp'"),
        ("!!timestamp 2001-01-01", "could not determine a constructor"),
        ("!!binary aGVsbG8=", "could not determine a constructor"),
        ("!!set {a, b}", "could not determine a constructor"),
        ("!!omap [a: 1]", "could not determine a constructor"),
        ("!!pairs [a: 1]", "could not determine a constructor"),
        ("!!python/object:os.system {}", "could not determine a constructor"),
        ("!own foo", "could not determine a constructor for the tag '!own'"),
        ("!!map foo", "line 5, column 7: the tagged value is not a mapping"),
        ("!!seq foo", "expected a sequence node"),
        ("!!bool [a]", "line 5, column 7"),
        ("!!int {a: b}", "line 5, column 7"),
        ("0x" + "f" * 5000, "line 5, column 7: found an integer of 20000 bits"),
        ("9" * 5000, "line 5, column 7: found '9"),
        ("{? [a]: b}", "found unhashable key"),
    ],
)
def test_tags_and_values_that_yaml_has_and_json_has_not(value: str, said: str) -> None:
    text = f"{QUEUE}---\nmore: {value}\n---\n{QUEUE}"
    first, problem, last = yaml_documents("a.yaml", text)
    assert isinstance(first, Document) and isinstance(last, Document)
    assert isinstance(problem, Problem)
    assert problem.where == "a.yaml document 2"
    assert said in problem.what
    assert "unexpected error" not in problem.what


@pytest.mark.parametrize("value", ["2001-01-01", "1:30", "2001-01-01T00:00:00Z", "yes", "0o17", "1e3", ".5", "~", "''"])
def test_plain_values_are_what_they_were(value: str) -> None:
    (found,) = yaml_documents("a.yaml", f"more: {value}\n")
    assert isinstance(found, Document)
    wanted = {"yes": True, "~": None, "''": "", ".5": 0.5}
    assert found.obj == {"more": wanted.get(value, value)}


def faulty(*_: object, **__: object) -> Any:
    raise ZeroDivisionError("a fault\nin two lines")


def test_what_nobody_foresaw_in_a_document_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("pumice.runtime.files.documents._check_nesting", faulty)
    (tmp_path / "a.yaml").write_text(QUEUE)
    (problem,) = documents(tmp_path / "a.yaml")
    assert str(problem) == (
        f"error: {tmp_path}/a.yaml document 1: from line 1 on it cannot be read; unexpected error:"
        " ZeroDivisionError: a fault"
    )


def test_what_nobody_foresaw_in_json_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("pumice.runtime.files.documents._from_json", faulty)
    (tmp_path / "a.json").write_text("{}")
    (problem,) = documents(tmp_path / "a.json")
    assert isinstance(problem, Problem)
    assert problem.where == f"{tmp_path}/a.json document 1"


def test_what_nobody_foresaw_in_an_object_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    read = Decoder.read

    def sometimes(self: Decoder, obj: Any) -> Any:
        return faulty() if obj["metadata"]["name"] == "bad" else read(self, obj)

    monkeypatch.setattr(Decoder, "read", sometimes)
    (tmp_path / "a.yaml").write_text(f"{QUEUE}---\n{QUEUE.replace('name: q', 'name: bad')}")
    found = load_manifests([tmp_path])
    assert [obj.name for obj in found.objects] == ["q"]
    (problem,) = found.problems
    assert problem.where.endswith("a.yaml document 2")


def test_what_nobody_foresaw_in_a_trace_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("pumice.sim.traces.swf._job", faulty)
    (tmp_path / "a.swf").write_text(" ".join(["1"] * 18))
    (tmp_path / "a.yaml").write_text(QUEUE)
    found = read_inputs([str(tmp_path / "a.swf"), str(tmp_path / "a.yaml")])
    assert [type(obj).__name__ for obj in found.scene.objects] == ["Queue"]
    assert [problem.where for problem in found.scene.problems] == [f"trace {tmp_path}/a.swf"]


def test_what_nobody_foresaw_in_a_conf_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pumice.runtime.policy.conf.read_policy", faulty)
    with pytest.raises(PolicyError, match="a.conf: cannot be read; unexpected error: ZeroDivisionError"):
        policy_of("actions: allocate", volcano_registry(), where="a.conf")


CONF = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: %s, arguments: {%s: %s}}]\n'


@pytest.mark.parametrize(
    ("plugin", "argument"),
    [
        ("binpack", "binpack.weight"),
        ("binpack", "binpack.cpu"),
        ("binpack", "binpack.resources.example.com/foo"),
        ("nodeorder", "leastrequested.weight"),
        ("overcommit", "overcommit-factor"),
    ],
)
@pytest.mark.parametrize("number", ["9" * 400, "-" + "9" * 400, "0x" + "f" * 900, "9" * 20, "1.0e+300", ".inf", ".nan"])
def test_numbers_of_a_conf_are_bounded(plugin: str, argument: str, number: str) -> None:
    with pytest.raises(PolicyError) as refused:
        policy_of(CONF % (plugin, argument, number), volcano_registry())
    (problem,) = refused.value.problems
    assert argument in problem
    assert len(problem) < 250


def test_numbers_that_somebody_means_are_taken() -> None:
    policy = policy_of(CONF % ("binpack", "binpack.weight", 1_000_000), volcano_registry())
    assert policy.options[1].arguments == {"binpack_weight": 1_000_000}


@pytest.mark.parametrize("kind", ["tiresias", "acme", "openb", "swf"])
def test_lines_that_end_in_carriage_returns_alone_are_named(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a.csv").write_bytes(b"job_id,num_gpu,submit_time,duration\r1,1,0,10\r2,1,0,10\r")
    (problem,) = read_inputs([f"{kind}:{tmp_path / 'a.csv'}"]).scene.problems
    assert "a.csv" in problem.what
    assert "unexpected error" not in problem.what
