"""A plugin that fails at any point of either language makes ``pumice schedule`` exit 1, and is named."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pumice.runtime.files.snapshot_file import Cycle, to_bytes
from pumice.testing.build import cluster
from tests.unit.cli.kit import run
from tests.unit.framework import every_point
from tests.unit.framework.every_point import Form
from tests.unit.kai.cluster import NOW, PLUGINS, store
from tests.unit.kai.engine import test_fault_at_each_point as of_kai

#: One form of each point: that a fault in any form is found is tested where the points are.
FORMS: dict[str, Form] = {
    **{f"volcano {form.point.name}": form for form in reversed(every_point.FORMS)},
    **{f"kai {form.point.name}": form for form in reversed(of_kai.FORMS)},
}
PLUGIN = """
from tests.unit.cli.commands.test_fault_at_each_point import FORMS, fails
from tests.unit.framework.every_point import plugin_at

Odd = plugin_at(FORMS[{name!r}], fails)
Odd.__module__ = __name__
"""


def fails(*args: Any) -> Any:
    """Raise, as the hook of a test."""
    raise RuntimeError("odd")


@cache
def _snapshot(language: str, world: str) -> bytes:
    """Return the file of a cycle on a world of one of the languages."""
    if language == "kai":
        return to_bytes(Cycle(store(*of_kai.WORLDS[world].objects).snapshot(), NOW, "dialect: kai\n"))
    return to_bytes(Cycle(cluster(list(every_point.WORLDS[world].objects)).snapshot(), 0.0, ""))


def _conf(language: str, world: str, plugin: str) -> str:
    """Return the policy of a world, with a plugin before the others."""
    if language == "kai":
        plugins = ", ".join(f"{{name: {name}}}" for name in (plugin, *PLUGINS))
        return f"dialect: kai\nactions: {of_kai.WORLDS[world].actions}\ntiers: [{{plugins: [{plugins}]}}]\n"
    return every_point.WORLDS[world].conf(plugin)


@pytest.mark.parametrize("name", sorted(FORMS))
def test_schedule_exits_1_and_names_the_plugin_if_a_hook_raises(name: str, tmp_path: Path) -> None:
    language, form = name.partition(" ")[0], FORMS[name]
    saved, conf, plugins = tmp_path / "cycle.pumice", tmp_path / "odd.conf", tmp_path / "plugins"
    plugins.mkdir()
    saved.write_bytes(_snapshot(language, form.world))
    conf.write_text(_conf(language, form.world, "odd"))
    (plugins / "odd.py").write_text(PLUGIN.format(name=name))
    ended = run("schedule", saved, "--conf", conf, "--plugins-dir", plugins, "--json")
    assert ended.code == 1, ended
    faults = ended.json["plugin_faults"]
    assert {(each["plugin"], each["hook"], each["point"]) for each in faults} == {("odd", "Odd.hook", form.point.name)}
    assert all(each["where"].startswith(f"{every_point.__file__}:") for each in faults)
