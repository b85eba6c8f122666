"""Reserve devices that pods share: a reservation pod for each is created before the first pod of a group is bound,
found again by others, and deleted after the last has left.

The reservation pod requests one GPU from its node, and its program writes on the pod which one it got. Source: KAI's
binder (resource reservation, gpu sharing).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from hashlib import sha256
from weakref import WeakValueDictionary

from msgspec import Struct

from pumice.kube.api.client import Client
from pumice.kube.api.encode_terms import toleration_objects
from pumice.kube.api.errors import ApiError, KubeError
from pumice.kube.api.kinds import PODS
from pumice.kube.binding.group_users import GroupUsers
from pumice.kube.binding.share_config_maps import NoContainer, write_config_maps
from pumice.kube.informers.informer_cache import InformerCache
from pumice.kube.writers.event_recorder import EventRecorder, about_pod
from pumice.model.bind_request import FRACTION, BindRequest
from pumice.model.decisions import GPU_GROUPS, Bind
from pumice.model.devices.gpu import (
    GPU_GROUP_LABEL,
    GPU_INDEX_ANNOTATION,
    GPU_RESOURCE,
    RECEIVED_TYPE_ANNOTATION,
    RESERVATION_NAMESPACE,
    gpu_groups,
    labels_of_groups,
)
from pumice.model.events import Event, Gone, Seen
from pumice.model.pod import ENDED, Pod
from pumice.runtime.in_flight import InFlightDecisions

_NAME_DIGITS = 16

_log = logging.getLogger("pumice.kube")


class ReservationSettings(Struct, frozen=True):
    """``image``: what a reservation pod runs. ``wait_s``: how long it may take to say which device it got."""

    image: str
    wait_s: float = 40.0
    service_account: str = "kai-resource-reservation"


class NotReserved(Exception):
    """A device could not be reserved."""


class GpuReservations:
    """A ``binding.PreBind``. ``settings`` None: pods that share devices are not bound."""

    name = "GPU sharing"

    def __init__(
        self,
        client: Client,
        cache: InformerCache,
        in_flight: InFlightDecisions,
        recorder: EventRecorder,
        scheduler: str,
        settings: ReservationSettings | None,
    ) -> None:
        self._in_flight = in_flight
        self._client, self._cache, self._recorder, self._settings = client, cache, recorder, settings
        self._scheduler = scheduler
        self._reserved: dict[str, Pod] = {}  # by group
        self._reserved_by: dict[str, tuple[str, ...]] = {}  # groups by reservation pod
        self._sharers = GroupUsers()  # pods that are there
        self._preparing = GroupUsers()  # pods that are about to be bound
        self._requested = GroupUsers()  # live BindRequests
        self._waiting: dict[str, asyncio.Future[str]] = {}  # by group
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by group, while one is in use
        self._unused: set[str] = set()  # groups, when they were last looked at
        self._lost: set[str] = set()

    # -- before a bind -------------------------------------------------------------------------------------------------

    async def prepare(self, bind: Bind) -> Mapping[str, str] | None:
        """Reserve the devices of a pod and label it. Raises: NotReserved, KubeError."""
        groups = _groups_in(bind)
        if not groups:
            return None
        if self._settings is None:
            raise NotReserved("pods that share GPUs need --gpu-reservation-image, or --bind-requests and KAI's binder")
        pod = self._cache.pods.get(bind.pod)
        if pod is None:
            raise NotReserved("the pod is gone")
        self._preparing.put(bind.pod, groups)
        try:
            indices = [await self._reserve(self._settings, bind.node, group, pod) for group in groups]
            # Labels of an earlier attempt may still be there, if their removal failed.
            earlier = dict.fromkeys(labels_of_groups(gpu_groups(pod.labels), pod.spec.gpu_share))
            await self._label(bind, {**earlier, **labels_of_groups(groups, pod.spec.gpu_share)})
            node = self._cache.nodes.get(bind.node)
            await write_config_maps(self._client, pod, indices, node.labels if node is not None else {})
        except NoContainer as error:
            await self.undo(bind)
            raise NotReserved(str(error)) from None
        except BaseException:
            await self.undo(bind)
            raise
        return {RECEIVED_TYPE_ANNOTATION: FRACTION}

    async def undo(self, bind: Bind) -> None:
        """Remove the labels. A reservation that is no longer needed is deleted soon (``release_unused``)."""
        groups, pod = _groups_in(bind), self._cache.pods.get(bind.pod)
        self.done(bind)
        if pod is not None and groups and not pod.node_name:
            await self._label(bind, dict.fromkeys(labels_of_groups(groups, pod.spec.gpu_share)))

    def done(self, bind: Bind) -> None:
        """The pod is bound, or will not be. From now on its labels say what it shares."""
        self._preparing.drop(bind.pod)

    async def _reserve(self, settings: ReservationSettings, node: str, group: str, sharer: Pod) -> str:
        """Return which device of the node the group has. Raises: NotReserved, KubeError."""
        async with self._locks.setdefault(group, asyncio.Lock()):
            known = self._reserved.get(group)
            if known is not None and known.annotations.get(GPU_INDEX_ANNOTATION):
                return known.annotations[GPU_INDEX_ANNOTATION]
            said: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            self._waiting[group] = said
            name = _reservation_name(node, group)
            try:
                if known is None:
                    await self._make(settings, node, group, name, sharer)
                return await asyncio.wait_for(said, settings.wait_s)
            except TimeoutError:
                await self._delete(f"{RESERVATION_NAMESPACE}/{name}", "")
                raise NotReserved(f"no word for {settings.wait_s:.0f} s of the device that {name} has") from None
            finally:
                self._waiting.pop(group, None)

    async def _make(self, settings: ReservationSettings, node: str, group: str, name: str, sharer: Pod) -> None:
        """Create the reservation pod of a group, unless it exists."""
        field = {"fieldRef": {"fieldPath": "metadata.name"}}, {"fieldRef": {"fieldPath": "metadata.namespace"}}
        env = [{"name": key, "valueFrom": each} for key, each in zip(("POD_NAME", "POD_NAMESPACE"), field, strict=True)]
        container = {
            "name": "resource-reservation",
            "image": settings.image,
            "imagePullPolicy": "IfNotPresent",
            "env": env,
            "resources": {
                "requests": {GPU_RESOURCE: "1", "cpu": "1m", "memory": "10Mi"},
                "limits": {GPU_RESOURCE: "1", "cpu": "50m", "memory": "100Mi"},
            },
        }
        labels = {"app": RESERVATION_NAMESPACE, GPU_GROUP_LABEL: group}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"namespace": RESERVATION_NAMESPACE, "name": name, "labels": labels},
            "spec": {
                "nodeName": node,
                "serviceAccountName": settings.service_account,
                "terminationGracePeriodSeconds": 0,  # it has nothing to finish, and its GPU is wanted
                "containers": [container],
                # A taint with NoExecute, which the pod tolerates, must not end the reservation under it.
                **({"tolerations": tolerated} if (tolerated := toleration_objects(sharer.spec.tolerations)) else {}),
            },
        }
        try:
            await self._client.post(PODS.namespace_path(RESERVATION_NAMESPACE), body)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise

    async def _label(self, bind: Bind, labels: Mapping[str, str | None]) -> None:
        try:
            await self._client.patch(PODS.path(bind.pod), {"metadata": {"uid": bind.uid, "labels": dict(labels)}})
        except ApiError as error:
            if error.status != 404:
                raise

    # -- what is heard -------------------------------------------------------------------------------------------------

    def take(self, event: Event) -> None:
        """Note what an event says about pods and about requests to bind them. On the event loop."""
        match event:
            case Seen(Pod() as pod):
                self.observe(pod)
            case Gone(kind, key) if kind is Pod:
                self.gone(key)
            case Seen(BindRequest() as request):
                self.observe_request(request)
            case Gone(kind, key) if kind is BindRequest:
                self.request_gone(key)

    def observe(self, pod: Pod) -> None:
        """Note a new or changed pod. On the event loop."""
        groups = gpu_groups(pod.labels) if pod.phase not in ENDED else ()
        if pod.namespace != RESERVATION_NAMESPACE:
            self._sharers.put(pod.key, groups)
            return
        self.gone(pod.key)
        if groups:
            self._reserved_by[pod.key] = groups
        for group in groups:
            self._reserved[group] = pod
            index, waiting = pod.annotations.get(GPU_INDEX_ANNOTATION), self._waiting.get(group)
            if index and waiting is not None and not waiting.done():
                waiting.set_result(index)

    def gone(self, key: str) -> None:
        """Note that a pod no longer exists."""
        self._sharers.drop(key)
        for group in self._reserved_by.pop(key, ()):
            self._reserved.pop(group, None)

    def observe_request(self, request: BindRequest) -> None:
        """Note a new or changed BindRequest: its pod is about to share devices, by another binder."""
        # Of one that has succeeded the pod bears the groups; one that has failed makes its reservation anew.
        self._requested.put(request.key, request.gpu_groups if request.phase not in ("Succeeded", "Failed") else ())

    def request_gone(self, key: str) -> None:
        """Note that a BindRequest no longer exists."""
        self._requested.drop(key)

    async def run(self, release_s: float, is_synced: Callable[[], bool]) -> None:
        """Delete unused reservations until cancelled. Before everything was listed, users may be unknown."""
        while True:
            await asyncio.sleep(release_s)
            if is_synced():
                await self.release_unused()

    async def release_unused(self) -> None:
        """Delete reservations without users that had none the last time either."""
        in_flight = self._groups_in_flight() if self._reserved else set()
        unused = {group for group in self._reserved if self._is_unused(group, in_flight)}
        for group in sorted(unused & self._unused) if self._settings is not None else ():
            # Again before each: while the one before was deleted, a pod may have come, or the reservation have gone.
            if group in self._reserved and self._is_unused(group, self._groups_in_flight()):
                pod = self._reserved[group]
                await self._delete(pod.key, pod.uid)
        self._unused = unused

    def _is_unused(self, group: str, in_flight: set[str]) -> bool:
        """Return True if no pod has a group, is about to get it, or is being bound to it."""
        return not (group in self._sharers or self._is_busy(group) or group in in_flight)

    async def end_unreserved(self) -> None:
        """End pods on devices without a reservation, which may be given to others, if they had none the last time
        either."""
        lost = {group for group in self._sharers if self._is_unreserved(group)}
        for group in sorted(lost & self._lost) if self._settings is not None else ():
            # Again before each: while pods of the one before were ended, its reservation may have appeared.
            if self._is_unreserved(group):
                await self._end(group)
        self._lost = lost

    def _is_unreserved(self, group: str) -> bool:
        return group not in self._reserved and not self._is_busy(group)

    def _groups_in_flight(self) -> set[str]:
        """Return the groups of binds that are still to be sent. Their pods have no labels yet."""
        return {group for bind in self._in_flight.binds() for group in _groups_in(bind)}

    def _is_busy(self, group: str) -> bool:
        return group in self._preparing or group in self._requested

    async def _end(self, group: str) -> None:
        for key in self._sharers.of(group):
            pod = self._cache.pods.get(key)
            if pod is None or pod.scheduler_name != self._scheduler:
                continue
            if pod.phase == "Running" and pod.deletion is None:
                why = (
                    f"the pod that reserved its GPU (group {group}) is gone, and its device can be given to other pods"
                )
                self._recorder.record(about_pod(pod), "Warning", "GpuReservationLost", why)
                await self._delete(key, pod.uid)

    async def _delete(self, key: str, uid: str) -> None:
        try:
            await self._client.delete(PODS.path(key), uid=uid)
        except KubeError as error:
            if not (isinstance(error, ApiError) and error.status in (404, 409)):
                _log.warning("pod %s could not be deleted: %s", key, error)


def _groups_in(bind: Bind) -> tuple[str, ...]:
    found = bind.context.get(GPU_GROUPS, ())
    return tuple(map(str, found)) if isinstance(found, tuple | list) else ()


def _reservation_name(node: str, group: str) -> str:
    """Return the name of a group's pod, so that a repeated request creates no second one. Source: KAI 0.17 binder."""
    return f"gpu-reservation-{sha256(f'{node}/{group}'.encode()).hexdigest()[:_NAME_DIGITS]}"
