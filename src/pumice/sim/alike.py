"""Pods that travel together: of one job, of one spec, in one state, all or none of them on nodes.

What happens to them at one instant is one event. They differ in names, uids and nodes. One pod is the case of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pumice.model.pod import Pod
from pumice.sim.spans import DURATION_ANNOTATION

#: Pods that are alike, by key, in the order in which things happen to them; at least one.
Alike = Mapping[str, Pod]


def one_of(pods: Alike) -> Pod:
    """The first: what is asked of it holds for all."""
    return next(iter(pods.values()))


def in_parts(pods: Mapping[str, Pod]) -> Iterator[Alike]:
    """Pods, each like its neighbours, in their order."""
    part: dict[str, Pod] = {}
    first = None
    for key, pod in pods.items():
        if first is not None and not _travels_with(first, pod):
            yield part
            part, first = {}, None
        if first is None:
            first = pod
        part[key] = pod
    if part:
        yield part


def _travels_with(a: Pod, b: Pod) -> bool:
    """Pods with a duration of their own end on their own, at moments that depend on the order of their starts."""
    return (
        a.spec is b.spec
        and a.phase == b.phase
        and (a.node_name == "") == (b.node_name == "")
        and a.namespace == b.namespace
        and (a.annotations is b.annotations or a.annotations == b.annotations)
        and DURATION_ANNOTATION not in a.annotations
    )
