"""The place of the filters that Pumice does not have yet: volumes (CSI limits, zones, binding) and dynamic resources.

A pod that needs one of them is refused and told so; it is never placed as if it needed nothing.
"""

from __future__ import annotations

from pumice.framework.verdict import Code, Unfit
from pumice.model.pod import PodSpec

DRA = Unfit("plugin DynamicResources pre-predicates failed resource claims are not supported yet", Code.UNRESOLVABLE)


def volume_filters_not_yet(spec: PodSpec, volume_plugins: tuple[str, ...]) -> Unfit | None:
    """Why a pod with claims cannot be placed, else None. ``volume_plugins``: the volume filters that are on."""
    if spec.claim_names and volume_plugins:
        reason = f"plugin {volume_plugins[0]} pre-predicates failed volumes are not supported yet"
        return Unfit(reason, Code.UNRESOLVABLE)
    return DRA if spec.resource_claims else None
