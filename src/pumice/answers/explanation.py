"""The answer to "why does this job wait": a verdict, a reason that was checked, and ways out that were run."""

from __future__ import annotations

import re
from difflib import get_close_matches
from enum import StrEnum
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from pumice.answers.codes import Code, code_of
from pumice.answers.in_queue import Holder, Place, holders_of, place_of
from pumice.answers.reason import Reason, reason_of
from pumice.answers.steps.step import main_resource
from pumice.answers.unrecorded import meaning_of, sentence_of
from pumice.answers.waiting import TRIALS_MAX as WAIT_TRIALS_MAX
from pumice.answers.waiting import Wait, wait_of
from pumice.answers.ways import Way, ways_out
from pumice.answers.world import REASON_TRIALS_MAX, Draft, Trials, World, row_of, starts, waits_for_pods
from pumice.model.blockers import (
    CAPABILITY,
    OVERCOMMIT,
    Amount,
    Blocker,
    GangIncomplete,
    QueueLimit,
    Reserved,
    SearchCut,
)
from pumice.model.devices.gpu import GPU_RESOURCE
from pumice.model.pod import ENDED, Pod
from pumice.model.workloads.bare_pods import is_bare
from pumice.model.workloads.podgroup import PodGroup
from pumice.reasons.blockers import Blockers
from pumice.reasons.sentences import sentence
from pumice.reasons.shown_names import ShownNames
from pumice.reasons.words import verb

#: Cycles that are run for the ways out of one job at most.
WAYS_TRIALS_MAX = 240
#: Codes of what holds a job back on purpose.
_HOLDS = (Code.GATE, Code.QUEUE_CLOSED)
#: Codes that no change of the cluster lifts.
_WRONG = (Code.MISSING, Code.UNREADABLE)
_NAMES_MAX = 3
#: Of answers without a search.
_PROVEN = MappingProxyType({"is_checked": True, "is_smallest": True})


class Verdict(StrEnum):
    """The first word of an answer."""

    STARTS = "starts"
    NOT_NOW = "not now"
    NEVER = "never"
    HELD = "held"
    UNKNOWN = "unknown"


#: What a first word means: also a job that never starts as things are has ways out, each of them a change.
VERDICT_MEANINGS = MappingProxyType(
    {
        Verdict.STARTS: "it gets nodes in this cycle, or has nodes reserved that other pods are leaving",
        Verdict.NOT_NOW: "it starts once enough of the other jobs have ended",
        Verdict.NEVER: "as things are it would not start even without all other jobs: something has to be changed",
        Verdict.HELD: "a scheduling gate or a closed queue holds it back",
        Verdict.UNKNOWN: "no set of obstacles was found, or the search ended at its bound",
    }
)


class Part(Struct, frozen=True):
    """One obstacle. ``name``: which resource. ``sentence``: with numbers. ``blocker``: what the
    cycle recorded, None where it recorded nothing. ``holders``: of the limit that it is about."""

    code: Code
    name: str
    sentence: str
    blocker: Blocker | None = None
    holders: tuple[Holder, ...] = ()


class Explanation(Struct, frozen=True):
    """Why a job waits. ``parts``: without all of them it starts, without some of them it does not, if ``is_checked``,
    and without no fewer obstacles, if ``is_smallest``. ``not_because``: what was lifted in trials and need not be.
    ``trials``: how many cycles were run on changed clusters; ``is_cut``: they ran out, so that ways out may be missing.
    ``waited_s``: seconds since it was created, None where that is not known. ``place``: in its queue, None for a job
    that does not wait. ``each``: what every one of its pods asks for of the resource that it is counted in, in the
    units of the core, None where they differ. ``shown``: what people call the job. ``wait``: how long until it starts
    if nothing is changed, None where no end of a running job helps, or ways out were not asked for."""

    job: str
    verdict: Verdict
    queue: str
    pods: int
    waiting: int
    minimum: int
    parts: tuple[Part, ...] = ()
    not_because: tuple[str, ...] = ()
    ways: tuple[Way, ...] = ()
    trials: int = 0
    is_checked: bool = False
    is_smallest: bool = False
    is_cut: bool = False
    waited_s: float | None = None
    place: Place | None = None
    each: Amount | None = None
    shown: str = ""
    wait: Wait | None = None


class NoSuchJob(LookupError):
    """No job has this name. ``near``: names that are there and like it."""

    def __init__(self, name: str, near: list[str]) -> None:
        self.name, self.near = name, near
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        super().__init__(f"found no job {name!r} in the input{hint}")


#: What Volcano's controller puts after the name of a Job to name its PodGroup: the Job's uid.
_UID = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


def find_job(world: World, name: str, seen: frozenset[str] | None = None) -> str:
    """Return the key of the job that is meant: by its key, by its name or by what people call it if only one is called
    so, or by one of its pods. The name of a Volcano Job is that of its PodGroup too. ``seen``: in which namespaces,
    None for all.

    Raises: NoSuchJob.
    """
    keys = sorted({*world.groups, *world.pods_of})
    if seen is not None:
        keys = [key for key in keys if key.partition("/")[0] in seen]
    if name in keys:
        return name
    pod = world.objects.get((Pod, name))
    if isinstance(pod, Pod) and pod.group_key and (seen is None or pod.namespace in seen):
        return pod.group_key
    namespace, _, plain = name.rpartition("/")
    called = {key: world.shown(key) for key in keys if is_bare(key)}
    same = [
        key
        for key in keys
        if plain in (own := key.partition("/")[2], _UID.sub("", own), called.get(key, key).partition("/")[2])
    ]
    here = [key for key in same if namespace in ("", key.partition("/")[0])]
    if len(here) == 1:
        return here[0]
    # As a user knows them: a Job by its name, without the uid of its PodGroup.
    if same:
        raise NoSuchJob(name, list(dict.fromkeys(_UID.sub("", called.get(key, key)) for key in same))[:_NAMES_MAX])
    shown = list(dict.fromkeys(_UID.sub("", called.get(key, key)) for key in keys))
    # A name that is nearly the same in another namespace is meant rather than another name in this one.
    near = [
        key for cutoff in (0.8, 0.6) for key in shown if get_close_matches(plain, [key.partition("/")[2]], 1, cutoff)
    ]
    near[1:1] = get_close_matches(name, shown, _NAMES_MAX, 0.5)
    raise NoSuchJob(name, list(dict.fromkeys(near))[:_NAMES_MAX])


def explain(world: World, job: str, *, ways: bool = True, trials: Trials | None = None) -> Explanation:
    """Return why a job waits, by key, with ways out if they are wanted. ``trials``: of this world, to be shared by the
    questions about several jobs."""
    runs = trials or Trials(world, REASON_TRIALS_MAX)
    before = runs.run_count
    runs.most = before + REASON_TRIALS_MAX
    found = _Answer(runs, job)
    if not world.pods_of.get(job) and not waits_for_pods(world, job):
        return found.without_pods()
    row = row_of(runs.base.outcome, job)
    outside = world.outside.get(job)
    if row is None or (outside is not None and not starts(runs.base, world, job)):
        return found.outside(outside)
    waiting = [pod for pod in world.pods_of.get(job, ()) if not pod.node_name and pod.deletion is None]
    holds = [pod for pod in world.pods_of.get(job, ()) if pod.node_name]
    if starts(runs.base, world, job) or (holds and not waiting):
        return found.of_start(row)
    reason = reason_of(runs, job)
    verdict = found.verdict(reason, row)
    is_cut = runs.is_cut
    runs.most = runs.run_count + WAYS_TRIALS_MAX
    out = tuple(ways_out(runs, job, reason)) if ways else ()
    is_cut |= ways and runs.is_cut
    runs.most = runs.run_count + WAIT_TRIALS_MAX
    wait = wait_of(runs, job) if ways and verdict is Verdict.NOT_NOW else None
    return found.of_reason(verdict, reason, row, out, runs.run_count - before, is_cut=is_cut, wait=wait)


class _Answer:
    def __init__(self, trials: Trials, job: str) -> None:
        self.trials, self.world, self.job = trials, trials.world, job
        pods, group = self.world.pods_of.get(job, []), self.world.groups.get(job)
        self.facts = {
            "queue": group.queue if group is not None else "",
            "pods": len(pods),
            "waiting": sum(1 for pod in pods if not pod.node_name),
            "minimum": group.min_member if group is not None else 0,
            "each": _asked_by_each(pods),
            "shown": self.world.shown(job),
        }
        created = group.creation if group is not None else 0.0
        self._shown = ShownNames(trials.base.outcome.tables)
        self.waited_s = self.world.now - created if created and self.world.now >= created else None

    def _make(self, verdict: Verdict, parts: tuple[Part, ...] = (), **more: object) -> Explanation:
        return Explanation(job=self.job, verdict=verdict, parts=parts, **self.facts, **more)  # type: ignore[arg-type]

    def outside(self, why: Blocker | None) -> Explanation:
        """Answer for a job that no session sees, or not with all its pods."""
        if why is None:
            group = self.world.groups.get(self.job)
            text = "it has no pod that waits" if group is not None else "its PodGroup does not exist"
            return self._make(Verdict.UNKNOWN, (Part(Code.MISSING, "", text),))
        return self._make(Verdict.NEVER, (_part(why),), **_PROVEN)

    def without_pods(self) -> Explanation:
        """Answer for a job of which no pod exists, or none that has not ended."""
        group = self.world.groups.get(self.job)
        least = group.min_member if group is not None else 1
        return self._make(Verdict.NEVER, (_part(GangIncomplete("", 0, max(least, 1))),), **_PROVEN)

    def of_start(self, row: int) -> Explanation:
        """Answer for a job that starts in this cycle, or has started."""
        said = Blockers(self.trials.base.outcome).of(row)
        reserved = next((each for each in said if isinstance(each, Reserved)), None)
        placed = self.trials.base.placed.get(self.job, 0)
        if reserved is not None:
            return self._make(Verdict.STARTS, (self._part(reserved, Code.ROOM),), **_PROVEN)
        get = verb(placed, "gets", "get")
        text = f"{placed} of its pods {get} a node in this cycle" if placed else "each of its pods has a node"
        if waits_for_pods(self.world, self.job):
            text = "it is admitted in this cycle, and its pods are created then"
        return self._make(Verdict.STARTS, (Part(Code.OTHER, "", text),), **_PROVEN)

    def _part(self, said: Blocker, code: Code) -> Part:
        return Part(code, "", self._shown.sentence(said), said)

    def verdict(self, reason: Reason, row: int) -> Verdict:
        codes = {each.code for each in reason.lifts}
        if codes & set(_HOLDS):
            return Verdict.HELD
        said = Blockers(self.trials.base.outcome).of(row)
        if not reason.lifts:
            return Verdict.NEVER if code_of(said[0]) in _WRONG else Verdict.UNKNOWN
        if any(isinstance(each, SearchCut) for each in said) and not reason.is_minimal:
            return Verdict.UNKNOWN
        return Verdict.NOT_NOW if self._starts_alone() else Verdict.NEVER

    def _starts_alone(self) -> bool:
        """Return True if the job starts once all others have ended."""
        draft = Draft(self.world)
        for obj in self.world.objects.values():
            if isinstance(obj, Pod) and obj.group_key != self.job and obj.phase not in ENDED:
                draft.remove(Pod, obj.key)
            if isinstance(obj, PodGroup) and obj.key != self.job:
                draft.remove(PodGroup, obj.key)
        return starts(self.trials.run(draft), self.world, self.job)

    def of_reason(
        self,
        verdict: Verdict,
        reason: Reason,
        row: int,
        ways: tuple[Way, ...],
        trials: int,
        *,
        is_cut: bool,
        wait: Wait | None,
    ) -> Explanation:
        tables, said = self.trials.base.outcome.tables, Blockers(self.trials.base.outcome).of(row)
        parts = tuple(
            Part(
                each.code,
                each.name,
                self._shown.sentence(_of_cluster(blocker) if each.code is Code.ROOM else blocker)
                if blocker is not None
                else sentence_of(self.world, tables, self.job, each, row),
                blocker,
                holders_of(self.world, self.job, blocker),
            )
            for each, blocker in zip(reason.lifts, reason.blockers, strict=True)
        )
        return self._make(
            verdict,
            parts or tuple(self._part(each, code_of(each)) for each in said[:1]),
            not_because=tuple(meaning_of(each) for each in reason.tried if reason.lifts),
            ways=ways,
            trials=trials,
            is_checked=reason.is_minimal,
            is_smallest=reason.is_smallest,
            is_cut=is_cut,
            waited_s=self.waited_s,
            place=place_of(self.trials, self.job),
            wait=wait,
        )


def _of_cluster(limit: Blocker) -> Blocker:
    """Return a limit of a queue that is the size of the cluster as one of the cluster: no other queue would help."""
    if not isinstance(limit, QueueLimit) or limit.kind != CAPABILITY or not limit.exceeded:
        return limit
    is_cluster = all(each.total and each.limit >= each.total for each in limit.exceeded)
    return replace(limit, kind=OVERCOMMIT) if is_cluster else limit


def _asked_by_each(pods: list[Pod]) -> Amount | None:
    """Return what every one of some pods asks for of their main resource, None where they differ or ask for nothing."""
    specs = [pod.spec for pod in pods]
    name = GPU_RESOURCE if any(spec.gpu_share for spec in specs) else main_resource(specs)
    amounts = {spec.milli_gpus if name == GPU_RESOURCE else spec.request.get(name) for spec in specs}
    return Amount(name, amounts.pop()) if len(amounts) == 1 and any(amounts) else None


def _part(blocker: Blocker) -> Part:
    return Part(code_of(blocker), "", sentence(blocker), blocker)
