"""Clusters under which each point of Volcano's language is asked, and hooks in each form that a point takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pumice.columns.rows import TaskRows
from pumice.columns.runs import TaskRun
from pumice.columns.views import Job, SubJob, Task, TaskClass
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.filter_result import FilterResult, Unfit
from pumice.framework.plugin.plugin import plugin
from pumice.model.events import Object
from pumice.model.pod import QUEUE_GATE
from pumice.model.queue import PriorityClass
from pumice.model.workloads.podgroup import SubGroupPolicy
from pumice.testing.build import hypernode, node, pod, podgroup, pods, queue, resource
from pumice.volcano.eviction.context import EvictionContext
from pumice.volcano.points import POINTS

#: Points that no action of the language asks, as docs/points.md says; KAI's consolidation asks the last.
NOT_ASKED = {"cluster_order", "target_job", "reserved_nodes", "consolidate_victims"}
#: The priority by which a hook about classes knows the pods of the job ``bad``.
MARK = 7


class World(NamedTuple):
    """``places``: names of the jobs that the cycle places."""

    objects: tuple[Object, ...]
    actions: str
    plugins: str = "{name: gang}"
    places: frozenset[str] = frozenset()
    arguments: str = ""

    def conf(self, plugin: str) -> str:
        """Return the policy, with a plugin before the others."""
        return f"actions: {self.actions}\ntiers: [{{plugins: [{{name: {plugin}}}, {self.plugins}]}}]\n{self.arguments}"


def _gangs(*names: str, size: int = 2, **more: Any) -> list[Object]:
    """Gangs that wait, each older than the next."""
    found: list[Object] = []
    for age, name in enumerate(names):
        found.append(podgroup(name, size, phase="Inqueue", creation=float(age), **more))
        found += pods(name, size, priority=MARK if name == "bad" else None)
    return found


def _free() -> tuple[Object, ...]:
    """Three gangs wait, of which ``bad`` is the second, and one in another queue; there is room for all."""
    others = [podgroup("there", 1, "other", phase="Inqueue", creation=9.0), *pods("there", 1)]
    return (
        node("n1", 8),
        node("n2", 8),
        queue(),
        queue("other", creation=1.0),
        *_gangs("early", "bad", "late"),
        *others,
    )


def _releasing() -> tuple[Object, ...]:
    """As where nodes are free, with a pod that ends."""
    return (*_free(), podgroup("ends", 1, phase="Running"), pod("ends-0", "ends", on="n1", deletion=1.0))


PARTS = (SubGroupPolicy("part", sub_group_size=1, match_label_keys=("part",)),)


def _full(**more: Any) -> tuple[Object, ...]:
    """A node is full of what runs in three queues, and a more important job waits in one of them."""
    classes = PriorityClass("high", 100), PriorityClass("low", 1)
    running: list[Object] = []
    for name, of in (("own", "default"), ("others", "other"), ("third", "more")):
        running.append(podgroup(name, 1, of, phase="Running", priority_class="low"))
        running += [pod(f"{name}-{i}", name, on="n1", priority=1) for i in range(2)]
    labels = {"part": "left"}
    waits = podgroup("bad", 1, phase="Inqueue", priority_class="high", **more)
    queues = queue(weight=4), queue("other", creation=1.0), queue("more", creation=2.0)
    return (*classes, node("n1", 6), *queues, *running, waits, pod("bad-0", "bad", priority=100, labels=labels))


def _parts() -> tuple[Object, ...]:
    """Gangs with two parts each, in a tree of domains."""
    found: list[Object] = [node("n1", 8), node("n2", 8), hypernode("s1", 1, ["n1"]), hypernode("s2", 1, ["n2"])]
    for age, name in enumerate(("early", "bad", "late")):
        found.append(podgroup(name, 2, phase="Inqueue", creation=float(age), tier=1, sub_groups=PARTS))
        mark = MARK if name == "bad" else None
        found += [
            pod(f"{name}-{i}", name, labels={"part": part}, priority=mark) for i, part in enumerate(("left", "right"))
        ]
    return (queue(), *found)


def _before_admission() -> tuple[Object, ...]:
    """Three jobs wait for admission."""
    found: list[Object] = [node("n1", 8), queue()]
    for age, name in enumerate(("early", "bad", "late")):
        found += [podgroup(name, 1, creation=float(age), min_resources=resource(1)), *pods(name, 1)]
    return tuple(found)


def _gated() -> tuple[Object, ...]:
    """Three jobs whose pods wait for their queue at a gate."""
    found: list[Object] = [node("n1", 8), queue()]
    for age, name in enumerate(("early", "bad", "late")):
        found += [podgroup(name, 1, phase="Inqueue", creation=float(age))]
        found += pods(name, 1, annotations={QUEUE_GATE: "true"}, gates=(QUEUE_GATE,))
    return tuple(found)


_ALL = frozenset({"early", "bad", "late"})
WORLDS: dict[str, World] = {
    "free": World(_free(), "allocate", places=_ALL),
    "preempt": World(_full(), "preempt", "{name: priority}, {name: gang}"),
    "simulated": World(
        _full(),
        "preempt",
        "{name: priority}, {name: gang}",
        arguments="configurations: [{name: preempt, arguments: {enableTopologyAwarePreemption: true}}]\n",
    ),
    "reclaim": World(_full(), "reclaim", "{name: priority}, {name: gang}, {name: proportion}"),
    "releasing": World(_releasing(), "allocate", places=_ALL),
    "gangs of parts": World(_full(sub_groups=PARTS), "gangpreempt, gangreclaim", "{name: priority}, {name: gang}"),
    "gangs": World(_full(), "gangpreempt, gangreclaim", "{name: priority}, {name: gang}"),
    "parts": World(_parts(), "allocate", "{name: gang}, {name: network-topology-aware}", places=_ALL),
    "admission": World(_before_admission(), "enqueue"),
    "gates": World(_gated(), "allocate", places=frozenset()),
    "shuffle": World(_full(), "shuffle"),
}


class Form(NamedTuple):
    """A form of a hook at a point: the names of what it takes. ``world``: where it is asked."""

    point: Any
    takes: tuple[str, ...]
    world: str

    @property
    def name(self) -> str:
        return f"{self.point.name} ({', '.join(self.takes)})"


#: Where points are asked that are not asked where three gangs wait on free nodes.
_WHERE = {
    **dict.fromkeys(("preemptable", "job_starving", "on_deallocate", "job_pipelined"), "preempt"),
    **dict.fromkeys(
        ("simulate_add_task", "simulate_remove_task", "simulate_predicate", "simulate_allocatable"), "simulated"
    ),
    **dict.fromkeys(("reclaimable", "preemptive", "victim_queue_order"), "reclaim"),
    "unified_evictable": "gangs",
    "sub_job_pipelined": "gangs of parts",
    "waits": "releasing",
    **dict.fromkeys(
        (
            *("sub_job_order", "sub_job_ready"),
            *("hyper_node_order", "hyper_node_gradient_for_job", "hyper_node_gradient_for_sub_job"),
        ),
        "parts",
    ),
    **dict.fromkeys(("job_enqueueable", "job_enqueued"), "admission"),
    "gate_taken_off": "gates",
    "victim_tasks": "shuffle",
}
FORMS = [
    Form(point, takes, _WHERE.get(point.name, "free"))
    for point in POINTS.values()
    if point.name not in NOT_ASKED
    for takes in point.forms
]


def jobs_of(argument: Any) -> set[str]:
    """Return the names of the jobs that a hook is asked about by an argument; of a class, ``bad`` by its priority."""
    match argument:
        case Task() | SubJob():
            return {argument.job.name}
        case Job():
            return {argument.name}
        case EvictionContext():
            return {argument.job.name}
        case TaskClass():
            return {"bad"} if argument.spec.priority == MARK else {"another"}
        case TaskRows() | TaskRun():
            rows = argument.rows if isinstance(argument, TaskRows) else argument.tasks.rows
            return {Task(argument.tables, int(row)).job.name for row in rows}
    return set()


#: What a plugin has beside a hook that is not asked without it.
_BESIDE = {
    "node_map": ("node_reduce", ("Task", "NodeRows", "I64")),
    "node_reduce": ("node_map", ("Task", "Node")),
    "waits": ("predicate", ("Task", "NodeRows")),
}


def plugin_at(
    form: Form, answer: Callable[..., Any], reads: tuple[str, ...] | None = None, *, opens: bool = False
) -> Any:
    """Return a plugin ``odd`` with a hook in a form, which answers by a function of what it is given. ``opens``: it
    adds its hooks while the session opens, as in Volcano's life cycle."""
    hooks = {"hook": (form, _written(form.takes, answer, "hook"))}
    if (other := _BESIDE.get(form.point.name)) is not None:
        beside = Form(POINTS[other[0]], other[1], form.world)
        hooks["beside"] = (beside, _written(beside.takes, lambda *args: neutral(beside, *args), "beside"))
    members: dict[str, Any] = {"__init__": lambda self, ssn: None}
    for name, (of, hook) in hooks.items():
        members[name] = hook if opens else of.point(hook) if reads is None else of.point(reads=reads)(hook)
    if opens:

        def on_session_open(self: Any, ssn: Session) -> None:
            for name, (of, _) in hooks.items():
                ssn.add(of.point, getattr(self, name), reads)

        members["on_session_open"] = on_session_open
    return plugin("odd")(type("Odd", (), members))


def _written(takes: tuple[str, ...], answer: Callable[..., Any], name: str) -> Any:
    """Return a method with these parameters. Its lines are in this file."""
    names = [f"a{i}" for i in range(len(takes))]
    source = f"def {name}(self{''.join(f', {each}' for each in names)}):\n    return answer({', '.join(names)})"
    space: dict[str, Any] = {"answer": answer}
    exec(compile(source, __file__, "exec"), space)
    made = space[name]
    made.__qualname__, made.__annotations__ = f"Odd.{name}", dict(zip(names, takes, strict=True))
    return made


def neutral(form: Form, *args: Any) -> Any:
    """Return an answer that changes nothing."""
    match form.point.name:
        case "job_order" | "task_order" | "queue_order" | "sub_job_order" | "victim_queue_order":
            return np.zeros(len(args[0])) if form.takes[0].endswith("Rows") else 0
        case "allocatable":
            return len(args[1]) if form.takes[1] == "TaskRows" else True
        case "job_ready" | "sub_job_ready" | "job_starving" | "preemptive" | "simulate_allocatable":
            return True
        case "overused":
            return False
        case "job_pipelined" | "sub_job_pipelined" | "job_enqueueable":
            return 0
        case "node_map":
            return 1.0
        case "node_order":
            return 1.0 if form.takes[1] == "Node" else np.ones(len(args[1]))
        case "node_reduce":
            return np.asarray(args[2], dtype=float)
        case "predicate" if form.world == "releasing":
            return FilterResult.of(np.ones(len(args[1]), dtype=bool), Unfit("none"))
        case "hyper_node_gradient_for_job" | "hyper_node_gradient_for_sub_job":
            return [[args[1]]]
        case "hyper_node_order":
            return np.zeros(len(args[1]))
        case "victim_tasks":
            return np.zeros(len(args[0]), dtype=bool)
        case "preemptable" | "reclaimable" | "unified_evictable":
            return np.ones(len(args[1]), dtype=bool)
    return None
