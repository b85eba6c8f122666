"""Cases: a small cluster, what one cycle should do, and the sentence that says why, in about 20 lines of YAML.

- case: a gang that does not fit as a whole leaves its room to others
  plugins: [gang, predicates]
  nodes: {a: {cpu: 4}}
  gangs:
    big: {min: 3, pods: 3, cpu: 2}
    small: {min: 1, pods: 1, cpu: 2, creation: 1}
  bound: {small-0: a}
  waits: {big-2: "0/1 nodes are unavailable: 1 Insufficient cpu."}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from msgspec import Struct
from msgspec.structs import replace

from pumice.columns.rows import Candidates
from pumice.columns.views import Task
from pumice.framework.plugin.policy_file import Policy, read_policy
from pumice.framework.plugin.registry import Registry
from pumice.model.decisions import Writes
from pumice.model.devices.gpu import GPU_GROUP_LABEL, GpuShare
from pumice.model.devices.numa import SINGLE, Cpu, NumaAsk, Numatopology
from pumice.model.events import Object
from pumice.model.node import Node, Taint
from pumice.model.pod import PodCondition, Toleration
from pumice.model.queue import NodeGroupAffinity, PriorityClass, Queue, QueueSharing, Quota
from pumice.model.usage import NodeUsage
from pumice.model.workloads.gang import Gang
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.policy.languages import builtin_registry
from pumice.state.store import Store
from pumice.testing.build import (
    Ran,
    budget,
    cluster,
    hypernode,
    node,
    pod,
    podgroup,
    queue,
    quota,
    resource,
    run,
    session,
)
from pumice.testing.devices import shared_gpus, vgpu

Fields = Mapping[str, Any]
_FREE = Quota(None, None, 1.0)
_NO_BOUND = QueueSharing(_FREE, _FREE, _FREE)


class Case(Struct, frozen=True):
    """A cluster, a policy and what should come of them; ``case`` is the sentence.

    The cluster, by name: ``nodes``, ``queues``, ``gangs``, ``hypernodes``, ``budgets`` and ``quotas`` with the fields
    of ``pumice.testing.build``; ``priorities``: values of priority classes; ``usage``, by node: fields of NodeUsage;
    ``numa``, by node: its ``sockets``, the ``cpus`` of each, and which are ``free``. The policy: ``plugins`` (a name,
    or a name with its arguments, including switches) and ``actions`` of a ``dialect``, in which queues and gangs are
    written; under kai no queue has a bound. ``now``: seconds since the epoch. ``left``: notes that the last cycle left.

    Of a gang, ``min``, ``queue``, ``priority``, ``phase`` (Inqueue by default), ``tier``, ``soft``, ``wants`` (its
    minResources), ``creation`` and ``notes`` belong to the group. ``pods`` is a number, or names with the fields of
    each. All other fields belong to every pod: ``node`` on which it runs, ``tolerates`` (keys of taints), when it was
    ``placed``, ``guaranteed`` (its NUMA policy, with CPUs of its own), ``vgpu`` (MiB of one of the node's ``vgpus``),
    ``part`` of a GPU as in KAI, and which ``card`` it has, and what it asks for.

    The result: ``bound`` (pod -> node; no other pod is bound), ``evicted`` (pods in order; no other is evicted),
    ``promised`` (pod -> node on which it waits for others to leave), ``waits`` (pod -> its message), ``phases``
    (gang -> phase that is written), ``first`` (pods in the order of their decisions), and ``victims``, which of some
    pods the plugins let a pod replace: {at: point, for: pod, among: [pods], are: [pods]}.
    """

    case: str
    plugins: tuple[str | Fields, ...]
    nodes: Mapping[str, Fields]
    gangs: Mapping[str, Fields]
    dialect: str = "volcano"
    actions: str = "allocate"
    now: float = 0.0
    queues: Mapping[str, Fields] = {}
    hypernodes: Mapping[str, Fields] = {}
    budgets: Mapping[str, Fields] = {}
    quotas: Mapping[str, Fields] = {}
    usage: Mapping[str, Fields] = {}
    numa: Mapping[str, Fields] = {}
    priorities: Mapping[str, int] = {}
    left: Mapping[str, float] = {}
    bound: Mapping[str, str] = {}
    waits: Mapping[str, str] = {}
    phases: Mapping[str, str] = {}
    first: tuple[str, ...] = ()
    evicted: tuple[str, ...] = ()
    promised: Mapping[str, str] = {}
    victims: Fields = {}


def read_cases(path: Path) -> list[Case]:
    """Return the cases of a file, which is a list. Raises: ValueError for a key that no case has."""
    found = []
    known = set(Case.__struct_fields__)
    for document in yaml.safe_load(path.read_text(encoding="utf-8")):
        unknown = document.keys() - known
        if unknown:
            raise ValueError(
                f"{path}, case {document.get('case')!r}: found {sorted(unknown)}, wanted of {sorted(known)}"
            )
        document = {key: tuple(value) if isinstance(value, list) else value for key, value in document.items()}
        found.append(Case(**document))
    return found


def check_case(case: Case, plugins: Iterable[Callable[..., Any]] = ()) -> Ran:
    """Run the cycle, compare, and return what was run. ``plugins`` are known in addition to the built-in ones.

    Raises: AssertionError with what was found; ValueError or TypeError for a cluster that cannot be made.
    """
    state, under = cluster_of(case), policy_of(case, plugins)
    ran = run(state, under, now=case.now)
    messages = {notice.pod.partition("/")[2]: notice.message for notice in ran.outcome.notices()}
    bound = {key.partition("/")[2]: where for key, where in ran.binds.items()}
    phases = {key.partition("/")[2]: phase for key, phase in ran.phases.items()}
    _compare(case, "bound", dict(case.bound), bound)
    _compare(case, "evicted", case.evicted, tuple(key.partition("/")[2] for key in ran.evicted))
    promised = {key.partition("/")[2]: where for key, where in ran.pipelined.items()}
    _compare(case, "promised", dict(case.promised), {name: promised.get(name) for name in case.promised})
    _compare(case, "waits", dict(case.waits), {name: messages.get(name) for name in case.waits})
    _compare(case, "phases", dict(case.phases), {name: phases.get(name) for name in case.phases})
    if case.first:
        _compare(case, "first", case.first, tuple(bound)[: len(case.first)])
    if case.victims:
        _compare(case, "victims", case.victims["are"], victims_in(case, state, under))
    return ran


def _compare(case: Case, what: str, wanted: object, found: object) -> None:
    """Raise AssertionError unless the two are equal."""
    assert found == wanted, f"{case.case}: {what}: found {found}, wanted {wanted}"


def policy_of(case: Case, plugins: Iterable[Callable[..., Any]] = ()) -> Policy:
    """Return the policy, with all plugins in one tier. Raises: PolicyError."""
    registry = builtin_registry()
    entries = [_entry(each, registry, case.dialect) for each in case.plugins]
    conf = {"dialect": case.dialect, "actions": case.actions, "tiers": [{"plugins": entries}]}
    return read_policy(conf, registry.with_plugins(case.dialect, plugins))


def _entry(plugin: str | Fields, registry: Registry, dialect: str) -> Fields:
    """Return the entry of a plugin in a policy file."""
    if isinstance(plugin, str):
        return {"name": plugin}
    ((name, given),) = plugin.items()
    built_in = registry.plugin(dialect, name)
    own = built_in.arguments if built_in is not None else {}
    # A key that begins with ``enable`` is a switch, except if the plugin has an argument with that name.
    switches = {key: value for key, value in given.items() if key.startswith("enable") and key not in own}
    return {"name": name, **switches, "arguments": {key: value for key, value in given.items() if key not in switches}}


def victims_in(case: Case, state: Store, under: Policy) -> list[str]:
    """Return the pods that the policy's plugins let another one replace."""
    asked, ssn = case.victims, session(state, under, now=case.now)
    point: Any = under.dialect.points[asked["at"]]
    tasks = ssn.tables.tasks
    row_of = {tasks.pods[row].name: row for row in tasks.alive.nonzero()[0].tolist()}
    among = Candidates(ssn.tables, np.array([row_of[name] for name in asked["among"]]))
    mask = ssn.ask(point, Task(ssn.tables, row_of[asked["for"]]), among)
    return [name for name, may in zip(asked["among"], mask, strict=True) if may]


# -- the cluster -------------------------------------------------------------------------------------------------------


def cluster_of(case: Case) -> Store:
    """Return the store of the case's cluster. Raises: ValueError or TypeError for what cannot be made."""
    found: list[Object] = [PriorityClass(name, value) for name, value in case.priorities.items()]
    found += [_node(name, dict(_with_taints(given))) for name, given in case.nodes.items()]
    found += [queue(name, **_with_groups(_with_amounts(given))) for name, given in case.queues.items()]
    found += [hypernode(name, **given) for name, given in case.hypernodes.items()]
    found += [budget(name, **given) for name, given in case.budgets.items()]
    found += [quota(name, **_with_amounts(given)) for name, given in case.quotas.items()]
    found += [NodeUsage(name, **given) for name, given in case.usage.items()]
    found += [_numa(name, dict(given)) for name, given in case.numa.items()]
    for name, given in case.gangs.items():
        found += _gang(name, dict(given))
    state = cluster(found if case.dialect != "kai" else _as_kai(found))
    state.remember(Writes(notes=case.left))
    return state


def _as_kai(objects: Iterable[Object]) -> Iterator[Object]:
    """Yield the objects as KAI writes them: groups are gangs of KAI, and no queue has a bound."""
    objects = list(objects)
    if not any(isinstance(obj, Queue) for obj in objects):
        yield replace(queue(), sharing=_NO_BOUND)
    for obj in objects:
        if isinstance(obj, Queue):
            yield replace(obj, sharing=_NO_BOUND)
        else:
            yield replace(obj, gang=Gang()) if isinstance(obj, PodGroup) else obj


def _node(name: str, given: dict[str, Any]) -> Node:
    """Return a node. ``vgpus``: number of cards of 16,384 MiB that pods share there."""
    cards = given.pop("vgpus", 0)
    return shared_gpus(name, cards, **given) if cards else node(name, **given)


def _with_taints(given: Fields) -> Fields:
    """Return the fields with Taints in place of ``key=value:Effect``."""
    if "taints" not in given:
        return given
    taints = []
    for text in given["taints"]:
        what, _, effect = text.partition(":")
        key, _, value = what.partition("=")
        taints.append(Taint(key, value, effect))
    return {**given, "taints": taints}


_AMOUNTS = ("capability", "guarantee", "deserved", "allocated", "wants", "hard", "used")


def _with_amounts(given: Fields) -> dict[str, Any]:
    """Return the fields with Resources in place of amounts."""
    return {key: resource(**value) if key in _AMOUNTS else value for key, value in given.items()}


def _with_groups(given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a queue with values made from ``affinity: {required: [group]}`` and ``group_limits: {group:
    {cpu: 4}}``."""
    if "affinity" in given:
        given["affinity"] = NodeGroupAffinity(**{key: tuple(groups) for key, groups in given["affinity"].items()})
    limits = given.get("group_limits", {})
    amounts = {group: resource(**each) for group, each in limits.items()}
    named = ((group, tuple((name, amounts[group].get(name)) for name in each)) for group, each in limits.items())
    return {**given, "group_limits": tuple(named)}


def _numa(name: str, given: dict[str, Any]) -> Numatopology:
    """Return a NUMA topology of ``sockets`` with ``cpus`` CPUs, each one NUMA node; ``free`` is all by default."""
    count = given.get("cpus", 4)
    cpus = tuple(Cpu(i, i // count, i // count, i) for i in range(given.get("sockets", 2) * count))
    free = given.get("free", [cpu.id for cpu in cpus])
    return Numatopology(name, "static", given.get("policy", SINGLE), cpus, tuple(free))


_OF_GROUP = {
    "min": "minimum",
    "queue": "queue",
    "priority": "priority_class",
    "tier": "tier",
    "soft": "soft",
    "wants": "min_resources",
    "creation": "creation",
    "notes": "annotations",
}


def _gang(name: str, given: dict[str, Any]) -> list[Object]:
    """Return the group and its pods."""
    members, phase = given.pop("pods", 1), given.pop("phase", "Inqueue")
    of_group = {_OF_GROUP[key]: value for key, value in _with_amounts(given).items() if key in _OF_GROUP}
    of_pods = {key: value for key, value in given.items() if key not in _OF_GROUP}
    group = podgroup(name, phase=phase, **of_group)
    named = {f"{name}-{i}": {} for i in range(members)} if isinstance(members, int) else members
    return [group, *(pod(each, name, **_of_pod({**of_pods, **(special or {})})) for each, special in named.items())]


def _of_pod(given: dict[str, Any]) -> dict[str, Any]:
    """Return fields of Pod and PodSpec for a pod's fields in a case."""
    if "placed" in given:
        given["conditions"] = (PodCondition("PodScheduled", "True", last_transition=float(given.pop("placed"))),)
    if "tolerates" in given:
        given["tolerations"] = tuple(Toleration(key, "Exists") for key in given.pop("tolerates"))
    if "guaranteed" in given:
        ask = NumaAsk(given.pop("guaranteed"), (("main", 1000.0 * given.get("cpu", 1)),))
        given |= {"qos": "Guaranteed", "numa": ask}
    if "vgpu" in given:
        given["devices"] = vgpu(given.pop("vgpu"))
    if "part" in given:
        given["gpu_share"] = GpuShare(given.pop("part"))
    if "card" in given:
        given["labels"] = {GPU_GROUP_LABEL: given.pop("card")}
    on = given.pop("node", "")
    return {**given, "on": on}
