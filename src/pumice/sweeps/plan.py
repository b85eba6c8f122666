"""All universes of a sweep, and all that is wrong with it, before the first of them is run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from pumice.framework.plugin.errors import PolicyError
from pumice.library.cluster import Cluster, Span, read_cluster, seconds_of
from pumice.library.errors import InputError
from pumice.library.policies import policy
from pumice.model.resources import CPU, MEMORY, PODS
from pumice.runtime.policy.installed_plugins import installed_in
from pumice.runtime.problems.problem import Problem
from pumice.sim.measures.node_usage import amounts_of
from pumice.sim.scenes.scene import Scene
from pumice.sim.traces.recognise import split, with_columns
from pumice.sim.traces.shapes import parse_nodes
from pumice.sim.traces.trace import TraceError
from pumice.sweeps.arguments import with_arguments
from pumice.sweeps.request import Request, seeds_of
from pumice.sweeps.universe import Settings, Universe, Value, as_text

UNIVERSES_MAX = 100_000
_CHUNK = 1 << 20
Arguments = tuple[tuple[str, Value], ...]


class Plan(Struct, frozen=True):
    """The universes of a sweep, in order: by policy, arguments, size, seed.

    ``problems``: what of the input could not be used. ``notes``: what was assumed while it was read.
    """

    universes: tuple[Universe, ...]
    arguments: tuple[str, ...]
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()

    def shard(self, number: int, count: int) -> list[Universe]:
        """Return every ``count``-th universe, from the ``number``-th on (1 is the first)."""
        return list(self.universes[number - 1 :: count])


class _Policy(Struct, frozen=True):
    name: str
    text: str
    arguments: Arguments
    installed: tuple[str, ...]  # packages whose plugins it names, as their code decides too


def plan_of(request: Request, texts: Mapping[str, str] = MappingProxyType({})) -> Plan:
    """Return the plan of a request. ``texts``: policies that are no files, by name. Raises: InputError with everything
    that is wrong with it."""
    problems: list[str] = []
    inputs = _inputs(request, problems)
    cluster = _cluster(inputs, problems)
    settings = _settings(request, problems)
    sizes = list(_sizes(request.nodes, cluster, problems))
    policies = list(_policies(request, texts, cluster, problems))
    try:
        seeds = seeds_of(request.seeds)
    except ValueError as error:
        problems.append(f"seeds: {error}")
        seeds = []
    count = len(policies) * len(sizes) * len(seeds)
    if count > UNIVERSES_MAX:
        problems.append(f"found {count:,} universes, wanted at most {UNIVERSES_MAX:,}")
    if problems:
        raise InputError(problems)
    contents = contents_of([*inputs, *([request.plugins_dir] if request.plugins_dir else [])])
    universes = (
        Universe(
            tuple(inputs), each.name, each.text, each.arguments, size, seed, settings,
            _with_installed(contents, each.installed), request.plugins_dir,
        )
        for each, size, seed in product(policies, sizes, seeds)
    )  # fmt: skip
    scene = cluster.inputs.scene if cluster else Scene((), ())
    return Plan(tuple(universes), tuple(request.arguments), scene.problems, scene.notes)


def _inputs(request: Request, problems: list[str]) -> list[str]:
    try:
        return with_columns(request.inputs, request.columns)
    except TraceError as error:
        problems.append(str(error))
        return request.inputs


def _cluster(inputs: list[str], problems: list[str]) -> Cluster | None:
    if not inputs:
        problems.append("inputs: found none, wanted manifests or a trace")
        return None
    try:
        return read_cluster(inputs)
    except InputError as error:
        problems += [f"inputs: {problem}" for problem in error.problems]
        return None


def _settings(request: Request, problems: list[str]) -> Settings:
    def seconds(name: str, span: Span | None) -> float | None:
        try:
            return seconds_of(name, span)
        except InputError as error:
            problems.extend(error.problems)
            return None

    # A shake of 0 is one, and means none.
    shake = None if request.shake in (0, "0", "0s", None) else seconds("shake", request.shake)
    return Settings(
        until=seconds("until", request.until),
        period=seconds("period", request.period) or 1.0,
        warm_up=seconds("warm_up", request.warm_up),
        cool_down=seconds("cool_down", request.cool_down),
        shake=shake,
    )


def _sizes(sizes: Sequence[str], cluster: Cluster | None, problems: list[str]) -> Iterator[str]:
    """Yield each size that can be used, and note the others."""
    if not sizes:
        if cluster is not None and not cluster.inputs.nodes:
            problems.append("nodes: the input has none; give some, such as 16x4gpu")
        yield ""
        return
    asked = _devices(cluster) if cluster is not None else frozenset()
    for place, size in enumerate(sizes):
        if size in sizes[:place]:
            problems.append(f"nodes {size}: found twice")
            continue
        try:
            nodes = parse_nodes(size)
        except TraceError as error:
            problems.append(f"nodes {size}: {str(error).removeprefix('--nodes: ')}")
            continue
        there = {name for node in nodes for name, amount in amounts_of(node.allocatable) if amount}
        if missing := sorted(asked - there):
            problems.append(f"nodes {size}: no node has {', '.join(missing)}, which jobs of the input ask for")
        yield size


def _devices(cluster: Cluster) -> frozenset[str]:
    """Return the resources beside cpu, memory and pods that jobs ask for."""
    specs = {id(spec): spec for work in cluster.inputs.scene.works for spec, _ in work.outline(0.0)[1]}
    names = {name for spec in specs.values() for name, amount in amounts_of(spec.request) if amount}
    return frozenset(names - {CPU, MEMORY, PODS})


def _policies(
    request: Request, texts: Mapping[str, str], cluster: Cluster | None, problems: list[str]
) -> Iterator[_Policy]:
    """Yield each policy with each combination of arguments, and note those that cannot be used."""
    if not request.policies and cluster is not None and cluster.inputs.is_kai and not cluster.inputs.confs:
        problems.append("policies: queues and PodGroups are KAI's: name a policy file with dialect: kai")
    names = request.policies or ([str(path) for path in cluster.inputs.confs[:1]] if cluster else []) or ["default"]
    problems += [f"policies: {name}: found twice" for i, name in enumerate(names) if name in names[:i]]
    for name, values in request.arguments.items():
        problems += [f"set: {name}={each}: found twice" for i, each in enumerate(values) if each in values[:i]]
    combinations = [
        tuple(zip(request.arguments, values, strict=True)) for values in product(*request.arguments.values())
    ]
    for name in names:
        source = as_text(texts[name]) if name in texts else name
        try:
            plain = policy(source, plugins_dir=request.plugins_dir or None)
        except (InputError, PolicyError) as error:
            said = [f"{name}: {problem.removeprefix('policy: ')}" for problem in error.problems]
            problems += said if name in texts else error.problems
            continue
        wrong: dict[str, None] = {}
        for arguments in combinations:
            try:
                text = with_arguments(plain.text, dict(arguments))
                read = policy(text if arguments else source, plugins_dir=request.plugins_dir or None)
            except PolicyError as error:
                wrong.update(dict.fromkeys(problem.removeprefix("policy: ") for problem in error.problems))
            except ValueError as error:
                wrong[str(error)] = None
            else:
                yield _Policy(name, text, arguments, tuple(installed_in(read.policy)))
        problems += [f"{name}: {problem}" for problem in wrong]


def _with_installed(contents: str, installed: tuple[str, ...]) -> str:
    return hashlib.sha256("\n".join([contents, *installed]).encode()).hexdigest() if installed else contents


def contents_of(paths: Iterable[str]) -> str:
    """Return a digest of files, and of all files below folders, with their names within the folder."""
    digest = hashlib.sha256()
    for path in paths:
        root, named = Path(path), split(path)
        if named is not None:
            digest.update(f"{named[0]}:".encode())
            root = named[1]
        below = sorted(each for each in root.rglob("*") if each.is_file()) if root.is_dir() else [root]
        for file in below:
            if "__pycache__" in file.parts:
                continue
            name = str(file.relative_to(root)) if file != root else file.suffix
            digest.update(f"{name}\0{file.stat().st_size}\0".encode())
            with file.open("rb") as content:
                while chunk := content.read(_CHUNK):
                    digest.update(chunk)
    return digest.hexdigest()
