"""Plugins from a folder: taken whole, or every problem named with its file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from pumice.framework.plugin.errors import PolicyError
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry
from pumice.runtime.policy.user_plugins import with_plugins_of
from pumice.volcano.table import volcano_registry

GOOD = """
from __future__ import annotations

from dataclasses import dataclass

from pumice.columns.views import Node, TaskClass
from pumice.framework.plugin import points
from pumice.framework.plugin.plugin import plugin
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.filter_result import Unfit
from pumice.volcano.plugins.gang import Gang


@dataclass
class Reason:
    text: str


@plugin("{name}")
@points.predicate
def quiet(ssn: Session, cls: TaskClass, node: Node, *, label: str = "noisy") -> Unfit | None:
    return Unfit(Reason("node(s) are noisy").text) if label in node.labels else None
"""


def folder_of(tmp_path: Path, **files: str) -> Path:
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def problems(folder: Path) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        with_plugins_of(folder, volcano_registry())
    return [problem.replace(f"{folder}/", "").replace(str(folder), "FOLDER") for problem in caught.value.problems]


def test_a_file_may_have_its_annotations_evaluated(tmp_path: Path) -> None:
    """Without the import that leaves annotations as they are written."""
    plain = GOOD.format(name="quiet").replace("from __future__ import annotations\n", "")
    assert plain != GOOD.format(name="quiet")
    registry = with_plugins_of(folder_of(tmp_path, a=plain), volcano_registry())
    spec = registry.plugin("volcano", "quiet")
    assert spec is not None and spec.arguments["label"].type == "str"
    assert [form for _, form, *_ in spec.hooks] == ["class_node"]


def test_every_language_finds_the_plugins_unless_it_has_one_of_that_name(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, a=GOOD.format(name="quiet"), b=GOOD.format(name="taskorder"))
    builtin = builtin_registry()
    registry = with_plugins_of(folder, builtin)
    mine = registry.plugin("volcano", "quiet")
    assert mine is not None
    assert mine == registry.plugin("kai", "quiet") == registry.plugin("pumice", "quiet")
    assert registry.plugin("kai", "taskorder") == builtin.plugin("kai", "taskorder")
    assert registry.plugin("kai", "volcano/taskorder") == registry.plugin("volcano", "taskorder") is not None


def test_files_become_plugins_of_the_policy_file(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, a=GOOD.format(name="quiet-a"), b=GOOD.format(name="quiet-b"))
    (folder / "notes.txt").write_text("not looked at")
    registry = with_plugins_of(folder, volcano_registry())
    assert set(registry.plugins("volcano")) - set(volcano_registry().plugins("volcano")) == {"quiet-a", "quiet-b"}
    conf = 'actions: "allocate"\ntiers: [{plugins: [{name: gang}, {name: quiet-b, arguments: {label: loud}}]}]\n'
    policy = policy_of(conf, registry)
    assert policy.tiers[0][1].arguments == {"label": "loud"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("x = (\n", "a.py: line 1: SyntaxError: '(' was never closed", id="syntax"),
        pytest.param("\nimport nobody_has_this\n", "a.py: line 2: ModuleNotFoundError: No module", id="import"),
        pytest.param("def f():\n    1 / 0\nf()\n", "a.py: line 2: ZeroDivisionError: division", id="fault"),
        pytest.param("raise SystemExit('no\\nmore')\n", "a.py: line 1: SystemExit: no more", id="exit"),
        pytest.param("x = 1\n", "a.py: found no plugin, wanted a function or class under @plugin", id="nothing"),
        pytest.param(
            "from pumice.volcano.plugins.gang import Gang\n", "a.py: found no plugin, wanted", id="somebody else's"
        ),
        pytest.param(
            "from pumice.framework.plugin.plugin import plugin\n\n@plugin('p')\ndef p(ssn): ...\n",
            "a.py: line 3: plugin p: no hook found",
            id="no hook",
        ),
        pytest.param(
            GOOD.format(name="gang"), "a.py: plugin gang: a built-in or installed plugin has this name", id="built-in"
        ),
    ],
)
def test_what_is_no_plugin_is_reported(tmp_path: Path, text: str, problem: str) -> None:
    (found,) = problems(folder_of(tmp_path, a=text))
    assert found.startswith(problem)
    assert found.isprintable()


def test_every_problem_is_reported_at_once(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, a="1 / 0", b=GOOD.format(name="quiet"), c=GOOD.format(name="quiet"), d="")
    found = problems(folder)
    assert [line.partition(":")[0] for line in found] == ["a.py", "c.py", "d.py"]
    assert found[1] == f"c.py: plugin quiet: {folder}/b.py has this name".replace(f"{folder}/", "")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        pytest.param("nowhere", "nowhere: cannot be read: No such file or directory", id="not there"),
        pytest.param("file", "file: cannot be read: Not a directory", id="a file"),
        pytest.param(
            "empty", "empty: found no *.py file, wanted plugins (*.so files of Go plugins cannot be", id="empty"
        ),
    ],
)
def test_a_folder_that_has_none_is_reported(tmp_path: Path, name: str, problem: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    with pytest.raises(PolicyError) as caught:
        with_plugins_of(tmp_path / name, volcano_registry())
    (found,) = caught.value.problems
    assert found.startswith(f"{tmp_path}/{problem}")
