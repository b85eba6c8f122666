"""A request to bind one pod, which a scheduler writes and KAI's binder carries out."""

from __future__ import annotations

from msgspec import Struct

from pumice.model.devices.claims import Allocation

REGULAR, FRACTION, MIG_INSTANCE = "Regular", "Fraction", "MigInstance"


class BindRequest(Struct, frozen=True):
    """A request to bind one pod. Source: KAI BindRequest.

    ``gpu_groups``: the devices that it shares. ``backoff_limit``: how many further attempts it has, None for none.
    ``claims``: allocations of the pod's claims, by their names in the pod's spec. ``extended_claim``: the claim to be
    made for its extended resources, as JSON. Both are never read. ``pod_uid``: UID of its owner, "" if no pod owns it.
    ``numa_zones``: the NUMA zones that it is expected to get, as the binder writes them into an annotation of the pod,
    "" for none. ``unparsable``: fields that could not be read, and why; then it holds nothing.
    """

    namespace: str
    name: str
    pod: str
    node: str
    received_type: str = REGULAR
    gpu_count: int = 0
    gpu_portion: str = ""
    gpu_groups: tuple[str, ...] = ()
    claims: tuple[tuple[str, Allocation], ...] = ()
    backoff_limit: int | None = None
    phase: str = ""
    reason: str = ""
    failed_attempts: int = 0
    creation: float = 0.0
    resource_version: str = ""
    uid: str = ""
    pod_uid: str = ""
    numa_zones: str = ""
    extended_claim: str = ""
    unparsable: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def pod_key(self) -> str:
        """``namespace/name`` of its pod."""
        return f"{self.namespace}/{self.pod}"

    def is_about(self, pod_uid: str) -> bool:
        """Return True if the request is about the pod with this UID and not about an earlier pod of the same name."""
        # A pod of a StatefulSet returns under its old name, and a request for its predecessor must not bind it.
        return self.pod_uid in ("", pod_uid)

    @property
    def is_live(self) -> bool:
        """True if its pod counts on its node, which ends when it has failed and no attempt is left. Source: KAI
        bindrequest_info."""
        # A request that cannot be read reserves nothing: its amounts would be guessed.
        if not self.node or self.unparsable:
            return False
        # A failed request is tried again by KAI's binder while attempts are left, so its resources stay reserved.
        return self.phase != "Failed" or self.failed_attempts < (self.backoff_limit or 0)
