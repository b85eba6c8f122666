"""Claims that pods of a gang share, and that keep them on one node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pumice.model.blockers import DEVICE_CLAIM, VOLUME_CLAIM, SharedClaim
from pumice.model.pod import Pod
from pumice.reasons.view import View


def shared_claim(view: View, job: int) -> SharedClaim | None:
    """Return a claim that several waiting pods of a gang use, where it has to be one that a single node can use: a
    volume that is mounted on one node at a time, or devices. None if there is none."""
    if view.needed(job) < 2:
        return None
    pods = [view.tables.tasks.pods[row] for row in view.waiting_rows(job)]
    for (kind, name), count in sorted(Counter(each for pod in pods for each in _claims(view, pod)).items()):
        if count > 1:
            return SharedClaim(kind, name, count)
    return None


def _claims(view: View, pod: Pod) -> Iterator[tuple[str, str]]:
    modes = {claim.key: claim.modes for claim in view.tables.volume_claims.objs} if pod.spec.claim_names else {}
    for name in pod.spec.claim_names:
        if all("Many" not in mode for mode in modes.get(f"{pod.namespace}/{name}", ("Many",))):
            yield VOLUME_CLAIM, name
    for name in pod.spec.resource_claims:
        # An empty name is made from a template, one for each pod.
        if name:
            yield DEVICE_CLAIM, name
