"""Binding: hooks before it with undo, the binding itself, and what to do when it is not known what came of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from pumice.kube.api.client import Client
from pumice.kube.api.errors import ApiError, KubeError, clean
from pumice.kube.api.kinds import PODS
from pumice.kube.binding.in_flight import InFlightDecision, InFlightDecisions, has_come_true
from pumice.kube.informers.informer_cache import InformerCache
from pumice.kube.writers.event_recorder import EventRecorder
from pumice.kube.writers.pod_status import SCHEDULER_ERROR, PodStatuses
from pumice.model.decisions import DEVICES, GPU_GROUPS, Bind, PodNotice
from pumice.model.devices.shared_devices import DeviceGrant
from pumice.model.pod import Pod

_log = logging.getLogger("pumice.kube")


class PreBind(Protocol):
    """Work that must be done on the API server before a pod is bound, such as binding its volumes."""

    name: str

    async def prepare(self, bind: Bind) -> Mapping[str, str] | None:
        """Do it. What plugins handed on for this is in ``bind.context``. Returns annotations for the pod.

        Raises: any Exception: the pod is not bound, and what was done is undone.
        """
        ...

    def done(self, bind: Bind) -> None:
        """The pod is bound."""
        ...

    async def undo(self, bind: Bind) -> None:
        """Take back what ``prepare`` did: the pod was not bound. A ``prepare`` that raises has to undo its own part."""
        ...


def _nobody(stage: str, what: object) -> None:
    """Nobody measures."""


class Binder:
    """Carries binds out. Nothing is sent twice: where it is not known what came of a request, the pod is read first.

    ``timed`` is told stages (``PreBind``, ``Bind``) and how many seconds they took, ``reached`` which bind has come to
    which (``PreBound``, ``Bound``). ``devices``: a further hook, for pods that share devices.
    """

    def __init__(
        self,
        client: Client,
        truth: InformerCache,
        flights: InFlightDecisions,
        tell: EventRecorder,
        statuses: PodStatuses,
        hooks: Sequence[PreBind] = (),
        timed: Callable[[str, float], None] = _nobody,
        reached: Callable[[str, Bind], None] = _nobody,
        devices: PreBind | None = None,
    ) -> None:
        self._client, self._truth, self._flights = client, truth, flights
        self._tell, self._statuses, self._hooks = tell, statuses, tuple(hooks)
        self._timed, self._reached = timed, reached
        self._with_devices = self._hooks if devices is None else (*self._hooks, devices)

    async def send(self, flight: InFlightDecision) -> bool:
        """Prepare and bind. False: it failed, or it is not known whether it did; read the pod and ``settle``."""
        bind = _bind_of(flight)
        if not self._flights.flies(flight):
            return True  # the pod has changed while this waited
        try:
            annotations = given_devices(bind)
            if self._hooks_for(bind):
                annotations |= await self._prepare(flight, bind)
            began = time.perf_counter()
            await self._client.post(PODS.path(bind.pod, "binding"), _binding(bind, annotations))
            self._timed("Bind", time.perf_counter() - began)
        except _NotPrepared as error:
            flight.why = f"execute preBind for pod {bind.pod} failed: {error}, resync the task"
        except KubeError as error:
            flight.why = f"failed to bind to node {bind.node}: {error}"
            if isinstance(error, ApiError) and error.namespace_goes:
                return False  # with all its pods: not worth a line each
        else:
            self._bound(flight, bind)
            return True
        _log.warning("pod %s: %s", bind.pod, flight.why)
        return False

    async def settle(self, flight: InFlightDecision, pod: Pod | None) -> bool:
        """Deal with a flight of which the outcome was not known. ``pod`` is what it is; None: gone, or another one.

        Returns whether the task is to be given back.
        """
        bind = _bind_of(flight)
        if pod is not None and pod.node_name == bind.node:
            self._bound(flight, bind)
        else:
            await self._undo(flight, bind)
        if pod is not None and not has_come_true(bind, pod) and self._flights.flies(flight):
            flight.why = flight.why or "the binding was not seen to happen"
            await self._statuses.say(pod, PodNotice(pod.key, pod.uid, SCHEDULER_ERROR, flight.why))
            return self._flights.end(flight)  # unless something was heard meanwhile
        self._flights.end(flight)
        if pod is None:
            self._truth.hear_of_end(bind.pod, bind.uid)
        else:
            self._truth.hear_of(pod)
        return False

    def _hooks_for(self, bind: Bind) -> tuple[PreBind, ...]:
        return self._with_devices if GPU_GROUPS in bind.context else self._hooks

    def _bound(self, flight: InFlightDecision, bind: Bind) -> None:
        if flight.landed is not None:
            return  # asked again, because nobody heard of it
        for hook in self._hooks_for(bind):
            hook.done(bind)
        self._flights.land(flight)
        self._reached("Bound", bind)
        self._tell.tell_bound(bind)

    async def _prepare(self, flight: InFlightDecision, bind: Bind) -> dict[str, str]:
        """Run the hooks in order.

        Raises: _NotPrepared.
        """
        annotations: dict[str, str] = {}
        began = time.perf_counter()
        for hook in self._hooks_for(bind):
            try:
                annotations |= await hook.prepare(bind) or {}
            except Exception as error:  # whatever a hook of somebody else's does: this pod is not bound, the others are
                raise _NotPrepared(clean(f"{hook.name}: {error}")) from error
            flight.prepared += 1
        self._timed("PreBind", time.perf_counter() - began)
        self._reached("PreBound", bind)
        return annotations

    async def _undo(self, flight: InFlightDecision, bind: Bind) -> None:
        """Have the hooks that ran take back what they did, last first."""
        while flight.prepared:
            flight.prepared -= 1
            hook = self._hooks_for(bind)[flight.prepared]
            try:
                await hook.undo(bind)
            except Exception as error:  # the others must be undone all the same
                _log.warning("pod %s: %s could not undo what it did: %s", bind.pod, hook.name, clean(str(error)))


class _NotPrepared(Exception):
    """A hook before binding failed."""


def _bind_of(flight: InFlightDecision) -> Bind:
    assert isinstance(flight.decision, Bind)
    return flight.decision


def given_devices(bind: Bind) -> dict[str, str]:
    """What the pod is to say of shared devices. It rides along with the binding itself, which the API server writes on
    the pod together with the node, or not at all: there is nothing to undo."""
    given = bind.context.get(DEVICES)
    return dict(given.annotations) if isinstance(given, DeviceGrant) else {}


def _binding(bind: Bind, annotations: Mapping[str, str]) -> dict[str, Any]:
    """The uid is a precondition: another pod of the same name is not bound."""
    namespace, _, name = bind.pod.partition("/")
    metadata: dict[str, Any] = {"namespace": namespace, "name": name, "uid": bind.uid}
    if annotations:
        metadata["annotations"] = dict(annotations)
    target = {"apiVersion": "v1", "kind": "Node", "name": bind.node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
