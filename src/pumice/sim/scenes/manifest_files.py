"""Read manifests into a scene, with all problems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from pumice.model.events import Object
from pumice.model.manifest import Value
from pumice.model.manifest.jobs import is_bare, podgroup_for_bare_pod
from pumice.model.plain_words import first_names
from pumice.model.pod import ENDED, Pod
from pumice.model.workloads.job import BatchJob
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.files.manifests import load_manifests
from pumice.runtime.problems.problem import Problem, Severity
from pumice.runtime.problems.validation import validate_cluster
from pumice.sim.scenes.manifests import scene_of
from pumice.sim.scenes.scene import Scene

#: Schedulers for whose pods PodGroups are made.
_PLACED_HERE = "volcano or kai-scheduler"


def read_manifests(
    paths: Iterable[str], beside: Iterable[Object] | None = None, cluster: Sequence[Object] = ()
) -> tuple[Scene, float]:
    """Return the scene of all these files and folders, and the newest creationTimestamp, 0 if there is none.
    ``beside``: groups and pods of Kubernetes' own gangs that exist, as ``load_manifests`` takes them. ``cluster``:
    objects that exist, which those in the files may name."""
    loaded = load_manifests(paths, beside=beside)
    objects, bare = _with_groups(_without_jobs_of_pods(loaded.objects))
    objects, found = validate_cluster(objects, cluster=cluster)
    newest = max((obj.creation for obj in objects if hasattr(obj, "creation")), default=0.0)
    scene = scene_of(objects)
    outside = _in_no_job(scene.objects)
    return replace(scene, problems=(*loaded.problems, *bare, *found, *outside, *scene.problems)), newest


def _in_no_job(objects: Iterable[Object]) -> Iterator[Problem]:
    """Yield a note for the waiting pods of each scheduler for whose pods no PodGroup is made."""
    names: dict[str, list[str]] = {}
    for obj in objects:
        if isinstance(obj, Pod) and not obj.group_key and not obj.node_name and obj.phase not in ENDED:
            names.setdefault(obj.scheduler_name, []).append(obj.key)
    for scheduler, pods in sorted(names.items()):
        what = f"is not placed: it is in no PodGroup and names the scheduler {scheduler}, wanted {_PLACED_HERE}"
        yield Problem(f"Pod {first_names(pods)}", what, Severity.NOTE)


def _without_jobs_of_pods(objects: Sequence[Value]) -> list[Value]:
    """Return the objects without Jobs of batch/v1 whose pods are among them: they were expanded already."""
    made = {
        (obj.namespace, obj.owner[1]) for obj in objects if isinstance(obj, Pod) and obj.owner and obj.owner[0] == "Job"
    }
    return [obj for obj in objects if not (isinstance(obj, BatchJob) and (obj.namespace, obj.name) in made)]


def _with_groups(objects: Iterable[Value]) -> tuple[tuple[Value, ...], tuple[Problem, ...]]:
    """Return the objects with a PodGroup for each pod that names none, as Volcano's controller makes it."""
    found: list[Value] = []
    groups: dict[str, PodGroup] = {}
    bare: list[str] = []
    for obj in objects:
        if isinstance(obj, Pod) and is_bare(obj):
            group, pod = podgroup_for_bare_pod(obj)
            groups.setdefault(group.key, group)
            bare.append(obj.key)
            found.append(pod)
        else:
            found.append(obj)
    there = {obj.key for obj in found if isinstance(obj, PodGroup)}
    found += [group for key, group in groups.items() if key not in there]
    if not bare:
        return tuple(found), ()
    what = "has no PodGroup and got one, as Volcano's controller would create it"
    return tuple(found), (Problem(f"Pod {first_names(bare)}", what, Severity.NOTE),)
