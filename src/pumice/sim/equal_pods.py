"""Pods that are handled together: of one job, with one spec and status, and either all or none of them on nodes.

What happens to them at one time is one event. They differ in names, UIDs and nodes. A single pod is a special case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pumice.model.pod import Pod
from pumice.sim.workloads.spans import DURATION_ANNOTATION

#: Equal pods, by key, in the order in which things happen to them; at least one.
EqualPods = Mapping[str, Pod]


def one_of(pods: EqualPods) -> Pod:
    """Return the first pod. What it is asked holds for all."""
    return next(iter(pods.values()))


def one_by_one(pods: EqualPods) -> Iterator[EqualPods]:
    """Yield each pod alone, in order."""
    return ({key: pod} for key, pod in pods.items())


def in_parts(pods: Mapping[str, Pod]) -> Iterator[EqualPods]:
    """Yield groups of equal neighbours, in order.

    Pods with their own duration end at times that depend on the order of their starts, so they are alone in their
    group. All comparisons are in the loop itself, because it runs for every pod that arrives, is bound or leaves.
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
