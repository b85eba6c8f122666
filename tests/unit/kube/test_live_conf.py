"""The policy file of a scheduler that runs: taken whole when it is right, left alone with one line when it is not."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import yaml

from pumice.framework.plugin.errors import PolicyError
from pumice.kube.scheduler.logs import V2
from pumice.kube.scheduler.reload import ConfFile
from pumice.volcano.table import DEFAULT_CONF, volcano_registry

FIRST = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n'
SECOND = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n  - name: binpack\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "scheduler.conf"
    path.write_text(FIRST)
    return path


def conf_file(path: Path | None, strict: bool = True) -> ConfFile:
    """As it is reported where it comes into force."""
    made = ConfFile(path, volcano_registry(), DEFAULT_CONF, strict=strict)
    made.log()
    return made


def actions(conf: ConfFile) -> list[str]:
    return [action.name for action in conf.current.policy.actions]


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


def test_a_change_is_taken_over(path: Path) -> None:
    conf, reports = conf_file(path), []
    conf.changed = lambda: reports.append(conf.current.hash)
    before = conf.current
    assert not conf.look(), "nothing has changed"
    path.write_text(SECOND)
    assert conf.look()
    assert actions(conf) == ["enqueue", "allocate"]
    assert reports == [conf.current.hash] != [before.hash]
    assert [action.name for action in before.policy.actions] == ["allocate"], "whoever has the old one keeps it whole"


def test_a_config_map_that_is_mounted(tmp_path: Path) -> None:
    """The kubelet swaps a link to the folder, and nothing of the file itself changes."""
    for version, text in (("v1", FIRST), ("v2", SECOND), ("v3", "actions: [")):
        (tmp_path / version).mkdir()
        (tmp_path / version / "scheduler.conf").write_text(text)
    path, data, swap = tmp_path / "scheduler.conf", tmp_path / "..data", tmp_path / "..swap"
    path.symlink_to("..data/scheduler.conf")
    data.symlink_to("v1")
    conf = conf_file(path)
    for version, taken in (("v2", True), ("v3", False)):
        swap.symlink_to(version)
        swap.rename(data)
        assert conf.look() is taken
    assert actions(conf) == ["enqueue", "allocate"]
    data.unlink()
    assert not conf.look()
    assert "cannot be read" in conf.refused


def test_a_file_that_means_the_same_changes_nothing(path: Path) -> None:
    conf = conf_file(path)
    path.write_text("# a remark\n" + FIRST.replace('"allocate"', "allocate"))
    assert not conf.look()
    assert conf.reloads == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("actions: [", "is not valid YAML", id="no YAML"),
        pytest.param("", "found nothing", id="empty"),
        pytest.param(FIRST.replace("gang", "gnag"), 'did you mean "gang"', id="unknown plugin"),
        pytest.param("x" * (1 << 21), "wanted at most", id="too long"),
        pytest.param("a: b\x00", "is not usable YAML", id="control character"),
    ],
)
def test_nonsense_leaves_the_old_one_in_force(
    path: Path, caplog: pytest.LogCaptureFixture, text: str, said: str
) -> None:
    conf = conf_file(path)
    path.write_text(text)
    for _ in range(3):
        assert not conf.look()
    assert actions(conf) == ["allocate"]
    assert said in conf.refused
    assert len(errors(caplog)) == 1, "one line, however often it is read"
    assert conf.current.hash in errors(caplog)[0]
    assert "\n" not in errors(caplog)[0]


def test_it_recovers(path: Path) -> None:
    conf = conf_file(path)
    path.unlink()
    assert not conf.look()
    assert "cannot be read" in conf.refused
    path.write_text(FIRST)
    assert not conf.look(), "it is the one in force"
    assert conf.refused == ""
    path.write_text(SECOND)
    assert conf.look()


def test_bytes_that_are_no_text(path: Path) -> None:
    conf = conf_file(path)
    path.write_bytes(b"\xff\xfe")
    assert not conf.look()
    assert "is not UTF-8 text" in conf.refused


def test_a_lenient_one_names_what_it_leaves_out(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.write_text(FIRST + "  - name: nobody\n")
    conf_file(path, strict=False)
    assert any("ignored: " in record.getMessage() and "nobody" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("text", [pytest.param(None, id="not there"), pytest.param("actions: 1", id="wrong")])
def test_at_the_start_it_must_be_right(path: Path, text: str | None) -> None:
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(PolicyError):
        conf_file(path)


def test_no_file_is_the_default() -> None:
    conf = conf_file(None)
    assert actions(conf) == ["enqueue", "allocate", "backfill"]
    assert not conf.look()


@pytest.mark.parametrize(
    "metrics",
    [
        pytest.param(
            "metrics: {type: elasticsearch, address: 'http://es:9200', elasticsearch.password: hush}", id="in a line"
        ),
        pytest.param('metrics:\n  elasticsearch.password: "hu\\x73h, hush"', id="quoted"),
        pytest.param("metrics:\n  elasticsearch.password: |\n    hush\n    hush", id="a block"),
        pytest.param("metrics: {auth: [{bearerToken: hush}]}", id="within"),
    ],
)
def test_passwords_are_not_shown(path: Path, caplog: pytest.LogCaptureFixture, metrics: str) -> None:
    """Not on the page, not in the log, not in a dump; what is shown still loads, and as the same policy."""
    caplog.set_level(V2, "pumice.conf")
    path.write_text(f"{FIRST}{metrics}\n")
    conf = conf_file(path)
    for shown in (conf.current.text, conf.current.file, caplog.text):
        assert "metrics" in shown
        assert "hush" not in shown
    path.write_text(conf.current.file)
    assert actions(conf_file(path)) == actions(conf)


def test_passwords_in_a_config_map_are_not_shown(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(V2, "pumice.conf")
    inner = f"{FIRST}metrics: {{elasticsearch.password: hush}}\n"
    held = {"volcano-scheduler.conf": inner, "another": "hush"}
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "data": held}))
    conf = conf_file(path)
    for shown in (conf.current.text, conf.current.file, caplog.text):
        assert "metrics" in shown
        assert "hush" not in shown
    path.write_text(conf.current.file)
    assert actions(conf_file(path)) == actions(conf)


def test_a_file_without_passwords_is_shown_as_it_is(path: Path) -> None:
    path.write_text(f"# a remark\n{FIRST}")
    assert conf_file(path).current.file == f"# a remark\n{FIRST}"
