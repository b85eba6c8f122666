"""A request to bind one pod, which a scheduler writes and KAI's binder carries out."""

from __future__ import annotations

from msgspec import Struct

from pumice.model.devices.claims import Allocation

REGULAR, FRACTION, MIG_INSTANCE = "Regular", "Fraction", "MigInstance"


class BindRequest(Struct, frozen=True):
    """``gpu_groups``: the devices it is to share. ``backoff_limit``: how many further tries there are, None for none.

    ``claims``: what the claims of the pod are to be given, by their names in the pod's spec. Written and not read.

    ``pod_uid``: of the pod that owns it, empty where none does: another pod of its name is none of its business.

    ``unread``: what of it could not be read, and why. It holds nothing then.
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
    unread: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def pod_key(self) -> str:
        """``namespace/pod`` of the pod it is about."""
        return f"{self.namespace}/{self.pod}"

    def is_about(self, pod_uid: str) -> bool:
        """Whether it is about the pod of this uid, which has its name."""
        return self.pod_uid in ("", pod_uid)

    @property
    def is_live(self) -> bool:
        """Whether its pod counts on its node: until it failed and no try is left. Source: KAI bindrequest_info."""
        if not self.node or self.unread:
            return False
        return self.phase != "Failed" or self.failed_attempts < (self.backoff_limit or 0)
