"""A snapshot taken apart and put together is the same snapshot, and parts that deny each other make none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.columns.files.parts import Parts, put_together, take_apart, wanted_columns
from pumice.columns.files.references import PartsDiffer
from pumice.columns.snapshot import Shard, Snapshot
from pumice.columns.tables import NAMES
from pumice.framework.memo import Memo
from pumice.model.decisions import Bind, Evict, Writes
from pumice.model.workloads.podgroup import SubGroupPolicy
from pumice.testing.build import cluster, hypernode, node, pod, podgroup, pods, queue, resource, run
from tests.unit.columns.same import differing


def snapshot() -> Snapshot:
    """Gangs that run, wait, and are on their way; sub-groups, a topology, and rows that were given back."""
    store = cluster(
        [node(f"n{i}", gpu=i, creation=float(i % 2)) for i in range(4)],
        hypernode("r0", 1, ["n0", "n1"]),
        hypernode("r1", 1, ["n2", "n3"]),
        hypernode("top", 2, hypernodes=["r0", "r1"]),
        queue("q0", 2, guarantee=resource(1, "1Gi"), capability=resource(8)),
        queue("q1", allocated=resource(gpu=1)),
        podgroup("runs", 2, "q0", phase="Running", roles={"worker": 1}, tier=1),
        [pod("runs-0", "runs", on="n0", role="worker"), pod("runs-1", "runs", on="n1")],
        podgroup("waits", 3, "q1", phase="Inqueue", min_resources=resource(3)),
        pods("waits", 3, cpu=2, gpu=1),
        podgroup("parts", 2, "q1", phase="Inqueue", sub_groups=[SubGroupPolicy("s", None, 1, 1, None, ("part",))]),
        [pod("parts-0", "parts", labels={"part": "a"}), pod("parts-1", "parts", labels={"part": "b"})],
        podgroup("lost", 1, "nowhere"),
        pods("lost", 1),
        pod("alone", "gone"),
        pod("bare"),
        podgroup("rare", 1, "q1", phase="Inqueue", min_resources=resource(**{"example.com/rare": 1})),
    )
    store.snapshot()
    store.assume([Bind("ns/waits-1", "ns-waits-1", "n2", "ns/waits")])
    store.assume([Evict("ns/runs-1", "ns-runs-1", "n1", "ns/runs", "test")])
    store.remember(Writes(job_hypernodes={0: 1}, sub_hypernodes={0: 1}))
    store.shard = Shard(frozenset({"n0", "n3"}), hard=False)
    return store.snapshot()


SNAPSHOT = snapshot()
PARTS = take_apart(SNAPSHOT)


def test_it_is_the_same_snapshot() -> None:
    assert differing(SNAPSHOT, put_together(PARTS)) == []


def test_a_cycle_on_it_decides_and_says_the_same() -> None:
    ours, theirs = run(SNAPSHOT), run(put_together(PARTS))
    assert ours.decisions == theirs.decisions != []
    assert ours.outcome.writes == theirs.outcome.writes
    assert ours.outcome.entries == theirs.outcome.entries


def test_an_empty_cluster_is_one_too() -> None:
    empty = cluster().snapshot()
    assert differing(empty, put_together(take_apart(empty))) == []


def test_nobody_can_write_to_it() -> None:
    tables = put_together(PARTS).tables
    for name in NAMES:
        for column in getattr(tables, name).columns.values():
            with pytest.raises(ValueError, match="read-only"):
                column.data[...] = column.data


def test_versions_are_its_own_and_no_two_classes_are_one() -> None:
    once, again = put_together(PARTS).tables, put_together(PARTS).tables
    assert once.versions is not again.versions
    for tables in (once, again):
        identities = [tables.classes.identity(row) for row in tables.classes.alive.nonzero()[0].tolist()]
        assert len(set(identities)) == len(identities) > 1
        versions = [column.version for name in NAMES for column in getattr(tables, name).columns.values()]
        assert len(set(versions)) == len(versions)


def test_a_memo_of_the_store_is_not_asked_about_it() -> None:
    """The numbers of versions may well be equal: they are another source's."""
    store = cluster(node("n", 2), podgroup("g", 2), pods("g", 2))
    taken = take_apart(store.snapshot())
    memo = Memo()
    assert run(store, memo=memo).binds
    fuller = cluster(node("n", 1), podgroup("g", 2), pods("g", 2))
    assert not run(put_together(take_apart(fuller.snapshot())), memo=memo).binds
    assert run(put_together(taken), memo=memo).binds


def test_every_column_is_wanted_as_it_is() -> None:
    wanted = wanted_columns(len(SNAPSHOT.tables.axis))
    assert wanted.keys() == PARTS.columns.keys()
    for name, each in wanted.items():
        assert (PARTS.columns[name].dtype, PARTS.columns[name].shape[1:]) == (each.dtype, each.further), name


# -- parts that deny each other


def changed(column: str, row: int, value: Any) -> Callable[[Parts], Parts]:
    """Another value in one row."""

    def change(parts: Parts) -> Parts:
        array = parts.columns[column].copy()
        array[row] = value
        return replace(parts, columns={**parts.columns, column: array})

    return change


def longer(table: str) -> Callable[[Parts], Parts]:
    """The table with its first row a second time."""

    def change(parts: Parts) -> Parts:
        own = {name: array for name, array in parts.columns.items() if name.startswith(f"{table}.")}
        return replace(parts, columns={**parts.columns, **{n: np.concatenate((a, a[:1])) for n, a in own.items()}})

    return change


def rows(*values: int) -> Any:
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(changed("tasks.node", 0, 4), "tasks.node: row 0 names a row that no table has", id="node"),
        pytest.param(changed("tasks.view_node", 0, -2), "names a row that no table has", id="below none"),
        pytest.param(changed("tasks.job", 0, 2**31 - 1), "names a row that no table has", id="job"),
        pytest.param(changed("tasks.job", 0, 63), "tasks.job: row 0 names a row that is not in use", id="no job"),
        pytest.param(changed("tasks.sub", 0, 63), "names a row that is not in use", id="no sub-job"),
        pytest.param(changed("tasks.cls", 0, 63), "names a row that is not in use", id="no class"),
        pytest.param(changed("tasks.cls", 0, -1), "is of no class", id="classless"),
        pytest.param(changed("tasks.status", 0, -1), "is in no state", id="stateless"),
        pytest.param(changed("tasks.status", 0, 11), "tasks.status: row 0 is not below 11", id="state"),
        pytest.param(changed("tasks.gate", 0, 3), "tasks.gate: row 0 is not below 3", id="gate"),
        pytest.param(changed("jobs.phase", 1, 99), "jobs.phase: row 1 is not below", id="phase"),
        pytest.param(changed("jobs.phase", 1, -1), "jobs.phase: row 1 is not below", id="phase below 0"),
        pytest.param(changed("jobs.queue", 0, 2), "names a row that no table has", id="queue"),
        pytest.param(changed("jobs.hypernode", 0, 4), "names a row that no table has", id="hypernode"),
        pytest.param(changed("queues.parent", 0, 5), "names a row that no table has", id="parent"),
        pytest.param(changed("tasks.pods", 0, None), "tasks.pods: row 0 holds nothing", id="no pod"),
        pytest.param(changed("jobs.uids", 0, None), "jobs.uids: row 0 holds nothing", id="no uid"),
        pytest.param(changed("classes.specs", 0, None), "classes.specs: row 0 holds nothing", id="no spec"),
        pytest.param(changed("jobs.groups", 0, None), "row 0 has a queue and no PodGroup", id="no group"),
        pytest.param(changed("jobs.tasks", 0, rows(0)), "a list leaves a row out", id="a task left out"),
        pytest.param(changed("jobs.tasks", 0, rows(0, 0)), "a list leaves a row out, or holds one twice", id="twice"),
        pytest.param(changed("jobs.tasks", 0, rows(0, 2)), "a list holds a row of another owner", id="of another job"),
        pytest.param(changed("jobs.tasks", 0, rows(0, 64)), "a list holds a row of another owner", id="of nobody"),
        pytest.param(changed("jobs.tasks", 0, rows(0, -1)), "a list holds a row of another owner", id="none of a list"),
        pytest.param(changed("subs.tasks", 0, rows(0, 2)), "subs.tasks: a list holds", id="of another sub-job"),
        pytest.param(changed("jobs.subs", 0, (1,)), "jobs.subs: a list holds", id="sub-job of another"),
        pytest.param(changed("jobs.subs", 0, ()), "jobs.subs: a list leaves", id="no sub-job"),
        pytest.param(changed("tasks.status", 2, 5), "jobs.counts: row 1 is not what its tasks are", id="another state"),
        pytest.param(changed("subs.counts", 1, 9), "subs.counts: row 1 is not what its tasks are", id="other counts"),
        pytest.param(changed("jobs.size", 1, 2), "jobs.size: row 1 is not how many tasks it has", id="another size"),
        pytest.param(changed("tasks.alive", 0, False), "jobs.tasks: a list leaves", id="a list with the dead"),
        pytest.param(changed("nodes.alive", 0, False), "names a row that is not in use", id="a node not in use"),
        pytest.param(changed("queues.alive", 1, False), "names a row that is not in use", id="a queue not in use"),
        pytest.param(changed("queues.names", 0, "q9"), "queues.names: the rows are not", id="queue of another name"),
        pytest.param(changed("queues.objs", 0, queue("q9")), "queues.names: the rows are not", id="another queue"),
        pytest.param(longer("nodes"), "nodes: found 5 rows for 4 objects", id="more rows than nodes"),
        pytest.param(longer("queues"), "queues: found 3 rows for 2 objects", id="more rows than queues"),
        pytest.param(lambda p: replace(p, nodes=p.nodes[::-1]), "not in the order", id="nodes out of order"),
        pytest.param(lambda p: replace(p, nodes=p.nodes[:1] * 4), "one is there twice", id="a node twice"),
        pytest.param(lambda p: replace(p, nodes=p.nodes[:3]), "names a row|for 3 objects", id="a node gone"),
        pytest.param(lambda p: replace(p, offered=p.offered * 2), "resources are not in order", id="a resource twice"),
        pytest.param(lambda p: replace(p, offered=("pods",)), "resources are not in order", id="a resource of all"),
        pytest.param(
            lambda p: replace(p, offered=(), unoffered=False), "or not all that pods ask for", id="no such resource"
        ),
    ],
)
def test_parts_that_deny_each_other_are_refused(change: Callable[[Parts], Parts], said: str) -> None:
    with pytest.raises(PartsDiffer, match=said):
        put_together(change(PARTS))
