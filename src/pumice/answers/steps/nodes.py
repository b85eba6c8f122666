"""Ways to get room: nodes that are added or opened, and running jobs that leave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from msgspec.structs import replace

from pumice.answers.amounts import amount_text, quantity_text
from pumice.answers.codes import Code
from pumice.answers.lifts import Lift, with_more
from pumice.answers.steps.step import Step, main_resource, nothing, sum_of, waiting_specs, whole
from pumice.answers.world import Draft, World, new_name
from pumice.model.devices.gpu import GPU_RESOURCE
from pumice.model.node import Node
from pumice.model.pod import LabelSelector, Pod, PodSpec, Requirement
from pumice.model.resources import CPU, MEMORY, Resource
from pumice.model.selectors import matches
from pumice.placing.small_gangs import with_second_tries
from pumice.reasons.selection import text_of
from pumice.reasons.words import counted, joined

#: Nodes of which each is made larger, and for how many more pods: no node holds many more.
_GROWN_MAX, _GROWN_PODS_MAX = 2, 110
#: Nodes that are added.
_ADDED_MAX = 1024
#: Running jobs that are looked at for one to leave.
_VICTIMS_MAX = 4
_HOUR_S = 3600.0


def add_nodes(world: World, job: str, room: int = 0) -> Iterator[Step]:
    """Add nodes like one that the pods may use: the smallest and the largest kind that has room for one. ``room``: for
    how many of the pods there seems to be room."""
    specs = waiting_specs(world, job)
    if not specs:
        return
    kinds: dict[Resource, Node] = {}
    # Those without taints first: what is added like one that has some is added without them.
    for node in sorted(world.nodes, key=lambda node: bool(node.taints)):
        if not node.unschedulable and not node.unparsable and may_use(specs[0], node):
            kinds.setdefault(node.allocatable, node)
    fitting = [node for room, node in kinds.items() if _fits(specs[0].request, room)]
    fitting.sort(key=lambda node: (node.allocatable.get(GPU_RESOURCE), node.allocatable.milli_cpu, node.name))
    ask = sum_of(spec.request for spec in specs)
    for kind in fitting[:1] + fitting[1:][-1:]:
        yield _nodes_like(world, kind, job, len(specs), room)
    if not fitting:
        made = _large_enough(world, specs[0])
        yield _nodes_like(world, made, job, max(len(specs), int(ask.get("pods"))), room)


def grow_nodes(world: World, job: str, room: int = 0) -> Iterator[Step]:
    """Make nodes larger, those first that lack least for a pod: a new node is in no domain of a topology that names its
    nodes. ``room``: for how many of the pods there seems to be room."""
    specs = waiting_specs(world, job)
    nodes = [node for node in world.nodes if specs and not node.unparsable and may_use(specs[0], node)]
    growths = [_Growth(node, specs[0].request, world.held_on.get(node.name, Resource())) for node in nodes]
    growths.sort(key=lambda each: (each.node.unschedulable, len(each.node.taints), each.part(1), each.node.name))
    likely = max(1, _least(world, job) - room)
    yield from (_grow([each], specs, likely) for each in growths[:_GROWN_MAX])
    if len(nodes) > 1:
        yield _grow(growths, specs, -(-likely // len(nodes)))


class _Growth:
    """What a node lacks for more pods with one request than have room on it. ``held``: by the pods that it has."""

    def __init__(self, node: Node, one: Resource, held: Resource) -> None:
        self.node, self._one = node, one
        self._free = {name: node.allocatable.get(name) - held.get(name) for name in _names_of(one)}
        self._fit = max(0.0, min((free // one.get(name) for name, free in self._free.items()), default=0.0))

    def missing(self, count: int) -> dict[str, float]:
        """Return by resource what it lacks for so many more pods."""
        wanted = {name: (self._fit + count) * self._one.get(name) - free for name, free in self._free.items()}
        return {name: amount for name, amount in wanted.items() if amount > 0.0}

    def part(self, count: int) -> float:
        """Return of how many pods' requests that is as much: the largest part over resources."""
        return max((amount / self._one.get(name) for name, amount in self.missing(count).items()), default=0.0)


def _large_enough(world: World, spec: PodSpec) -> Node:
    """Return a node like one that is there, with room and labels for one pod at least."""
    first = world.nodes[0] if world.nodes else Node("node", Resource())
    base = next((each for each in world.nodes if may_use(spec, each)), first)
    room = base.allocatable.set_max(replace(with_more(spec.request, "pods", 109.0), max_task_num=110))
    room = replace(room, max_task_num=max(base.allocatable.max_task_num, 110))
    labels = {**base.labels, **dict(spec.node_selector)}
    return replace(base, allocatable=room, capacity=room, labels=labels, taints=(), unschedulable=False)


def _grow(growths: list[_Growth], specs: list[PodSpec], likely: int) -> Step:
    """Make each of some nodes larger by what the one that lacks most lacks for so many more pods."""
    one, nodes = specs[0].request, [each.node for each in growths]
    main = main_resource(specs)
    where = f"node {nodes[0].name}" if len(nodes) == 1 else f"each of {counted(len(nodes), 'node')}"

    # Found once for a count: all nodes are looked at.
    @cache
    def more(count: int) -> dict[str, float]:
        missing = [each.missing(count) for each in growths]
        return {name: amount for name in _names_of(one) if (amount := max(each.get(name, 0.0) for each in missing))}

    @cache
    def part(count: int) -> float:
        return max(each.part(count) for each in growths)

    def larger(node: Node, amounts: Mapping[str, float]) -> Resource:
        room = node.allocatable
        for name, amount in amounts.items():
            room = with_more(room, name, amount)
        return room

    def apply(draft: Draft, count: int) -> None:
        amounts = more(count) if count else {}
        for node in nodes if count else ():
            found = draft.get(Node, node.name)
            if isinstance(found, Node):
                room = larger(found, amounts)
                draft.put(replace(found, allocatable=room, capacity=room.set_max(found.capacity)))

    def text(count: int) -> str:
        amounts = more(count)
        names = sorted(amounts, key=lambda name: (name != GPU_RESOURCE, name == "pods"))
        return f"{joined([amount_text(name, amounts[name]) for name in names])} more on {where}"

    def changes(count: int) -> tuple[str, ...]:
        return tuple(
            f"--set node/{node.name}.allocatable.{name}={quantity_text(name, larger(node, more(count)).get(name))}"
            for node in nodes
            for name in more(count)
        )

    # Double, for a node is seldom made larger: the same amount on a new one comes first.
    return Step(
        # One more than there are: what is free on it may be for others.
        min(len(specs) + 1, _GROWN_PODS_MAX),
        apply,
        text,
        changes=changes,
        cost=lambda count: (
            0.0,
            2.0 * len(nodes) * part(count) * one.get(main) / 1000.0,
            0.0,
        ),
        edits=lambda count: len(nodes),
        is_last_resort=True,
        likely=min(likely, len(specs) + 1, _GROWN_PODS_MAX),
        means="" if len(nodes) > 1 else "a node made larger",
    )


def _nodes_like(world: World, like: Node, job: str, most: int, room: int) -> Step:
    specs = waiting_specs(world, job)
    main = main_resource(specs)
    size = like.allocatable.get(main) / 1000.0

    def apply(draft: Draft, count: int) -> None:
        stem = new_name(world, like.name) if count else ""
        for number in range(count):
            name = f"{stem}-{number}"
            labels = {**like.labels, "kubernetes.io/hostname": name}
            draft.put(replace(like, name=name, uid=name, labels=labels, unschedulable=False, taints=()))

    known = any(node is like for node in world.nodes)
    named = f"like {like.name}{', without its taints' * bool(like.taints)} " if known else ""
    what = _size_text(like)
    return Step(
        min(most, _ADDED_MAX),
        apply,
        lambda count: f"{count} more node{'s' * (count > 1)} {named}({what})",
        # `pumice whatif` adds nodes with all that the one has.
        changes=(lambda count: (f"--add-nodes {count}x{like.name}",)) if known and not like.taints else nothing,
        cost=lambda count: (0.0, size * count, 0.0),
        likely=min(most, _ADDED_MAX, _missing(world, job, like, room)),
    )


def _missing(world: World, job: str, like: Node, room: int) -> int:
    """Return how many nodes like one hold the pods of a job's minimum that have no room, at least one."""
    least = _least(world, job) - room
    asked = waiting_specs(world, job)[0].request
    each = min((like.allocatable.get(name) // asked.get(name) for name in _names_of(asked)), default=1.0)
    return max(1, -(-least // max(1, int(each))))


def _least(world: World, job: str) -> int:
    """Return how many more pods of a job need a node for its minimum."""
    group = world.groups.get(job)
    holds = sum(1 for pod in world.pods_of.get(job, ()) if pod.node_name)
    return (group.min_member if group is not None else 1) - holds


def _names_of(asked: Resource) -> list[str]:
    return [name for name in (CPU, MEMORY, *(asked.scalars or ())) if asked.get(name)]


def _size_text(node: Node) -> str:
    names = [name for name in (GPU_RESOURCE, CPU, MEMORY) if node.allocatable.get(name) >= 1.0]
    return ", ".join(amount_text(name, node.allocatable.get(name)) for name in names)


def may_use(spec: PodSpec, node: Node) -> bool:
    """Return True if node selector and node affinity of a pod let it use a node."""
    wanted = tuple(Requirement(key, "In", (value,)) for key, value in spec.node_selector)
    if wanted and not matches(LabelSelector(wanted), node.labels):
        return False
    terms = spec.affinity.node_required
    if terms is None:
        return True
    return any(not term.fields and matches(LabelSelector(term.labels), node.labels) for term in terms)


def _fits(asked: Resource, room: Resource) -> bool:
    return all(asked.get(name) <= room.get(name) for name in _names_of(asked))


def search_for_gang(world: World, job: str) -> Iterator[Step]:
    """Let ``allocate`` search for a placement of a gang whose pods differ, where it finds none pod by pod."""
    # Equal pods are placed one by one wherever there is a placement at all.
    if len(set(waiting_specs(world, job))) < 2 or with_second_tries(world.policy) is None:
        return

    def apply(draft: Draft, count: int) -> None:
        searching = with_second_tries(draft.policy)
        if count and searching is not None:
            draft.policy = searching

    yield Step(
        1,
        apply,
        lambda count: "action allocate: secondTries true instead of false, so its pods are packed, the largest first",
        lambda count: ("# in the policy file, arguments of allocate: secondTries: true",),
    )


def remove_jobs(world: World, job: str, names: list[str]) -> list[Step]:
    """Let a running job leave: those that lose least work first."""
    specs = [pod.spec for pod in world.pods_of.get(job, ())]
    main = main_resource(specs)
    wanted = names or [main]
    found = []
    for key, pods in world.pods_of.items():
        running = [pod for pod in pods if pod.node_name and pod.deletion is None]
        held = sum_of([pod.spec.request for pod in running])
        if key != job and running and any(held.get(name) for name in wanted):
            hours = sum(pod.spec.request.get(main) / 1000.0 * _age(pod, world.now) / _HOUR_S for pod in running)
            found.append((hours, held.get(main) / 1000.0, key))
    # Of equal work the larger one, which makes more room.
    ordered = sorted(found, key=lambda each: (each[0], -each[1], each[2]))
    steps = [_remove(world, (key,), hours, held) for hours, held, key in ordered[:_VICTIMS_MAX]]
    if len(ordered) > 1:
        steps.append(_remove_first(world, ordered[:32]))
    return steps


def _age(pod: Pod, now: float) -> float:
    """Return for how many seconds a pod has run, 0 where that is not known."""
    since = pod.start_time or pod.creation
    return max(now - since, 0.0) if since else 0.0


def _remove(world: World, keys: tuple[str, ...], hours: float, held: float) -> Step:
    def apply(draft: Draft, count: int) -> None:
        for key in keys if count else ():
            end_job(draft, key)

    return Step(
        1,
        apply,
        lambda count: f"{world.shown(keys[0])} leaves",
        lambda count: _delete(world, keys[0]),
        lambda count: (f"--remove job/{keys[0]}",),
        # What a job has done is lost, and what it holds must be done again somewhere: a small price even at its start.
        lambda count: (0.0, 0.0, hours + held / 100.0),
        lambda count: keys,
    )


def _remove_first(world: World, ordered: list[tuple[float, float, str]]) -> Step:
    """Let the first so many running jobs leave."""
    keys = [key for _, _, key in ordered]

    def apply(draft: Draft, count: int) -> None:
        for key in keys[:count]:
            end_job(draft, key)

    return Step(
        len(keys),
        apply,
        lambda count: f"{', '.join(map(world.shown, keys[:count]))} leave{'s' * (count == 1)}",
        lambda count: tuple(line for key in keys[:count] for line in _delete(world, key)),
        lambda count: tuple(f"--remove job/{key}" for key in keys[:count]),
        lambda count: (0.0, 0.0, sum(hours + held / 100.0 for hours, held, _ in ordered[:count])),
        lambda count: tuple(keys[:count]),
        edits=lambda count: count,
    )


def end_job(draft: Draft, key: str) -> None:
    """End a job: its pods have ended, and nothing is promised to it."""
    # Not removed, for a store takes a change at once and a removal by being filled again (``Trials.run``). A way is
    # confirmed with the job removed before it is given.
    group = draft.group(key)
    if group is not None:
        draft.put(replace(group, min_resources=None, status=replace(group.status, phase="Completed")))
    for pod in draft.pods(key):
        draft.put(replace(pod, phase="Succeeded"))


def _delete(world: World, key: str) -> tuple[str, ...]:
    """Return the command that ends a job: of its owner where that is known."""
    pods, space = world.pods_of.get(key, []), key.partition("/")[0]
    owners = {pod.owner[:2] for pod in pods if pod.owner is not None}
    if len(owners) == 1 and all(pod.owner is not None for pod in pods):
        kind, name = owners.pop()
        return (f"kubectl delete {kind.lower()} {name} -n {space}",)
    names = [pod.name for pod in pods]
    return (f"kubectl delete pod -n {space} {' '.join(names)}",)


# -- nodes that keep pods off


def untaint(world: World, job: str) -> Iterator[Step]:
    """Take taints and cordons from the first so many nodes that have room."""
    specs = [pod.spec for pod in world.pods_of.get(job, ()) if not pod.node_name]
    closed = [
        node
        for node in world.nodes
        if (node.taints or node.unschedulable) and not node.unparsable and specs and may_use(specs[0], node)
    ]
    closed = [node for node in closed if _fits(specs[0].request, node.allocatable)][:64]
    if not closed:
        return

    def apply(draft: Draft, count: int) -> None:
        for node in closed[:count]:
            draft.put(_opened(node))

    # One node after another may be the right one, and all the first ones need not be.
    yield from (_open_node(node) for node in closed[:4])
    if len(closed) > 1:
        yield Step(
            len(closed),
            apply,
            lambda count: _text_to_open(closed[:count]),
            lambda count: tuple(line for node in closed[:count] for line in _commands_to_open(node)),
            edits=lambda count: count,
        )
    yield whole(world, job, Lift(Code.TAINT))


def _opened(node: Node) -> Node:
    return replace(node, taints=(), unschedulable=False)


def _open_node(node: Node) -> Step:
    return Step(
        1,
        lambda draft, count: draft.put(_opened(node)) if count else None,
        lambda count: _text_to_open([node]),
        lambda count: _commands_to_open(node),
    )


def _text_to_open(nodes: list[Node]) -> str:
    if len(nodes) > 1:
        return f"remove taints and cordons from {counted(len(nodes), 'node')}: {', '.join(node.name for node in nodes)}"
    # The taint of a cordon goes with it.
    taints = [text_of(taint) for node in nodes for taint in node.taints if taint.key != _CORDONED]
    what = f"{'taints' if len(taints) > 1 else 'taint'} {joined(taints)}"
    if nodes[0].unschedulable or len(taints) < len(nodes[0].taints):
        return f"uncordon node {nodes[0].name}{f' and remove its {what}' if taints else ''}"
    return f"remove {what} from node {nodes[0].name}"


def _commands_to_open(node: Node) -> tuple[str, ...]:
    lines = [f"kubectl uncordon {node.name}"] if node.unschedulable else []
    broken = [taint for taint in node.taints if taint.key in _NOT_READY]
    if broken:
        # Kubernetes sets the taint again for as long as the node is not ready.
        lines.append(f"# make node {node.name} ready; it has the taint {text_of(broken[0])}")
    shown = [f"{each.key}:{each.effect}-" for each in node.taints if each not in broken and each.key != _CORDONED]
    return (*lines, f"kubectl taint nodes {node.name} {' '.join(shown)}") if shown else tuple(lines)


_CORDONED = "node.kubernetes.io/unschedulable"
_NOT_READY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
