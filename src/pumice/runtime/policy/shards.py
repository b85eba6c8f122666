"""Turn a SchedulingShard of KAI into a policy, as KAI's operator does with its defaults and the shard.

Source: KAI operator (defaults by placement, merge by name, order by priority).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pumice.framework.plugin.errors import PolicyError, did_you_mean
from pumice.model.plain_words import kind_of

_BINPACK, _SPREAD = "binpack", "spread"
#: In order. Each has a priority of 100 less than the one before, the last one of 100.
_PLUGINS = (
    *("predicates", "proportion", "priority", "nodeavailability", "resourcetype", "podaffinity", "elastic"),
    *("kubeflow", "ray", "subgrouporder", "taskorder", "nominatednode", "dynamicresources", "minruntime"),
    *("topology", "snapshot", "gpupack", "nodeplacement", "gpusharingorder"),
)
#: Plugins that came later, at the priorities that KAI's operator gives them: between those of the list.
_BETWEEN = {"sg-nodelocalgreedy": 360, "sg-multinodegang": 350}
_ACTIONS = ("allocate", "consolidation", "reclaim", "preempt", "stalegangeviction")
_RUNTIMES = {"preemptMinRuntime": "defaultPreemptMinRuntime", "reclaimMinRuntime": "defaultReclaimMinRuntime"}
#: Sections that a policy file has in the same form.
_AS_IN_SHARD = ("queueDepthPerAction", "usageDBConfig", "scenarioSearchBudgets")
#: How much memory KAI's process may use, as the operator hands it to Go.
_OF_GO = ("goMemLimit", "goMemLimitRatio")
_KEYS = (
    *("args", "placementStrategy", "partitionLabelValue", "minRuntime", "kValue", "plugins", "actions"),
    *_AS_IN_SHARD,
    *_OF_GO,
)
#: Types of an entry's keys, with their names.
_KINDS = {
    "enabled": (bool, "true or false"),
    "priority": (int, "a whole number"),
    "arguments": (Mapping, "a mapping"),
}


@dataclass(slots=True)
class _Entry:
    """A plugin or an action, as merged so far."""

    priority: int = 0
    enabled: bool = True
    arguments: Mapping[str, Any] = field(default_factory=dict)


def conf_of_shard(document: Mapping[str, Any], where: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the policy file with the same meaning, and a sentence for each part that a policy file cannot express.

    Raises: PolicyError for a document that is not a shard. Problems of the policy are found when it is read.
    """
    spec = document.get("spec") or {}
    problems = list(_problems(spec))
    if problems:
        raise PolicyError(f"{where}: {problem}" for problem in problems)
    ways = {kind: _said(spec, "placementStrategy").get(kind) or _BINPACK for kind in ("gpu", "cpu")}
    plugins, actions = _default_plugins(spec, ways), _by_priority(_ACTIONS)
    if _SPREAD in ways.values():
        del actions["consolidation"]
    _merge(plugins, _said(spec, "plugins"))
    _merge(actions, _said(spec, "actions"))
    entries = [{"name": name, "arguments": dict(plugins[name].arguments)} for name in _in_order(plugins)]
    conf = {"dialect": "kai", "actions": ", ".join(_in_order(actions)), "tiers": [{"plugins": entries}]}
    conf |= {key: spec[key] for key in _AS_IN_SHARD if spec.get(key)}
    return conf, tuple(f"{where}: {each}" for each in _left_out(spec))


def _default_plugins(spec: Mapping[str, Any], ways: Mapping[str, str]) -> dict[str, _Entry]:
    found = _by_priority(_PLUGINS) | {name: _Entry(priority) for name, priority in _BETWEEN.items()}
    if ways["gpu"] != _BINPACK:
        del found["gpusharingorder"]
        found["gpuspread"] = found.pop("gpupack")
    found["nodeplacement"].arguments = ways
    if spec.get("kValue") is not None:
        found["proportion"].arguments = {"kValue": spec["kValue"]}
    said = _said(spec, "minRuntime")
    found["minruntime"].arguments = {to: said[key] for key, to in _RUNTIMES.items() if said.get(key) is not None}
    return found


def _by_priority(names: Iterable[str]) -> dict[str, _Entry]:
    listed = list(names)
    return {name: _Entry(100 * (len(listed) - i)) for i, name in enumerate(listed)}


def _merge(known: dict[str, _Entry], said: Mapping[str, Mapping[str, Any]]) -> None:
    for name, what in said.items():
        entry = known.setdefault(name, _Entry())
        for key in ("enabled", "priority", "arguments"):
            if (what or {}).get(key) is not None:
                setattr(entry, key, what[key])


def _in_order(entries: Mapping[str, _Entry]) -> list[str]:
    """Return enabled entries, the highest priority first, then by name."""
    return sorted((name for name, each in entries.items() if each.enabled), key=lambda n: (-entries[n].priority, n))


def _said(spec: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return spec.get(key) or {}


# -- what is wrong


def _problems(spec: Any) -> Iterator[str]:
    if not isinstance(spec, Mapping):
        yield f"spec: found {kind_of(spec)}, wanted a mapping"
        return
    for key in spec.keys() - set(_KEYS):
        yield f'spec: unknown key "{str(key)[:80]}"{did_you_mean(str(key)[:80], _KEYS)}'
    for key in ("args", "placementStrategy", "minRuntime", "plugins", "actions"):
        if not isinstance(_said(spec, key), Mapping):
            yield f"spec.{key}: found {kind_of(spec[key])}, wanted a mapping"
            return
    for kind, way in _said(spec, "placementStrategy").items():
        if kind not in ("gpu", "cpu") or way not in (_BINPACK, _SPREAD):
            yield f"spec.placementStrategy: found {str(kind)[:40]}: {str(way)[:40]}, wanted gpu, cpu: binpack or spread"
    for key, wanted in (("plugins", ("enabled", "priority", "arguments")), ("actions", ("enabled", "priority"))):
        for name, what in _said(spec, key).items():
            yield from _entry_problems(f"spec.{key}.{str(name)[:80]}", what, wanted)


def _entry_problems(path: str, what: Any, wanted: tuple[str, ...]) -> Iterator[str]:
    if not isinstance(what or {}, Mapping):
        yield f"{path}: found {kind_of(what)}, wanted a mapping"
        return
    for key, value in (what or {}).items():
        if key not in wanted:
            yield f'{path}: unknown key "{str(key)[:80]}", wanted of {", ".join(wanted)}'
        elif value is not None and not _fits(value, _KINDS[key][0]):
            yield f"{path}.{key}: found {value!r:.80}, wanted {_KINDS[key][1]}"


def _fits(value: Any, kind: type) -> bool:
    """Return True if a value has the type. In Python, bool is a subclass of int."""
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _left_out(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the operator turns into flags."""
    if spec.get("partitionLabelValue"):
        yield f"spec.partitionLabelValue: use --partition-label-value={str(spec['partitionLabelValue'])[:80]}"
    for name in _said(spec, "args"):
        yield f"spec.args: {str(name)[:80]} is a flag of KAI's scheduler (ignored)"
    for key in _OF_GO:
        if spec.get(key) is not None:
            yield f"spec.{key}: is for a process in Go (ignored)"
