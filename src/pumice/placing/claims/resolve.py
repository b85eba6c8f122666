"""Find the claims of the pods in a snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from pumice.columns.tables import Tables
from pumice.model.devices.claims import ResourceClaim
from pumice.model.pod import Pod

TEMPLATE = "template/"


class Resolved(NamedTuple):
    """The claims of pods.

    ``claims``: those that a pod uses, or that have devices. ``of_task``: indices into these, by task row. ``missing``:
    what a task lacks, by task row.
    """

    claims: list[ResourceClaim]
    of_task: dict[int, tuple[int, ...]]
    missing: dict[int, str]


def claiming_tasks(tables: Tables) -> list[int]:
    """Return the rows of tasks that use claims and have not ended."""
    return tables.tasks.not_ended_of(tables.classes.claims)


def claim_keys(pod: Pod) -> Iterator[tuple[str, str]]:
    """Yield the key of each claim of a pod, and the key of its template or "". A claim that is made from a template,
    and whose name the pod's status does not say yet, is named after the pod and its position: ``namespace/pod/0``."""
    for i, name in enumerate(pod.spec.resource_claims):
        if not name.startswith(TEMPLATE):
            yield f"{pod.namespace}/{name}", ""
            continue
        made = pod.made_claims[i] if i < len(pod.made_claims) else ""
        yield f"{pod.namespace}/{made or f'{pod.name}/{i}'}", "" if made else f"{pod.namespace}/{name}"


def resolved_claims(tables: Tables) -> Resolved:
    """Return the claims of all pods that have not ended."""
    known = {claim.key: claim for claim in tables.claims.objs}
    place: dict[str, int] = {}
    found = Resolved([], {}, {})
    # Claims with devices come first even if no pod in the snapshot uses them, because their devices are taken.
    for claim in known.values():
        if claim.allocation is not None:
            place[claim.key] = len(found.claims)
            found.claims.append(claim)
    for row in claiming_tasks(tables):
        numbers = []
        for key, template in claim_keys(tables.tasks.pods[row]):
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
        # A pod may name one claim twice.
        found.of_task[row] = tuple(dict.fromkeys(numbers))
    return found


def _made(template: ResourceClaim | None, key: str) -> ResourceClaim | None:
    """Return the claim that will be made from a template."""
    return None if template is None else replace(template, name=key.partition("/")[2])
