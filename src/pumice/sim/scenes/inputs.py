"""Read what a command line names (manifests, folders, traces) into one scene, with all problems."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from pumice.model.events import Object, key_of
from pumice.model.node import Node
from pumice.model.queue import DEFAULT_QUEUE, Queue
from pumice.model.topology import HyperNode
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.policy.conf import CONF_KEY, KAI_CONF
from pumice.runtime.printing import escaped
from pumice.runtime.problems.problem import Problem, Severity, unforeseen
from pumice.sim.scenes.scene import Scene
from pumice.sim.traces.recognise import recognise
from pumice.sim.traces.shapes import parse_nodes
from pumice.sim.traces.trace import Trace, TraceError
from pumice.sim.workloads.work import LooseGang, Work

#: Names of policy files that are taken from a folder.
CONF_NAMES = (CONF_KEY, KAI_CONF)


class Inputs(Struct, frozen=True):
    """The inputs of a command. ``scene.problems``: all problems. ``sources``: what was read, for headings. ``confs``:
    policy files found in folders. ``newest``: the newest creationTimestamp, 0 if there is none."""

    scene: Scene
    sources: tuple[str, ...] = ()
    confs: tuple[Path, ...] = ()
    newest: float = 0.0

    @property
    def nodes(self) -> list[Node]:
        return [obj for obj in self.scene.objects if isinstance(obj, Node)]

    @property
    def is_kai(self) -> bool:
        """True if queues and PodGroups are KAI's, and none are Volcano's."""
        works = self.scene.works
        groups = [obj for obj in self.scene.objects if isinstance(obj, PodGroup)]
        groups += (work.group for work in works if isinstance(work, LooseGang))
        queues = [obj for obj in self.scene.objects if isinstance(obj, Queue)]
        of_kai = [
            *(queue.sharing is not None for queue in queues),
            *(group.gang is not None for group in groups if group.native is None),
            *(False for work in works if not isinstance(work, LooseGang)),
        ]
        return bool(of_kai) and all(of_kai)


def read_inputs(
    paths: Iterable[str],
    nodes: str | None = None,
    beside: Iterable[Object] | None = None,
    cluster: Sequence[Object] = (),
) -> Inputs:
    """Read everything that the paths name. What is unreadable becomes a problem, and the rest is used.

    ``nodes``: a cluster as ``--nodes`` describes it, instead of all nodes and HyperNodes of the input. ``beside``:
    groups and pods of Kubernetes' own gangs that exist, to which groups in the manifests may belong; they are returned
    with them. ``cluster``: objects that exist, which those that are read may name. Raises: TraceError for an invalid
    ``nodes``.
    """
    given = None if nodes is None else parse_nodes(nodes)
    traces: list[Trace] = []
    manifests: list[str] = []
    confs: list[Path] = []
    sources: list[str] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            source = recognise(path)
            if source is not None:
                traces.append(source.read())
                sources.append(f"{source.kind} trace {escaped(str(source.path))}")
                continue
        except TraceError as error:
            problems.append(Problem("trace", str(error)))
            continue
        except OSError as error:
            problems.append(Problem(path, f"cannot be read: {error.strerror or error}"))
            continue
        except Exception as error:
            problems.append(Problem(f"trace {path}", unforeseen(error)))
            continue
        manifests.append(path)
        sources.append(escaped(path))
        confs += (conf for name in CONF_NAMES if (conf := Path(path) / name).is_file())
    scenes = [_scene_of_trace(trace, given) for trace in traces]
    newest = 0.0
    if manifests:
        from pumice.sim.scenes.manifest_files import read_manifests  # a trace needs none of it

        first, newest = read_manifests(manifests, beside, cluster)
        scenes.insert(0, first)
    has_default = any(isinstance(obj, Queue) and obj.name == DEFAULT_QUEUE for obj in cluster)
    scene = _merged(scenes, given, has_default=has_default)
    return Inputs(replace(scene, problems=(*problems, *scene.problems)), tuple(sources), tuple(confs), newest)


def _scene_of_trace(trace: Trace, nodes: Sequence[Node] | None) -> Scene:
    """Return the scene of a trace, with its own cluster only if none is given. A trace that knows none may get its
    nodes from manifests."""
    objects: tuple[Object, ...] = (*trace.priorities, *trace.queues)
    if nodes is None:
        objects = (*objects, *(trace.nodes or ()), *trace.hypernodes)
    return Scene(objects, tuple(trace.jobs), tuple(trace.notes), tuple(trace.problems))


def _merged(scenes: Sequence[Scene], nodes: Sequence[Node] | None, *, has_default: bool) -> Scene:
    """Return one scene. Of objects or jobs with the same name the first is kept, and the others are reported.
    ``has_default``: the default queue exists."""
    problems = [problem for scene in scenes for problem in scene.problems]
    objects: dict[tuple[str, str], Object] = {}
    works: dict[str, Work] = {}
    for scene in scenes:
        for obj in scene.objects:
            if nodes is not None and isinstance(obj, Node | HyperNode):
                continue
            key = (type(obj).__name__, key_of(obj))
            if objects.setdefault(key, obj) is not obj and not isinstance(obj, Queue):
                problems.append(Problem(" ".join(key), "comes from two inputs; the first is kept", Severity.WARNING))
        for work in scene.works:
            if works.setdefault(work.key, work) is not work:
                problems.append(Problem(f"job {work.key}", "comes twice; the first is kept", Severity.WARNING))
    for node in nodes or ():
        objects["Node", node.name] = node
    makers = tuple(maker for scene in scenes for maker in scene.makers)  # whose Jobs name no queue, as a rule
    asked_for = bool(makers) or any(work.queue == DEFAULT_QUEUE for work in works.values())
    if asked_for and not has_default and ("Queue", DEFAULT_QUEUE) not in objects:
        objects["Queue", DEFAULT_QUEUE] = Queue(DEFAULT_QUEUE)
    return Scene(
        tuple(objects.values()),
        tuple(works.values()),
        tuple(note for scene in scenes for note in scene.notes),
        tuple(problems),
        makers,
    )
