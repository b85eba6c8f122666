"""What a job asks for by the names of plugins, and the variables that they give each container.

Source: Volcano's job plugins (spec 06 §10.6), with the arguments of their own documentation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from pumice.model.job import VolcanoJob
from pumice.model.manifest.fields import FieldError, Obj, table, texts
from pumice.runtime.controllers.writes import part

#: Another plugin keeps a job from starting.
PLUGINS = ("env", "svc", "pytorch", "tensorflow")
_BY_HOST_NAME = ("pytorch", "tensorflow")  # they need svc, as Volcano's webhook adds it
#: What may be given to them: name -> whether it stands for true by itself.
_ARGUMENTS: Mapping[str, Mapping[str, bool]] = {
    "env": {},
    "svc": {"publish-not-ready-addresses": True, "disable-network-policy": True},
    "pytorch": dict.fromkeys(("master", "worker", "port"), False),
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
    if any(name in found for name in _BY_HOST_NAME):
        found.setdefault("svc", ())
    return found


def pod_name(job: VolcanoJob, task: str, index: int) -> str:
    return f"{job.name}-{task}-{index}"


def hosts(job: VolcanoJob, task: str, count: int) -> list[str]:
    """By which names the pods of a task reach each other."""
    return [f"{pod_name(job, task, i)}.{job.name}" for i in range(count)]


def variables(job: VolcanoJob, plugins: Plugins, task: str, index: int) -> dict[str, str]:
    """What is in the environment of one pod, beside what the service of ``svc`` brings."""
    found: dict[str, str] = {}
    if "env" in plugins:
        found |= {"VK_TASK_INDEX": str(index), "VC_TASK_INDEX": str(index)}
    if "pytorch" in plugins:
        found |= _pytorch(job, plugins["pytorch"], task, index)
    if "tensorflow" in plugins:
        found |= _tensorflow(job, plugins["tensorflow"], task, index)
    return found


def _pytorch(job: VolcanoJob, arguments: tuple[str, ...], task: str, index: int) -> dict[str, str]:
    """Ranks count the masters first. Pods of other tasks take no part."""
    master, worker = _argument(arguments, "master", "master"), _argument(arguments, "worker", "worker")
    sizes = {each.name: each.replicas for each in job.tasks if each.name in (master, worker)}
    if task not in sizes or master not in sizes:
        return {}
    return {
        "MASTER_ADDR": hosts(job, master, 1)[0],
        "MASTER_PORT": _argument(arguments, "port", "23456"),
        "WORLD_SIZE": str(sum(sizes.values())),
        "RANK": str(index if task == master else sizes[master] + index),
    }


def _tensorflow(job: VolcanoJob, arguments: tuple[str, ...], task: str, index: int) -> dict[str, str]:
    """Pods of tasks that have no role take no part."""
    roles = {_argument(arguments, role, role): role for role in ("ps", "worker", "chief", "evaluator")}
    if task not in roles:
        return {}
    port = _argument(arguments, "port", "2222")
    cluster = {
        roles[each.name]: [f"{host}:{port}" for host in hosts(job, each.name, each.replicas)]
        for each in job.tasks
        if each.name in roles
    }
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": roles[task], "index": index}})}


def _argument(arguments: tuple[str, ...], name: str, default: str) -> str:
    """The last ``--name=value``, or ``--name value``."""
    return _given(arguments, {name: False}).get(name, default)


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
