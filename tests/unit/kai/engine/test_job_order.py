"""Jobs in their order, by queue, in step with what changes."""

from __future__ import annotations

import numpy as np

from pumice.framework.cycle.session import Session
from pumice.kai.engine.job_order import Standing
from pumice.kai.engine.parts import Chunk
from tests.unit.kai.cluster import job, node, opened, queue, store


def session() -> Session:
    """Three in queue q, by priority; one in r."""
    ranks = {"low": 10, "middle": 20, "high": 30}
    jobs = [job(name, "q", ["a"], priority=rank) for name, rank in ranks.items()]
    return opened(store(node("a"), queue("q"), queue("r"), *jobs, job("other", "r", ["a"])))


def order(ssn: Session, standing: Standing) -> dict[str, list[str]]:
    uids, names = ssn.tables.jobs.uids, ssn.tables.queues.names
    found = {names[leaf]: [str(uids[row]) for _, row in standing.line(leaf)] for leaf in standing.leaves}
    return {name: [uid.removeprefix("ns/") for uid in uids] for name, uids in found.items()}


def row(ssn: Session, name: str) -> int:
    return list(ssn.tables.jobs.uids).index(f"ns/{name}")


def test_the_best_of_each_queue_comes_first() -> None:
    ssn = session()
    standing = Standing(ssn, np.arange(4))
    assert order(ssn, standing) == {"q": ["high", "middle", "low"], "r": ["other"]}
    assert standing.key(row(ssn, "high")) < standing.key(row(ssn, "low"))


def test_jobs_take_their_place_anew_or_are_out() -> None:
    ssn = session()
    high, middle, low, other = (row(ssn, name) for name in ("high", "middle", "low", "other"))
    standing = Standing(ssn, np.array([high, low]))
    standing.alone[high] = Chunk(high, (0,), (0,))
    standing.put([high, middle, other], there=[middle, other])
    assert order(ssn, standing) == {"q": ["middle", "low"], "r": ["other"]}
    assert (high in standing, middle in standing, standing.alone) == (False, True, {})
    standing.put([low, middle], there=[low, middle])
    assert order(ssn, standing)["q"] == ["middle", "low"], "nobody is there twice"


def test_who_comes_back_is_keyed_as_he_is_when_somebody_looks() -> None:
    ssn = session()
    high, low = row(ssn, "high"), row(ssn, "low")
    standing = Standing(ssn, np.array([high, low]))
    assert list(standing.leaves) == [int(ssn.tables.jobs.queue[low])]
    before = standing.key(low)
    standing.put([low], there=[low])
    assert low in standing
    with ssn.statement() as stmt:
        stmt.evict([int(ssn.tables.jobs.tasks[low][0])], "it holds less than its minimum then")
        assert standing.key(low) < before
    assert order(ssn, standing)["q"] == ["high", "low"]


def test_without_jobs_there_are_no_queues() -> None:
    assert not Standing(session(), np.array([], dtype=np.int64)).leaves
