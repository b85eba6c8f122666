"""Plugins of installed packages: entry points of the group ``pumice.plugins``, named as the plugin is.

A package is executed with the rights of this process when a policy names one of its plugins, and not before.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from pumice.framework.plugin.errors import PolicyError, problem_of
from pumice.framework.plugin.plugin import PLUGIN_ATTRIBUTE, PluginSpec
from pumice.framework.plugin.policy_file import Policy

GROUP = "pumice.plugins"


class BuiltinThenInstalled(Mapping[str, PluginSpec]):
    """Built-in plugins by name, then those of installed packages. Packages are looked at only for a name that is not
    built in, so that policies of built-in plugins pay nothing, and no package can change what their names mean."""

    def __init__(self, builtin: Mapping[str, PluginSpec]) -> None:
        self._builtin = builtin

    def __getitem__(self, name: str) -> PluginSpec:
        """Return a plugin. Raises: KeyError, PolicyError for an installed plugin that cannot be used."""
        return self._builtin[name] if name in self._builtin else _loaded(name)

    def __contains__(self, name: object) -> bool:
        return name in self._builtin or name in installed_names()

    def __iter__(self) -> Iterator[str]:
        yield from self._builtin
        yield from (name for name in installed_names() if name not in self._builtin)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def installed_names() -> list[str]:
    """Return the names of all plugins of installed packages, sorted."""
    return sorted({each.name for each in entry_points(group=GROUP)})


def installed_in(policy: Policy) -> list[str]:
    """Return package, version and digest of the file of each installed plugin that a policy names, sorted.

    The file is digested beside the version, since a package that is being written keeps its version.
    """
    found = []
    for option in policy.options:
        module = sys.modules[option.spec.target.__module__]
        entry = None if module.__name__.startswith("pumice.") else _entry(option.spec.name)
        if entry is not None:
            file = getattr(module, "__file__", None)
            digest = hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16] if file else ""
            found.append(f"{_package(entry)} {digest}")
    return sorted(set(found))


def _loaded(name: str) -> PluginSpec:
    found = _entry(name)
    if found is None:
        raise KeyError(name)
    where = f"plugin {name} of {_package(found)}"
    try:
        target = found.load()
    except (Exception, SystemExit) as error:  # a foreign module may raise anything
        problem = problem_of(error) if isinstance(error, Exception) else "it ended the process"
        raise PolicyError([f"{where}: {found.value}: {problem}"]) from error
    spec = getattr(target, PLUGIN_ATTRIBUTE, None)
    if not isinstance(spec, PluginSpec):
        raise PolicyError([f"{where}: {found.value}: found {target!r:.80}, wanted a function or class under @plugin"])
    if spec.name != name:
        raise PolicyError([f"{where}: {found.value}: found the name {spec.name!r} at @plugin, wanted {name!r}"])
    return spec


def _entry(name: str) -> EntryPoint | None:
    """Return the entry point of a name. Raises: PolicyError if several packages have one."""
    found = list({(each.value, _package(each)): each for each in entry_points(group=GROUP, name=name)}.values())
    if len(found) > 1:
        packages = ", ".join(sorted(map(_package, found)))
        raise PolicyError([f"plugin {name}: several installed packages have one of this name: {packages}"])
    return found[0] if found else None


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "an installed package"
