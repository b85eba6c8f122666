"""extender: ask an external program over HTTP, verb by verb. Source: Volcano extender plugin.

Time and size of answers are limited by the runtime (``framework.outside``). Their contents are validated here; an
invalid answer counts as none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

import numpy as np

from pumice.api import (
    F64,
    NOW,
    PODS,
    ROWS,
    Bool,
    Code,
    FilterResult,
    Job,
    NodeRows,
    PodSpec,
    Queue,
    Refusal,
    Resource,
    Session,
    Task,
    TaskRows,
    TaskRun,
    Unfit,
    Vote,
    plugin,
    points,
)
from pumice.framework.cycle.ports import OutsideError
from pumice.model.plain_words import kind_of
from pumice.volcano import extender_objects as objects
from pumice.volcano.durations import argument_s, duration_problems

# Bounded, because the cycle waits for each answer: a long timeout would stop the scheduling of all jobs.
TIMEOUT, TIMEOUT_MAX_S = "1s", 30.0
#: Seconds after which the program is asked again although nothing has changed.
AGAIN_S = 5.0
# Texts of the program end up in conditions and logs, so their length is bounded.
_SHOWN_MAX = 200
_SCORE_MAX = 1e9
# ASCII only, without a user or a query: the address comes from a policy file, and the scheduler opens it.
_URL, _URL_MAX = re.compile(r"https?://[\w.\-\[\]:]+(?:/[\w.\-/%]*)?", re.ASCII), 2048


@plugin("extender", keeps="python", separator=".")
class Extender:
    """Forward hooks to an HTTP server.

    ``extender.urlPrefix``: address, to which the verb of a hook is appended; a hook without a verb is off.
    ``extender.httpTimeout``: time for one answer (``1s``). ``extender.ignorable``: without an answer, go on as if the
    program had agreed. ``extender.managedResources``: ask only about pods with requests for one of these; empty: about
    all pods.
    """

    def __init__(
        self,
        ssn: Session,
        *,
        extender_urlPrefix: str = "",
        extender_httpTimeout: str = TIMEOUT,
        extender_ignorable: bool = False,
        extender_managedResources: Any = None,
        extender_onSessionOpenVerb: str = "",
        extender_onSessionCloseVerb: str = "",
        extender_predicateVerb: str = "",
        extender_prioritizeVerb: str = "",
        extender_preemptableVerb: str = "",
        extender_reclaimableVerb: str = "",
        extender_queueOverusedVerb: str = "",
        extender_jobEnqueueableVerb: str = "",
        extender_jobEnqueuedVerb: str = "",
        extender_jobReadyVerb: str = "",
        extender_allocateFuncVerb: str = "",
        extender_deallocateFuncVerb: str = "",
    ) -> None:
        self.ssn, self._prefix, self._ignorable = ssn, extender_urlPrefix.rstrip("/"), extender_ignorable
        self._within_s = _seconds(extender_httpTimeout)
        self._managed = _names(extender_managedResources)
        # The keys are names of methods, from which ``unused_hooks`` takes those to leave out.
        self._verbs = {
            "close": extender_onSessionCloseVerb,
            "predicate": extender_predicateVerb,
            "prioritize": extender_prioritizeVerb,
            "preemptable": extender_preemptableVerb,
            "reclaimable": extender_reclaimableVerb,
            "overused": extender_queueOverusedVerb,
            "job_enqueueable": extender_jobEnqueueableVerb,
            "job_enqueued": extender_jobEnqueuedVerb,
            "job_ready": extender_jobReadyVerb,
            "on_allocate": extender_allocateFuncVerb,
            "on_deallocate": extender_deallocateFuncVerb,
        }
        opened = not extender_onSessionOpenVerb or self._opens(extender_onSessionOpenVerb)
        # Quirk of Volcano, kept on purpose: if the program does not answer here and is not ignorable, it is asked
        # nothing in this session, as if the policy did not name the plugin.
        self.unused_hooks = tuple(hook for hook, verb in self._verbs.items() if not verb or not opened)

    @staticmethod
    def problems(
        *, extender_urlPrefix: str, extender_httpTimeout: str, extender_managedResources: Any, **_: Any
    ) -> Iterator[str]:
        """Yield problems with the arguments."""
        if extender_urlPrefix and not _is_url(extender_urlPrefix):
            found = extender_urlPrefix[:80]
            yield f"argument extender.urlPrefix: found {found!r}, wanted http:// or https:// and a host"
        yield from duration_problems("extender.httpTimeout", extender_httpTimeout, TIMEOUT)
        given = extender_managedResources
        if given is not None and not (isinstance(given, list) and all(isinstance(name, str) for name in given)):
            yield f"argument extender.managedResources: found {kind_of(given)}, wanted a list of names"

    def wakes_at(self) -> float | None:
        """Return when to ask again, since the program may change its answers at any time."""
        return None if self.ssn.is_idle or not any(self._verbs.values()) else self.ssn.now + AGAIN_S

    # -- asking -------------------------------------------------------------------------------------------------------

    def _ask(self, verb: str, **question: object) -> Mapping[str, Any]:
        """Send a question and return the answer.

        Raises: OutsideError.
        """
        # An error like any other of the program, so that ``ignorable`` decides about a missing address too.
        if not _is_url(self._prefix):
            raise OutsideError("extender.urlPrefix is not an address")
        return self.ssn.outside.ask(f"{self._prefix}/{verb}", question, self._within_s)

    def _opens(self, verb: str) -> bool:
        """Notify the program of the session. Return True if its hooks are on."""
        tables = self.ssn.tables
        try:
            self._ask(
                verb,
                Jobs={tables.jobs.uids[row]: objects.job(tables, row) for row in self.ssn.live_jobs.tolist()},
                Nodes={name: objects.node(tables, row) for row, name in enumerate(tables.nodes.facts.names)},
                Queues={name: objects.queue(tables, row) for row, name in enumerate(tables.queues.names)},
                # Present and empty: the fields of Volcano's structure, which a program may decode strictly.
                NamespaceInfo={},
                RevocableNodes={},
                NodeList=[],
            )
        except OutsideError:
            return self._ignorable
        return True

    def _concerns(self, task: Task) -> bool:
        """Return True if the program is asked about the task."""
        return concerns(self._managed, task.pod.spec)

    # -- hooks --------------------------------------------------------------------------------------------------------

    # The clock is named as read so that no answer outlives its cycle: the program may answer differently although
    # nothing in the cluster has changed.
    @points.predicate(reads=(ROWS, PODS, NOW))
    def predicate(self, task: Task, nodes: NodeRows) -> FilterResult | None:
        """Reject nodes that the program rejects. Shape (rows,)."""
        if not self._concerns(task):
            return None
        codes = np.zeros(len(nodes), dtype=np.int32)
        why: dict[Unfit, int] = {}
        # Encoded once for all nodes, since it is the same in every question.
        asked, lost = objects.task(task.tables, task.row), ""
        for i, row in enumerate(nodes.rows.tolist()):
            unfit = None
            try:
                if not lost:
                    answer = self._ask(self._verbs["predicate"], task=asked, node=objects.node(task.tables, row))
                    unfit = _unfit(answer.get("status") or answer)
            except OutsideError as error:
                lost = f"extender predicate failed: {str(error)[:_SHOWN_MAX]}"
            # After the first missing answer no further node is asked about: with many nodes, each would wait for the
            # timeout.
            if lost and not self._ignorable:
                unfit = Unfit(lost, Code.ERROR)
            if unfit is not None:
                codes[i] = why.setdefault(unfit, len(why) + 1)
        return FilterResult(codes, ((), *((unfit,) for unfit in why)))

    @points.batch_node_order(reads=(ROWS, PODS, NOW))
    def prioritize(self, task: Task, nodes: NodeRows) -> F64 | None:
        """Return the program's scores, 0 for nodes that it does not name. Shape (rows,)."""
        if not self._concerns(task):
            return None
        rows, names = nodes.rows.tolist(), task.tables.nodes.facts.names
        try:
            listed = [objects.node(task.tables, row) for row in rows]
            answer = self._ask(self._verbs["prioritize"], task=objects.task(task.tables, task.row), nodes=listed)
        except OutsideError:
            # All nodes equal instead of an error, so that a program that fails does not stop placement.
            return np.zeros(len(nodes))
        scores = answer.get("nodeScore")
        scores = scores if isinstance(scores, dict) and not answer.get("errorMessage") else {}
        return np.array([_score(scores.get(names[row])) for row in rows])

    @points.preemptable(reads=(ROWS, PODS, NOW))
    def preemptable(self, evictor: Task, candidates: TaskRows) -> Bool | None:
        """Return the candidates that the program names, or None."""
        return self._victims("preemptable", evictor, candidates)

    @points.reclaimable(reads=(ROWS, PODS, NOW))
    def reclaimable(self, evictor: Task, candidates: TaskRows) -> Bool | None:
        """Return the candidates that the program names, or None."""
        return self._victims("reclaimable", evictor, candidates)

    def _victims(self, verb: str, evictor: Task, candidates: TaskRows) -> Bool | None:
        """Return the candidates that the program names, or None if it abstains. Shape (rows,)."""
        if not self._concerns(evictor):
            return None
        tables = evictor.tables
        evictees = [objects.task(tables, row) for row in candidates.rows.tolist()]
        try:
            answer = self._ask(self._verbs[verb], evictor=objects.task(tables, evictor.row), evictees=evictees)
        except OutsideError:
            return None if self._ignorable else np.zeros(len(candidates), dtype=bool)
        if answer.get("status") == Vote.ABSTAIN:
            return None
        named = answer.get("victims") if answer.get("status") == Vote.PERMIT else ()
        uids = {each.get("UID") for each in named or () if isinstance(each, dict)}
        return np.array([each["UID"] in uids for each in evictees], dtype=bool)

    @points.overused(reads=(NOW,))
    def overused(self, queue: Queue) -> bool:
        """Return the program's answer; without one, True unless that is ignorable."""
        try:
            answer = self._ask(self._verbs["overused"], queue=objects.queue(queue.tables, queue.row))
        except OutsideError:
            return not self._ignorable
        return answer.get("overused") is True

    @points.job_enqueueable(reads=(ROWS, PODS, NOW))
    def job_enqueueable(self, job: Job) -> Vote:
        """Return the program's vote."""
        return self._vote("job_enqueueable", job)

    @points.job_enqueued
    def job_enqueued(self, job: Job) -> None:
        """Notify the program of an admission."""
        self._vote("job_enqueued", job)

    def _vote(self, verb: str, job: Job) -> Vote:
        """Return the program's vote on a job."""
        try:
            answer = self._ask(self._verbs[verb], job=objects.job(job.tables, job.row))
        except OutsideError:
            return Vote.PERMIT if self._ignorable else Vote.REJECT
        status = answer.get("status")
        # The exact type, because JSON's ``true`` is an int in Python and would permit.
        return Vote(status) if type(status) is int and status in (-1, 0, 1) else Vote.REJECT

    @points.job_ready(reads=(ROWS, PODS, NOW))
    def job_ready(self, job: Job) -> bool:
        """Return the program's answer about a job."""
        try:
            answer = self._ask(self._verbs["job_ready"], job=objects.job(job.tables, job.row))
        except OutsideError:
            # Quirk of Volcano, kept on purpose: without an answer the job is ready, unless that is ignorable.
            return not self._ignorable
        return answer.get("status") is True

    @points.on_allocate
    def on_allocate(self, run: TaskRun) -> Refusal | None:
        """Notify the program of placements, which it may refuse."""
        return self._notify("on_allocate", run)

    @points.on_deallocate
    def on_deallocate(self, run: TaskRun) -> Refusal | None:
        """Notify the program of tasks that left."""
        return self._notify("on_deallocate", run)

    def _notify(self, verb: str, run: TaskRun) -> Refusal | None:
        """Notify the program of each task, and return a refusal if it gives one."""
        why = ""
        for row in run.rows:
            if not concerns(self._managed, run.tables.tasks.pods[row].spec):
                continue
            try:
                answer = self._ask(self._verbs[verb], task=objects.task(run.tables, row))
                why = why or str(answer.get("errorMessage") or "")[:_SHOWN_MAX]
            except OutsideError as error:
                why = why or str(error)
        return Refusal(f"extender: {why}") if why and not self._ignorable else None

    @points.session_close
    def close(self) -> None:
        """Notify the program of the end of the session."""
        try:
            self._ask(self._verbs["close"])
        except OutsideError:
            # The session is over, so no decision rests on the answer.
            return


def concerns(managed: frozenset[str], spec: PodSpec) -> bool:
    """Return True if a pod requests, or is limited in, one of the resources, or if none is named."""
    return not managed or any(names_one(managed, each) for each in (spec.request, spec.limit))


def names_one(managed: frozenset[str], resource: Resource) -> bool:
    """Return True if an amount contains one of the resources."""
    named = set(resource.scalars or ()) | {name for name in ("cpu", "memory") if resource.get(name)}
    return not named.isdisjoint(managed)


def _unfit(status: object) -> Unfit | None:
    """Return the reason in an answer about a node, or None."""
    message = status.get("message") if isinstance(status, dict) else "answered nonsense"
    if not message:
        return None
    code = status.get("code") if isinstance(status, dict) else None
    known = next((each for each in Code if each and type(code) is int and each == code), Code.ERROR)
    return Unfit(str(message)[:_SHOWN_MAX], known)


def _score(value: object) -> float:
    """Return a valid score, or 0."""
    # An infinite or huge score would make the scores of all other plugins vanish in rounding.
    if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and abs(value) <= _SCORE_MAX:
        return float(value)
    return 0.0


def _is_url(text: str) -> bool:
    """Return True for a valid address."""
    return len(text) <= _URL_MAX and _URL.fullmatch(text) is not None


def _seconds(text: str) -> float:
    """Return a bounded timeout, or the default."""
    return min(argument_s(text, TIMEOUT) or argument_s(TIMEOUT, TIMEOUT), TIMEOUT_MAX_S)


def _names(given: object) -> frozenset[str]:
    """Return the names in a list."""
    return frozenset(each for each in given if isinstance(each, str)) if isinstance(given, list) else frozenset()
