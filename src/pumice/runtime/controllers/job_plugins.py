"""What a job asks for by the names of plugins, and their arguments.

Source: Volcano's job plugins (spec 06 §10.6), with the arguments of their own documentation.
"""

from __future__ import annotations

from collections.abc import Mapping

from pumice.model.manifest.reading.fields import FieldError, Obj, table, texts
from pumice.model.workloads.job import VolcanoJob
from pumice.runtime.controllers.writes import part

#: Another plugin keeps a job from starting.
PLUGINS = ("env", "svc", "ssh", "pytorch", "tensorflow", "mpi", "ray", "hcclrank")
#: What others need beside them, as Volcano's webhook adds it.
_NEEDS = {"pytorch": ("svc",), "tensorflow": ("svc",), "mpi": ("svc", "ssh"), "ray": ("svc",)}
#: What may be given to them: name -> whether it stands for true by itself.
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
    """The plugins of a job with their arguments, those that others need among them.

    Raises: FieldError for one that is not there, or arguments that are no texts.
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
    """By which names the pods of a task reach each other."""
    return [f"{pod_name(job, task, i)}.{job.name}" for i in range(count)]


def argument(arguments: tuple[str, ...], name: str, default: str) -> str:
    """The last ``--name=value``, or ``--name value``."""
    return _given(arguments, {name: False}).get(name, default)


def port_of(plugins: Plugins, plugin: str, name: str, default: str) -> int:
    """The port that an argument says. Raises: FieldError for what is none."""
    written = argument(plugins[plugin], name, default)
    if not (written.isascii() and written.isdecimal() and len(written) < 6 and 0 < int(written) < 65536):
        raise FieldError(f"spec.plugins.{plugin}", f"--{name}={written[:20]}", "a port from 1 to 65535")
    return int(written)


def switched_on(plugins: Plugins, plugin: str, name: str) -> bool:
    """Whether an argument that stands for true by itself is given to a plugin, and not as false."""
    return _given(plugins.get(plugin, ()), _ARGUMENTS[plugin]).get(name, "").lower() in _TRUE


def unknown_arguments(plugins: Plugins) -> list[str]:
    """Arguments that nobody reads, with the plugin and what it knows."""
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
    """Values by name, the last of each, of ``--name=value``, ``--name value`` and, for switches, ``--name``.

    Source: Go's flags, with which Volcano reads them. What is no flag is given under its own text.
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
