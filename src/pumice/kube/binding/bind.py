"""Bind pods: hooks before the binding, with undo, the binding itself, and what to do if its outcome is unknown."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from pumice.kube.api.client import Client
from pumice.kube.api.errors import ApiError, KubeError, clean
from pumice.kube.api.kinds import PODS
from pumice.kube.informers.informer_cache import InformerCache
from pumice.kube.writers.event_recorder import EventRecorder
from pumice.kube.writers.pod_status import SCHEDULER_ERROR, PodStatuses
from pumice.model.decisions import DEVICES, GPU_GROUPS, Bind, PodNotice
from pumice.model.devices.shared_devices import DeviceGrant
from pumice.model.pod import Pod
from pumice.runtime.in_flight import InFlightDecision, InFlightDecisions, has_come_true

_log = logging.getLogger("pumice.kube")


class PreBind(Protocol):
    """Work on the API server before a pod is bound, such as binding its volumes."""

    name: str

    async def prepare(self, bind: Bind) -> Mapping[str, str] | None:
        """Do the work. Data of plugins is in ``bind.context``. Return annotations for the pod.

        Raises: any Exception: the pod is not bound, and what was done is undone.
        """
        ...

    def done(self, bind: Bind) -> None:
        """Note that the pod is bound."""
        ...

    async def undo(self, bind: Bind) -> None:
        """Undo what ``prepare`` did, because the pod was not bound. A ``prepare`` that raises must undo its own
        part."""
        ...


def _ignore(stage: str, what: object) -> None:
    """Measure nothing."""


class Binder:
    """Carries out binds. Nothing is sent twice: if the outcome of a request is unknown, the pod is read first.

    ``timed``: called with a stage (``PreBind``, ``Bind``) and its seconds. ``reached``: called with a stage
    (``PreBound``, ``Bound``) and the bind. ``devices``: a further hook, for pods that share devices. ``why_not``:
    returns why a bind must not be sent any more, "" if it may be.
    """

    def __init__(
        self,
        client: Client,
        cache: InformerCache,
        in_flight: InFlightDecisions,
        recorder: EventRecorder,
        statuses: PodStatuses,
        hooks: Sequence[PreBind] = (),
        timed: Callable[[str, float], None] = _ignore,
        reached: Callable[[str, Bind], None] = _ignore,
        devices: PreBind | None = None,
        why_not: Callable[[InFlightDecision], str] = lambda _: "",
    ) -> None:
        self._client, self._cache, self._in_flight = client, cache, in_flight
        self._recorder, self._statuses, self._hooks = recorder, statuses, tuple(hooks)
        self._timed, self._reached, self._why_not = timed, reached, why_not
        self._with_devices = self._hooks if devices is None else (*self._hooks, devices)

    async def send(self, entry: InFlightDecision) -> bool:
        """Prepare and bind. Return False if it failed, or if that is unknown; then read the pod and ``settle``."""
        bind = _bind_of(entry)
        if not self._in_flight.has(entry):
            return True  # the pod has changed while this waited
        try:
            self._must_hold(entry)
            annotations = given_devices(bind)
            if self._hooks_for(bind):
                annotations |= await self._prepare(entry, bind)
                self._must_hold(entry)  # again, because the hooks may have taken seconds
            began = time.perf_counter()
            await self._client.post(PODS.path(bind.pod, "binding"), _binding(bind, annotations))
            self._timed("Bind", time.perf_counter() - began)
        except OutdatedError as error:
            await self._undo(entry, bind)
            give_back_outdated(entry, self._in_flight, self._cache, error)
            return True
        except _NotPrepared as error:
            entry.why = f"execute preBind for pod {bind.pod} failed: {error}, resync the task"
        except KubeError as error:
            entry.why = f"failed to bind to node {bind.node}: {error}"
            if isinstance(error, ApiError) and error.namespace_goes:
                return False  # all its pods go with it, and no log line is needed for each
        else:
            self._bound(entry, bind)
            return True
        _log.warning("pod %s: %s", bind.pod, entry.why)
        return False

    def _must_hold(self, entry: InFlightDecision) -> None:
        """Raise OutdatedError if a bind must not be sent any more."""
        if entry.accepted is None and (why := self._why_not(entry)):
            raise OutdatedError(why)

    async def settle(self, entry: InFlightDecision, pod: Pod | None) -> bool:
        """Handle a decision with an unknown outcome. ``pod``: its present state, None if gone or replaced.

        Return True if the task must be given back.
        """
        bind = _bind_of(entry)
        if pod is not None and pod.node_name == bind.node:
            self._bound(entry, bind)
        else:
            await self._undo(entry, bind)
        if pod is not None and not has_come_true(bind, pod) and self._in_flight.has(entry):
            entry.why = entry.why or "the binding was not seen to happen"
            await self._statuses.say(pod, PodNotice(pod.key, pod.uid, SCHEDULER_ERROR, entry.why))
            return self._in_flight.end(entry)  # unless an event arrived meanwhile
        self._in_flight.end(entry)
        if pod is None:
            self._cache.apply_end(bind.pod, bind.uid)
        else:
            self._cache.apply_read(pod)
        return False

    def _hooks_for(self, bind: Bind) -> tuple[PreBind, ...]:
        return self._with_devices if GPU_GROUPS in bind.context else self._hooks

    def _bound(self, entry: InFlightDecision, bind: Bind) -> None:
        if entry.accepted is not None:
            return  # sent again, because no event confirmed it
        for hook in self._hooks_for(bind):
            hook.done(bind)
        self._in_flight.accept(entry)
        self._reached("Bound", bind)
        self._recorder.record_bound(bind)

    async def _prepare(self, entry: InFlightDecision, bind: Bind) -> dict[str, str]:
        """Run the hooks in order.

        Raises: _NotPrepared.
        """
        annotations: dict[str, str] = {}
        began = time.perf_counter()
        for hook in self._hooks_for(bind):
            try:
                annotations |= await hook.prepare(bind) or {}
            except Exception as error:  # a foreign hook may raise anything; only this pod is not bound
                raise _NotPrepared(clean(f"{hook.name}: {error}")) from error
            entry.prepared += 1
        self._timed("PreBind", time.perf_counter() - began)
        self._reached("PreBound", bind)
        return annotations

    async def _undo(self, entry: InFlightDecision, bind: Bind) -> None:
        """Let the hooks that ran undo their work, the last one first."""
        while entry.prepared:
            entry.prepared -= 1
            hook = self._hooks_for(bind)[entry.prepared]
            try:
                await hook.undo(bind)
            except Exception as error:  # the others must still be undone
                _log.warning("pod %s: %s could not undo what it did: %s", bind.pod, hook.name, clean(str(error)))


class OutdatedError(Exception):
    """What a bind was decided on no longer holds."""


def give_back_outdated(
    entry: InFlightDecision, in_flight: InFlightDecisions, cache: InformerCache, why: OutdatedError
) -> None:
    """Give a bind back that was not sent, so that the next cycle decides again. The pod is not at fault, so it does not
    wait longer."""
    _log.info("pod %s: not bound to node %s: %s", entry.decision.pod, entry.decision.node, why)
    if in_flight.end(entry):
        cache.give_back(entry.decision)


class _NotPrepared(Exception):
    """A hook before the binding failed."""


def _bind_of(entry: InFlightDecision) -> Bind:
    assert isinstance(entry.decision, Bind)
    return entry.decision


def given_devices(bind: Bind) -> dict[str, str]:
    """Return the pod's annotations for shared devices. They are sent with the binding: the API server writes them with
    the node or not at all, so there is nothing to undo."""
    given = bind.context.get(DEVICES)
    return dict(given.annotations) if isinstance(given, DeviceGrant) else {}


def _binding(bind: Bind, annotations: Mapping[str, str]) -> dict[str, Any]:
    """Return a binding. The UID is a precondition, so that another pod with the same name is not bound."""
    namespace, _, name = bind.pod.partition("/")
    metadata: dict[str, Any] = {"namespace": namespace, "name": name, "uid": bind.uid}
    if annotations:
        metadata["annotations"] = dict(annotations)
    target = {"apiVersion": "v1", "kind": "Node", "name": bind.node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
