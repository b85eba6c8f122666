"""Binding by KAI's binder: a BindRequest instead of a binding, and what becomes of requests.

A pod counts on its node from the request on. A request that failed with no attempt left is reported on its pod and
deleted. The pod then waits, longer after each failure, so that a binder that always fails costs few requests. Source:
KAI cache (Bind), bindrequest_info, cluster_info (stale requests).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from msgspec.structs import replace

from pumice.kube.api.client import Client
from pumice.kube.api.codec import BadObject, Codec
from pumice.kube.api.encode_kai import kai_bind_request
from pumice.kube.api.errors import ApiError, KubeError
from pumice.kube.api.kinds import BIND_REQUESTS
from pumice.kube.binding.bind import OutdatedError, give_back_outdated
from pumice.kube.binding.claims import ClaimProblem, claims_to_be_given, extended_to_be_given
from pumice.kube.informers.informer_cache import InformerCache
from pumice.kube.writers.event_recorder import EventRecorder, about_pod
from pumice.kube.writers.work_queue import WorkQueue
from pumice.model.bind_request import FRACTION, MIG_INSTANCE, REGULAR, BindRequest
from pumice.model.decisions import GPU_GROUPS, Bind, device_grant
from pumice.model.devices.gpu import GPU_RESOURCE, MIG_PREFIX, gpu_portion, node_gpu_memory
from pumice.model.devices.numa import PREDICTED_ANNOTATION
from pumice.model.events import Seen
from pumice.model.manifest import Decoder
from pumice.model.pod import Pod
from pumice.runtime.in_flight import InFlightDecision, InFlightDecisions, has_come_true

_log = logging.getLogger("pumice.kube")


def request_of(bind: Bind, pod: Pod, gpu_memory_mib: int = 0, backoff_limit: int | None = None) -> BindRequest:
    """Return the request for the binder. ``gpu_memory_mib``: of each device of the node."""
    namespace, _, name = bind.pod.partition("/")
    groups, share = bind.context.get(GPU_GROUPS, ()), pod.spec.gpu_share
    request = BindRequest(
        *(namespace, name, name, bind.node), backoff_limit=backoff_limit, pod_uid=bind.uid, numa_zones=_zones_of(bind)
    )
    if share is not None and (share.fraction or share.memory_mib):
        return replace(
            request,
            received_type=FRACTION,
            gpu_count=share.devices,
            gpu_portion=gpu_portion(share, gpu_memory_mib),
            gpu_groups=tuple(map(str, groups if isinstance(groups, list | tuple) else ())),
        )
    if any(each.startswith(MIG_PREFIX) for each in pod.spec.request.scalars or ()):
        return replace(request, received_type=MIG_INSTANCE)
    count = int(pod.spec.request.get(GPU_RESOURCE) / 1000.0)
    return replace(request, received_type=REGULAR, gpu_count=count, gpu_portion="1" if count else "")


def _zones_of(bind: Bind) -> str:
    given = device_grant(bind)
    return dict(given.annotations).get(PREDICTED_ANNOTATION, "") if given is not None else ""


class RequestBinder:
    """Carries out binds like ``binding.Binder``. ``backoff_limit``: further attempts of the binder, None for none.

    ``timed``, ``reached`` and ``why_not``: as there. ``failed``: called with a pod whose request failed finally, its
    UID, and why.
    """

    def __init__(
        self,
        client: Client,
        cache: InformerCache,
        in_flight: InFlightDecisions,
        recorder: EventRecorder,
        timed: Callable[[str, float], None],
        reached: Callable[[str, Bind], None],
        failed: Callable[[str, str, str], None],
        backoff_limit: int | None = None,
        why_not: Callable[[InFlightDecision], str] = lambda _: "",
    ) -> None:
        self._why_not = why_not
        self._client, self._cache, self._in_flight, self._recorder = client, cache, in_flight, recorder
        self._timed, self._reached, self._failed, self._backoff_limit = timed, reached, failed, backoff_limit
        self._codec = Codec(BIND_REQUESTS, Decoder())
        self._known: dict[str, BindRequest] = {}
        self._lost: dict[str, str] = {}  # request -> its node, which did not exist
        self.deletes: WorkQueue[BindRequest] = WorkQueue("bindrequests", self._delete, workers=4, waiting_max=100_000)

    # -- decisions -----------------------------------------------------------------------------------------------------

    async def send(self, entry: InFlightDecision) -> bool:
        """Create the request. Return False if that failed, or is unknown; then read the pod and ``settle``."""
        bind = _bind_of(entry)
        pod, node = self._cache.pods.get(bind.pod), self._cache.nodes.get(bind.node)
        if not self._in_flight.has(entry) or pod is None:
            return True  # the pod has changed while this waited
        if entry.accepted is None and (why := self._why_not(entry)):
            give_back_outdated(entry, self._in_flight, self._cache, OutdatedError(why))
            return True
        memory = node_gpu_memory(node.labels) if node is not None else 0
        request, began = request_of(bind, pod, memory, self._backoff_limit), time.perf_counter()
        try:
            claims = await claims_to_be_given(self._client, bind)
            extended = await extended_to_be_given(self._client, bind)
            await self._create(replace(request, claims=claims, extended_claim=extended))
        except (KubeError, ClaimProblem) as error:
            entry.why = f"failed to ask for a binding to node {bind.node}: {error}"
            if not (isinstance(error, ApiError) and error.namespace_goes):
                _log.warning("pod %s: %s", bind.pod, entry.why)
            return False
        self._timed("Bind", time.perf_counter() - began)
        self._asked(entry, bind)
        return True

    async def _create(self, request: BindRequest) -> None:
        """Create a request. An old one with its name, about another pod or failed, is deleted first. Raises:
        KubeError."""
        body = kai_bind_request(request)
        body["metadata"]["labels"] = {"pod-name": request.pod[:63], "selected-node": request.node[:63]}
        for last in (False, True):
            try:
                await self._client.post(BIND_REQUESTS.namespace_path(request.namespace), body)
                return
            except ApiError as error:
                if error.reason != "AlreadyExists" or last:
                    raise
            there = await self._read(request.key)
            if there is not None and there.is_live and (there.node, there.pod_uid) == (request.node, request.pod_uid):
                return
            if there is not None:
                await self._client.delete(BIND_REQUESTS.path(there.key), uid=there.uid)

    async def settle(self, entry: InFlightDecision, pod: Pod | None) -> bool:
        """Handle a decision with an unknown outcome. ``pod``: its present state, None if gone or replaced.

        Return True if the task must be given back. Raises: KubeError.
        """
        bind = _bind_of(entry)
        if pod is None:
            self._in_flight.end(entry)
            self._cache.apply_end(bind.pod, bind.uid)
            return False
        if has_come_true(bind, pod):
            self._in_flight.end(entry)
            self._cache.apply_read(pod)
            return False
        request = await self._read(bind.pod)
        if request is not None and request.is_live and request.node == bind.node and request.is_about(bind.uid):
            self._asked(entry, bind)
            self._cache.apply([Seen(request)])
            self._in_flight.end(entry)
            return False
        entry.why = entry.why or "the BindRequest does not exist"
        return self._in_flight.end(entry)

    def _asked(self, entry: InFlightDecision, bind: Bind) -> None:
        if entry.accepted is None:
            self._in_flight.accept(entry)
            self._reached("Bound", bind)
            self._recorder.record(
                about_pod(bind), "Normal", "Scheduled", f"KAI's binder is asked to bind it to {bind.node}"
            )

    async def _read(self, key: str) -> BindRequest | None:
        try:
            found = self._codec.read(await self._client.request("GET", BIND_REQUESTS.path(key))).value
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        except BadObject:
            return None
        return found if isinstance(found, BindRequest) else None

    # -- what is heard -------------------------------------------------------------------------------------------------

    def observe(self, request: BindRequest) -> bool:
        """Note a new or changed request. Return True if that only confirms a decision."""
        before = self._known.get(request.key)
        self._known[request.key] = request
        entry = self._in_flight.of(request.pod_key)
        pod = self._cache.pods.get(request.pod_key)
        if request.is_live:
            ours = entry is not None and isinstance(entry.decision, Bind) and entry.decision.node == request.node
            if entry is not None and ours and request.is_about(entry.decision.uid):
                self._in_flight.end(entry)
                return True
            return before is not None and before.is_live
        if before is None or before.is_live:
            if pod is not None and request.is_about(pod.uid) and not pod.node_name:
                self._failed(pod.key, pod.uid, f"KAI's binder could not bind it to {request.node}: {request.reason}")
            self.deletes.put(request.key, request)
        return False

    def gone(self, key: str) -> None:
        """Note that a request no longer exists."""
        self._known.pop(key, None)

    def sweep(self) -> None:
        """Delete requests that cannot be carried out: their nodes did not exist at the last sweep either. Their pods
        are free again."""
        nodes, pods = self._cache.nodes, self._cache.pods
        lost = {
            request.key: request.node
            for request in self._known.values()
            if nodes and request.node not in nodes and not ((pod := pods.get(request.pod_key)) and pod.node_name)
        }
        for key in [key for key, node in lost.items() if self._lost.get(key) == node]:
            self.deletes.put(key, self._known[key])
        self._lost = lost

    async def _delete(self, request: BindRequest) -> None:
        """Delete a request. If that fails, it is seen again at the next list, and requested again where its pod is."""
        try:
            await self._client.delete(BIND_REQUESTS.path(request.key), uid=request.uid)
        except KubeError as error:
            if not (isinstance(error, ApiError) and error.status in (404, 409)):
                _log.warning("BindRequest %s could not be deleted: %s", request.key, error)


def _bind_of(entry: InFlightDecision) -> Bind:
    assert isinstance(entry.decision, Bind)
    return entry.decision
