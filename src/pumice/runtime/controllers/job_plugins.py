"""Plugins that a job names, with their arguments.

Source: Volcano's job plugins, with the arguments of their documentation.
"""

from __future__ import annotations

from collections.abc import Mapping

from pumice.model.manifest.reading.fields import FieldError, Obj, table, texts
from pumice.model.workloads.job import VolcanoJob
from pumice.runtime.controllers.writes import part

#: Known plugins. An unknown one keeps a job from starting.
PLUGINS = ("env", "svc", "ssh", "pytorch", "tensorflow", "mpi", "ray", "hcclrank")
#: Plugins that others need, as Volcano's webhook adds them.
_NEEDS = {"pytorch": ("svc",), "tensorflow": ("svc",), "mpi": ("svc", "ssh"), "ray": ("svc",)}
#: Arguments of plugins: name -> whether it can be given without a value, for true.
_ARGUMENTS: Mapping[str, Mapping[str, bool]] = {
    "env": {},
    "svc": {"publish-not-ready-addresses": True, "disable-network-policy": True},
    "ssh": dict.fromkeys(("ssh-key-file-path", "ssh-private-key", "ssh-public-key", "ssh-port"), False),
    "mpi": dict.fromkeys(("master", "worker", "port"), False),
    "ray": dict.fromkeys(
        (
            *("head", "worker", "headContainer", "workerContainer"),
            *("port", "dashboardPort", "clientServerPort", "clientPort"),
        ),
        False,
    ),
    "pytorch": dict.fromkeys(("master", "worker", "port"), False),
    "hcclrank": dict.fromkeys(("master", "worker"), False),
    "tensorflow": dict.fromkeys(("ps", "worker", "chief", "evaluator", "port"), False),
}
_TRUE = ("1", "t", "true")

Plugins = Mapping[str, tuple[str, ...]]


def plugins_of(obj: Obj) -> Plugins:
    """Return the plugins of a job with their arguments, including those that others need.

    Raises: FieldError for unknown plugins, or arguments that are not strings.
    """
    written = table(part(obj, "spec"), "plugins", "spec")
    found = {name: texts(written, name, "spec.plugins") for name in written}
    for name in found:
        if name not in PLUGINS:
            raise FieldError("spec.plugins", name, f"one of {', '.join(PLUGINS)}")
    for needed in [each for name in found for each in _NEEDS.get(name, ())]:
        found.setdefault(needed, ())
    return found


def pod_name(job: VolcanoJob, task: str, index: int) -> str:
    return f"{job.name}-{task}-{index}"


def hosts(job: VolcanoJob, task: str, count: int) -> list[str]:
    """Return the names by which the pods of a task reach each other."""
    return [f"{pod_name(job, task, i)}.{job.name}" for i in range(count)]


def argument(arguments: tuple[str, ...], name: str, default: str) -> str:
    """Return the last ``--name=value`` or ``--name value``."""
    return _given(arguments, {name: False}).get(name, default)


def port_of(plugins: Plugins, plugin: str, name: str, default: str) -> int:
    """Return the port in an argument. Raises: FieldError if it is invalid."""
    written = argument(plugins[plugin], name, default)
    if not (written.isascii() and written.isdecimal() and len(written) < 6 and 0 < int(written) < 65536):
        raise FieldError(f"spec.plugins.{plugin}", f"--{name}={written[:20]}", "a port from 1 to 65535")
    return int(written)


def switched_on(plugins: Plugins, plugin: str, name: str) -> bool:
    """Return True if a switch is given to a plugin, and not as false."""
    return _given(plugins.get(plugin, ()), _ARGUMENTS[plugin]).get(name, "").lower() in _TRUE


def unknown_arguments(plugins: Plugins) -> list[str]:
    """Return arguments that are not known, with the plugin and its known ones."""
    found = []
    for plugin, arguments in plugins.items():
        known = _ARGUMENTS[plugin]
        shown = ", ".join(f"--{name}" for name in known) or "none"
        found += [
            f"{plugin}: unknown argument {name!r}, known: {shown}"
            for name in _given(arguments, known)
            if name not in known
        ]
    return found


def _given(arguments: tuple[str, ...], known: Mapping[str, bool]) -> dict[str, str]:
    """Return values by name, the last of each, from ``--name=value``, ``--name value`` and, for switches, ``--name``.

    Source: Go's flags, with which Volcano reads them. A text that is not a flag is its own name.
    """
    found: dict[str, str] = {}
    words = list(arguments)
    while words:
        word = words.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or not name:
            found[word] = ""
        elif equals:
            found[name] = value
        elif known.get(name, True):
            found[name] = "true"
        else:
            found[name] = words.pop(0) if words and not words[0].startswith("-") else ""
    return found
