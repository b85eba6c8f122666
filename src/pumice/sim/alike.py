"""Pods that travel together: of one job, of one spec, in one state, all or none of them on nodes.

What happens to them at one instant is one event. They differ in names, uids and nodes. One pod is the case of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pumice.model.pod import Pod
from pumice.sim.workloads.spans import DURATION_ANNOTATION

#: Pods that are alike, by key, in the order in which things happen to them; at least one.
Alike = Mapping[str, Pod]


def one_of(pods: Alike) -> Pod:
    """The first: what is asked of it holds for all."""
    return next(iter(pods.values()))


def in_parts(pods: Mapping[str, Pod]) -> Iterator[Alike]:
    """Pods, each like its neighbours, in their order.

    Pods with a duration of their own end on their own, at moments that depend on the order of their starts: they travel
    alone. All is compared in the loop itself, for it is gone through for every pod that comes, is bound or goes.
    """
    part: dict[str, Pod] = {}
    first, alone = None, False
    for key, pod in pods.items():
        if first is None or not (
            pod.spec is first.spec
            and pod.phase == first.phase
            and (pod.node_name == "") == (first.node_name == "")
            and pod.namespace == first.namespace
            and (pod.annotations is first.annotations or pod.annotations == first.annotations)
            and not alone
        ):
            if part:
                yield part
            part, first = {}, pod
            alone = DURATION_ANNOTATION in pod.annotations
        part[key] = pod
    if part:
        yield part
