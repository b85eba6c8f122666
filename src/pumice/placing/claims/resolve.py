"""Find the claims of the pods in a snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from pumice.columns.dtypes import Bool
from pumice.columns.tables import Tables
from pumice.model.devices.claims import ResourceClaim
from pumice.model.pod import GROUP_NAME_ANNOTATION, NATIVE_SUB_GROUP_MARK, Pod
from pumice.model.workloads.native_group import GroupClaim, GroupRef
from pumice.placing.claims.extended import unmade_claim

TEMPLATE = "template/"
#: Between namespace and PodGroup in the key of a claim that will be made for a PodGroup.
GROUP_CLAIM = "podgroup"


class Resolved(NamedTuple):
    """The claims of pods.

    ``claims``: those that a pod uses, or that have devices. ``of_task``: indices into these, by task row. ``missing``:
    what a task lacks, by task row. ``extended``: the task whose extended resources a claim is for, by index.
    ``of_group``: the PodGroup that a claim is reserved for, by index.
    """

    claims: list[ResourceClaim]
    of_task: dict[int, tuple[int, ...]]
    missing: dict[int, str]
    extended: dict[int, int]
    of_group: dict[int, GroupRef]


def claiming_tasks(tables: Tables) -> list[int]:
    """Return the rows of tasks that use claims, or extended resources that devices back, and have not ended."""
    return tables.tasks.not_ended_of(tables.classes.claims | asking_by_devices(tables))


def asking_by_devices(tables: Tables) -> Bool:
    """Return the classes of tasks that ask for a resource that a node offers by devices. Shape (C,)."""
    columns = tables.nodes.facts.device_columns
    found: Bool = (tables.classes.req[:, columns] > 0).sum(axis=1) > 0
    return found


def _shared_claims(tables: Tables, row: int) -> Sequence[GroupClaim]:
    """Return the claims that the PodGroup of a task lets its pods share."""
    group = tables.jobs.groups[int(tables.tasks.job[row])]
    assert group is not None and group.native is not None
    notes = tables.tasks.pods[row].annotations
    # In a tree of groups, the one that the pod itself names.
    own = notes.get(NATIVE_SUB_GROUP_MARK) or notes.get(GROUP_NAME_ANNOTATION)
    return [each for each in group.native.claims if each.group.name == own]


def claim_keys(pod: Pod, shared: Sequence[GroupClaim] = ()) -> Iterator[tuple[str, str, GroupRef | None]]:
    """Yield the key of each claim of a pod, the key of its template or "", and the PodGroup that it is reserved for, or
    None.

    A claim that is made from a template, and whose name no status says yet, is named after the pod and its position,
    ``namespace/pod/0``, or after the PodGroup: ``namespace/podgroup/<name>/<entry>``. ``shared``: claims of the
    PodGroup; a pod uses one if its own entry is the same.
    """
    of_group = {(each.entry, each.source): each for each in shared} if shared else {}
    for i, name in enumerate(pod.spec.resource_claims):
        entry = pod.claim_entries[i] if i < len(pod.claim_entries) else ""
        same = of_group.get((entry, name))
        group = None if same is None else same.group
        if not name.startswith(TEMPLATE):
            yield f"{pod.namespace}/{name}", "", group
            continue
        made = pod.made_claims[i] if i < len(pod.made_claims) else ""
        own = f"{pod.name}/{i}"
        if same is not None:
            made, own = made or same.made, f"{GROUP_CLAIM}/{same.group.name}/{entry}"
        yield f"{pod.namespace}/{made or own}", "" if made else f"{pod.namespace}/{name}", group


def resolved_claims(tables: Tables) -> Resolved:
    """Return the claims of all pods that have not ended."""
    known = {claim.key: claim for claim in tables.claims.objs}
    asking = asking_by_devices(tables)
    # One with devices last, since it counts: the one that is being made for the same pod may have none yet.
    in_order = sorted(known.values(), key=lambda claim: claim.allocation is not None)
    made_for = {claim.for_pod: claim for claim in in_order if claim.for_pod}
    place: dict[str, int] = {}
    found = Resolved([], {}, {}, {}, {})
    # Claims with devices come first even if no pod in the snapshot uses them, because their devices are taken.
    for claim in known.values():
        if claim.allocation is not None:
            place[claim.key] = len(found.claims)
            found.claims.append(claim)
    # Few PodGroups have claims to share, and a pod of another one is not asked for its group.
    sharing = {
        j for j, group in enumerate(tables.jobs.groups) if group is not None and group.native and group.native.claims
    }
    for row in claiming_tasks(tables):
        numbers = []
        shared = _shared_claims(tables, row) if sharing and int(tables.tasks.job[row]) in sharing else ()
        for key, template, group in claim_keys(tables.tasks.pods[row], shared):
            if key not in place:
                # The claim of a template may not exist yet; the session then counts with the one that will be made.
                made = known.get(key) or _made(known.get(template), key)
                # The pod waits with this reason until the claim or the template is created.
                if made is None:
                    what = f"template {template.replace(TEMPLATE, '')}" if template else key
                    found.missing[row] = f"resourceclaim {what} not found"
                    continue
                place[key] = len(found.claims)
                found.claims.append(made)
            numbers.append(place[key])
            if group is not None:
                found.of_group[place[key]] = group
        extended = _extended_claim(tables, row, made_for) if asking[tables.tasks.cls[row]] else None
        if extended is not None:
            if extended.key not in place:
                place[extended.key] = len(found.claims)
                found.claims.append(extended)
            numbers.append(place[extended.key])
            found.extended[place[extended.key]] = row
        # A pod may name one claim twice.
        found.of_task[row] = tuple(dict.fromkeys(numbers))
    return found


def _extended_claim(tables: Tables, row: int, made_for: Mapping[str, ResourceClaim]) -> ResourceClaim | None:
    """Return the claim for the extended resources of a task, or None if it runs without one."""
    pod = tables.tasks.pods[row]
    made = made_for.get(pod.uid)
    # A pod that runs without a claim has its devices from the device plugin of its node.
    return made if made is not None or pod.node_name else unmade_claim(pod)


def _made(template: ResourceClaim | None, key: str) -> ResourceClaim | None:
    """Return the claim that will be made from a template."""
    return None if template is None else replace(template, name=key.partition("/")[2])
