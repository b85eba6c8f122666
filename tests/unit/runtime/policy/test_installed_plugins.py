"""Plugins of installed packages: used by name, loaded only when named, and every problem says the package."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import pumice
from pumice.cli.main import main
from pumice.runtime.policy.installed_plugins import installed_in
from pumice.runtime.policy.languages import builtin_registry

MODULE = """
from pumice.api import F64, JobRows, Session, plugin, points
import numpy as np

@plugin("smallest-first")
@points.job_order
def smallest_first(ssn: Session, jobs: JobRows, *, scale: float = 1.0) -> F64:
    return scale * np.array([group.min_member for group in jobs.groups], dtype=np.float64)

plain = 3
"""
CONF = 'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: %s}, {name: gang}]\n'


def install(folder: Path, package: str, entries: str, module: str = MODULE) -> None:
    """Put a distribution with a module and entry points into a folder, as pip would."""
    name = package.replace("-", "_")
    (folder / f"{name}_module.py").write_text(module)
    info = folder / f"{name}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[pumice.plugins]\n{entries}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.endswith("_module")]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


def problem(conf: str) -> str:
    with pytest.raises(pumice.PolicyError) as caught:
        pumice.policy(conf)
    return str(caught.value)


def test_a_policy_names_a_plugin_of_a_package(site: Path) -> None:
    install(site, "tiny-order", "smallest-first = tiny_order_module:smallest_first")
    found = pumice.policy(CONF % "smallest-first")
    assert found.policy.options[0].spec.name == "smallest-first"
    assert [each.rpartition(" ")[0] for each in installed_in(found.policy)] == ["tiny-order 1.2"]
    (site / "conf").write_text(CONF % "smallest-first, arguments: {scale: 2}")
    result = CliRunner().invoke(main, ["simulate", "examples/debug-gang", "--conf", str(site / "conf")])
    assert result.exit_code == 0, result.output


def test_a_package_is_not_loaded_for_policies_that_do_not_name_it(site: Path) -> None:
    install(site, "tiny-order", "smallest-first = tiny_order_module:smallest_first", "raise SystemExit(3)")
    assert installed_in(pumice.policy("default").policy) == []
    assert "tiny_order_module" not in sys.modules


def test_a_built_in_plugin_keeps_its_name(site: Path) -> None:
    install(site, "tiny-order", "gang = tiny_order_module:smallest_first")
    options = pumice.policy(CONF % "drf").policy.options
    assert options[1].spec.target.__module__ == "pumice.volcano.plugins.gang"


def test_unknown_names_are_compared_with_those_of_packages(site: Path) -> None:
    install(site, "tiny-order", "smallest-first = tiny_order_module:smallest_first")
    assert 'unknown plugin "smalest-first"; did you mean "smallest-first"?' in problem(CONF % "smalest-first")
    assert "smallest-first" in builtin_registry().plugins("volcano")
    assert "smallest-first" in builtin_registry().ours


@pytest.mark.parametrize(
    ("entries", "module", "said"),
    [
        (
            "x = tiny_order_module:absent",
            MODULE,
            "plugin x of tiny-order 1.2: tiny_order_module:absent: AttributeError",
        ),
        ("x = tiny_order_module:plain", MODULE, "found 3, wanted a function or class under @plugin"),
        ("x = tiny_order_module:smallest_first", MODULE, "found the name 'smallest-first' at @plugin, wanted 'x'"),
        ("x = tiny_order_module:a", "1 / 0", "tiny_order_module:a: ZeroDivisionError: division by zero"),
        ("x = tiny_order_module:a", "raise SystemExit(3)", "tiny_order_module:a: it ended the process"),
        ("x = no_such_module:a", "", "ModuleNotFoundError: No module named 'no_such_module'"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_named_with_its_package(
    site: Path, entries: str, module: str, said: str
) -> None:
    install(site, "tiny-order", entries, module)
    assert said in problem(CONF % "x")


def test_one_name_in_two_packages_is_an_error(site: Path) -> None:
    install(site, "tiny-order", "smallest-first = tiny_order_module:smallest_first")
    install(site, "other-order", "smallest-first = other_order_module:smallest_first")
    assert "several installed packages have one of this name: other-order 1.2, tiny-order 1.2" in problem(
        CONF % "smallest-first"
    )
