"""Equal jobs share a code, so that what a cycle costs does not grow with the number of equal jobs that wait."""

from __future__ import annotations

import pytest

from pumice.answers.codes import Code, code_of
from pumice.answers.waiting_codes import waiting_codes
from pumice.framework.memo import Memo
from pumice.model.blockers import Gated, KeptApart, Missing
from pumice.model.pod import QUEUE_GATE, Affinity, LabelSelector, PodAffinityTerm, Requirement
from pumice.reasons.blockers import Blockers
from pumice.runtime.one_cycle import schedule_once
from pumice.testing.build import cluster, node, pod, podgroup, pods, policy, queue, run

#: No action tries a job.
ADMITS = 'actions: "enqueue"\ntiers: [{plugins: [{name: gang}]}]\n'


def test_the_blockers_of_equal_jobs_that_were_not_tried_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {f"small{n}": "1" for n in range(10)} | {f"large{n}": "9" for n in range(10)}
    gangs = [
        each for name, cpu in sizes.items() for each in (podgroup(name, 2, phase="Inqueue"), *pods(name, 2, cpu=cpu))
    ]
    outcome = schedule_once([node("n1", cpu="4"), queue("default"), *gangs], policy(ADMITS), 1_000.0).outcome
    asked: list[int] = []
    nearest = Blockers.nearest
    monkeypatch.setattr(Blockers, "nearest", lambda self, job: (asked.append(job), nearest(self, job))[1])
    found = dict(waiting_codes(outcome))
    assert len(found) == 20 and len(asked) == 2
    of_jobs = Blockers(outcome)
    assert found == {row: code_of(nearest(of_jobs, row)) for row in found}
    assert sorted(found.values()).count(Code.ROOM) == 10


#: Places pods that ask for nothing one by one, after gangs.
BACKFILLS = 'actions: "allocate, backfill"\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]\n'
AWAY_FROM_B = PodAffinityTerm("kubernetes.io/hostname", LabelSelector((Requirement("app", "In", ("b",)),)), ("ns",))


def test_a_job_that_an_action_tried_alone_after_it_had_failed_like_another_has_its_own_blocker() -> None:
    """Both have the same failure in allocate. Backfill then tries a pod of each, and a running pod keeps one of them
    away."""
    running = pod("old-0", "old", on="n", affinity=Affinity(anti_required=(AWAY_FROM_B,)))
    objects = [node("n", cpu=1), queue(), podgroup("old", 1, phase="Running"), running]
    for name, labels in (("a", {}), ("b", {"app": "b"})):
        gang = podgroup(name, 2, phase="Inqueue")
        objects += [gang, pod(f"{name}-0", name, 0, 0, labels=labels)]
        objects.append(pod(f"{name}-1", name, gpu=1, labels=labels, gates=(QUEUE_GATE,)))
    outcome = run(cluster(*objects), policy(BACKFILLS), memo=Memo()).outcome
    blockers, codes, jobs = Blockers(outcome), dict(waiting_codes(outcome)), outcome.tables.jobs
    rows = {jobs.uids[row]: row for row in blockers.waiting.tolist()}
    assert jobs.signature[rows["ns/a"]] == jobs.signature[rows["ns/b"]]
    assert outcome.trace.failed_as[rows["ns/a"]] == outcome.trace.failed_as[rows["ns/b"]] > 0
    assert isinstance(blockers.nearest(rows["ns/a"]), Missing)
    assert isinstance(blockers.nearest(rows["ns/b"]), KeptApart)
    assert codes == {row: code_of(Blockers(outcome).nearest(row)) for row in codes}


@pytest.mark.parametrize("of_namespaces", [("ns",), ()], ids=["a namespace", "its own namespace"])
def test_a_pod_on_a_node_keeps_away_only_jobs_with_its_label(of_namespaces: tuple[str, ...]) -> None:
    """Jobs of one signature, of which no pod is tried: a gate holds them back."""
    away = PodAffinityTerm(AWAY_FROM_B.topology_key, AWAY_FROM_B.selector, of_namespaces)
    running = pod("old-0", "old", on="n", affinity=Affinity(anti_required=(away,)))
    objects = [node("n", cpu=2), queue(), podgroup("old", 1, phase="Running"), running]
    for name, labels in (("a", {}), ("b", {"app": "b"}), ("c", {"app": "c"})):
        gated = pod(f"{name}-0", name, labels=labels, gates=(QUEUE_GATE,))
        objects += [podgroup(name, 1, phase="Inqueue"), gated]
    outcome = run(cluster(*objects), policy(BACKFILLS), memo=Memo()).outcome
    blockers, jobs = Blockers(outcome), outcome.tables.jobs
    assert len(set(jobs.signature[blockers.waiting].tolist())) == 1
    nearest = {jobs.uids[row]: type(blockers.nearest(row)) for row in blockers.waiting.tolist()}
    assert nearest == {"ns/a": Gated, "ns/b": KeptApart, "ns/c": Gated}
    codes = dict(waiting_codes(outcome))
    assert codes == {row: code_of(blockers.nearest(row)) for row in codes}


def test_labels_of_the_pod_that_found_no_node_tell_jobs_apart() -> None:
    """The first pods of both gangs are equal and fit. Of the second ones, other running pods keep each away."""
    objects = [node("n", cpu=8), queue(), podgroup("old", 1, phase="Running")]
    for name in ("b", "c"):
        away = PodAffinityTerm("kubernetes.io/hostname", LabelSelector((Requirement("app", "In", (name,)),)), ("ns",))
        objects.append(pod(f"old-{name}", "old", on="n", affinity=Affinity(anti_required=(away,))))
        gang = podgroup(name, 2, phase="Inqueue")
        objects += [gang, pod(f"{name}-0", name), pod(f"{name}-1", name, labels={"app": name})]
    outcome = run(cluster(*objects), policy(BACKFILLS), memo=Memo()).outcome
    blockers, jobs, trace = Blockers(outcome), outcome.tables.jobs, outcome.trace
    first, second = blockers.waiting.tolist()
    assert jobs.signature[first] == jobs.signature[second] and trace.failed_as[first] == trace.failed_as[second] > 0
    selectors = [[each.selector for each in blockers.of(row) if isinstance(each, KeptApart)] for row in (first, second)]
    assert selectors == [["app=b"], ["app=c"]]


def test_jobs_with_a_label_each_share_a_code_if_no_pod_on_a_node_keeps_them_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running = pod("old-0", "old", on="n", affinity=Affinity(anti_required=(AWAY_FROM_B,)))
    objects = [node("n", cpu=1), queue(), podgroup("old", 1, phase="Running"), running]
    for i in range(10):
        objects += [podgroup(f"g{i}", 2, phase="Inqueue"), *pods(f"g{i}", 2, cpu=9, labels={"app": f"g{i}"})]
    outcome, asked, nearest = (
        run(cluster(*objects), policy(BACKFILLS), memo=Memo()).outcome,
        list[int](),
        Blockers.nearest,
    )
    monkeypatch.setattr(Blockers, "nearest", lambda self, job: (asked.append(job), nearest(self, job))[1])
    assert (len(dict(waiting_codes(outcome))), len(asked)) == (10, 1)
