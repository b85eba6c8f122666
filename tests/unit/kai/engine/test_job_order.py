"""Jobs in their order, by queue, in step with what changes."""

from __future__ import annotations

import numpy as np

from pumice.framework.cycle.session import Session
from pumice.kai.engine.job_order import SortedJobs
from pumice.kai.engine.parts import Chunk
from tests.unit.kai.cluster import job, node, opened, queue, store


def session() -> Session:
    """Three in queue q, by priority; one in r."""
    ranks = {"low": 10, "middle": 20, "high": 30}
    jobs = [job(name, "q", ["a"], priority=rank) for name, rank in ranks.items()]
    return opened(store(node("a"), queue("q"), queue("r"), *jobs, job("other", "r", ["a"])))


def order(ssn: Session, sorted_jobs: SortedJobs) -> dict[str, list[str]]:
    uids, names = ssn.tables.jobs.uids, ssn.tables.queues.names
    found = {names[leaf]: [str(uids[row]) for _, row in sorted_jobs.line(leaf)] for leaf in sorted_jobs.leaves}
    return {name: [uid.removeprefix("ns/") for uid in uids] for name, uids in found.items()}


def row(ssn: Session, name: str) -> int:
    return list(ssn.tables.jobs.uids).index(f"ns/{name}")


def test_the_best_of_each_queue_comes_first() -> None:
    ssn = session()
    sorted_jobs = SortedJobs(ssn, np.arange(4))
    assert order(ssn, sorted_jobs) == {"q": ["high", "middle", "low"], "r": ["other"]}
    assert sorted_jobs.key(row(ssn, "high")) < sorted_jobs.key(row(ssn, "low"))


def test_jobs_take_their_place_anew_or_are_out() -> None:
    ssn = session()
    high, middle, low, other = (row(ssn, name) for name in ("high", "middle", "low", "other"))
    sorted_jobs = SortedJobs(ssn, np.array([high, low]))
    sorted_jobs.alone[high] = Chunk(high, (0,), (0,))
    sorted_jobs.put([high, middle, other], there=[middle, other])
    assert order(ssn, sorted_jobs) == {"q": ["middle", "low"], "r": ["other"]}
    assert (high in sorted_jobs, middle in sorted_jobs, sorted_jobs.alone) == (False, True, {})
    sorted_jobs.put([low, middle], there=[low, middle])
    assert order(ssn, sorted_jobs)["q"] == ["middle", "low"], "nobody is there twice"


def test_who_comes_back_is_keyed_as_he_is_when_somebody_looks() -> None:
    ssn = session()
    high, low = row(ssn, "high"), row(ssn, "low")
    sorted_jobs = SortedJobs(ssn, np.array([high, low]))
    assert list(sorted_jobs.leaves) == [int(ssn.tables.jobs.queue[low])]
    before = sorted_jobs.key(low)
    sorted_jobs.put([low], there=[low])
    assert low in sorted_jobs
    with ssn.statement() as stmt:
        stmt.evict([int(ssn.tables.jobs.tasks[low][0])], "it holds less than its minimum then")
        assert sorted_jobs.key(low) < before
    assert order(ssn, sorted_jobs)["q"] == ["high", "low"]


def test_without_jobs_there_are_no_queues() -> None:
    assert not SortedJobs(session(), np.array([], dtype=np.int64)).leaves
