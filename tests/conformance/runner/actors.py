"""Who the calls of a case are about: objects by name, and those that only a call's arguments or words describe."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pumice.columns.views import Job, Task
from pumice.framework.cycle.session import Session
from pumice.model.events import Seen
from pumice.model.pod import Pod, PodSpec
from pumice.model.queue import PriorityClass, Queue
from pumice.model.resources import EMPTY
from pumice.model.status import TaskStatus
from pumice.model.usage import NodeUsage
from pumice.model.workloads.podgroup import PodGroup
from tests.conformance.runner.case import Case, Raw
from tests.conformance.runner.result import NotYet, Unusable
from tests.conformance.runner.world import World

#: Of no case: where the described ones live.
_NAMESPACE = "conformance"
#: A task whose job is not in the session.
STRANGER = f"{_NAMESPACE}/stranger"
_NO_JOB = "(a task of a job that does not exist)"
#: The job of an eviction that is described by its priority alone.
EVICTOR = f"{_NAMESPACE}/evictor"
_HYPERNODE = "volcano.sh/job-allocated-hypernode"
_TWO_JOBS = re.compile(
    r"(?P<left>\w+), (?P<right>\w+): same creation time \(zero\); "
    r"(?P<waiting>\w+) has WaitingTime (?P<time>\w+) of its own, (?P<other>\w+) none"
)


class Cast:
    """Made before the session is opened, since those who are only described must be in the cluster."""

    ssn: Session

    def __init__(self, case: Case, world: World) -> None:
        self._described: list[str] = []
        self._case = case
        store = world.store
        store.apply(Seen(Pod(_NAMESPACE, "stranger", STRANGER, PodSpec(EMPTY))))
        for call in case.raw["calls"]:
            if not case.objects:
                for key in _candidates(call):
                    namespace, _, name = key.partition("/")
                    store.apply(Seen(Pod(namespace, name, key, PodSpec(EMPTY), phase="Running")))
            if call["call"] == "SetNodeUsage":
                for usage in _usages(call["args"], case.now):
                    store.apply(Seen(usage))
            if "jobPriority" in (call.get("args") or {}):
                queue = next(iter(sorted(store.queues)), "")
                store.apply(Seen(PriorityClass(EVICTOR, call["args"]["jobPriority"])))
                store.apply(Seen(PodGroup(_NAMESPACE, "evictor", "", queue, priority_class_name=EVICTOR)))
            if found := _TWO_JOBS.fullmatch(str(call.get("doc", ""))):
                store.apply(Seen(Queue(_NAMESPACE)))
                self._described = [found["left"], found["right"]]
                for name in self._described:
                    wait = {"volcano.sh/sla-waiting-time": found["time"]} if name == found["waiting"] else {}
                    store.apply(Seen(PodGroup(_NAMESPACE, name, "", _NAMESPACE, annotations=wait)))

    def enter(self, ssn: Session) -> None:
        """The session in which they are looked up."""
        self.ssn = ssn

    def jobs_of(self, call: Raw) -> list[Job]:
        """The jobs that a call names, in its arguments or in its words."""
        args = call.get("args")
        if isinstance(args, list):
            return [self.job(name) for name in args]
        doc = str(call.get("doc", ""))
        if _TWO_JOBS.fullmatch(doc):
            return [self.job(name) for name in self._described]
        if doc.isidentifier():
            return [self.job(doc)]
        if doc == "every job":
            return [Job(self.ssn.tables, row) for row in self.ssn.live_jobs.tolist()]
        raise NotYet(f"call {call['call']} for {doc or args}")

    def job(self, name: str) -> Job:
        """By key, or by the name alone where that says enough."""
        jobs = self.ssn.tables.jobs
        rows = [r for r in self.ssn.live_jobs.tolist() if name in (jobs.uids[r], jobs.groups[r].name)]
        return Job(self.ssn.tables, _only(rows, f"job {name}"))

    def task(self, name: str) -> Task:
        """By key, or by the name alone where that says enough."""
        tasks = self.ssn.tables.tasks
        rows = [r for r in self._rows() if name in (tasks.pods[r].key, tasks.pods[r].name)]
        return Task(self.ssn.tables, _only(rows, f"task {name}"))

    def task_or_stranger(self, name: str) -> Task:
        return self.task(STRANGER if name == _NO_JOB else name)

    def pending_task(self, *, of_last_job: bool) -> Task:
        """The one pending task, of all jobs or of the last PodGroup in the file."""
        groups = [obj["metadata"] for obj in self._case.objects if obj["kind"] == "PodGroup"]
        last = f"{groups[-1]['namespace']}/{groups[-1]['name']}" if groups else ""
        tasks = self.ssn.tables.tasks
        rows = [r for r in self._rows() if tasks.status[r] == TaskStatus.PENDING and tasks.pods[r].key != STRANGER]
        rows = [r for r in rows if not of_last_job or tasks.pods[r].group_key == last]
        return Task(self.ssn.tables, _only(rows, "pending task"))

    def allocate_hypernode(self, task: Task) -> None:
        """Note the hypernode that the PodGroup's annotation names as the one its job has been placed in."""
        name = task.job.group.annotations.get(_HYPERNODE, "")
        tree = self.ssn.tables.tree
        self.ssn.journal.put(self.ssn.tables.tasks["job_hypernode"], task.row, tree.row_of[name] if name else -1)

    def _rows(self) -> list[int]:
        tasks = self.ssn.tables.tasks
        return [row for row, status in enumerate(tasks.status.tolist()) if status >= 0]


def _usages(args: Raw, now: float) -> Iterator[NodeUsage]:
    """What a call says about nodes; without an age it was never measured."""
    for name, given in args.items():
        (cpu,), (memory,) = given["cpuAvg"].values(), given["memAvg"].values()
        yield NodeUsage(name, cpu, memory, now - given["ageSeconds"] if "ageSeconds" in given else 0.0)


def _candidates(call: Raw) -> list[str]:
    """Tasks of a case without objects are all that a call says about them: a namespace and a name."""
    args = call.get("args")
    return list(args.get("candidates", ())) if isinstance(args, dict) else []


def _only(rows: list[int], what: str) -> int:
    if len(rows) != 1:
        raise Unusable(f"{what}: found {len(rows)}, wanted one")
    return rows[0]
