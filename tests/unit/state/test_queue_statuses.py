"""A status of a queue that is written changes nothing that rests on what the queue states."""

from __future__ import annotations

from typing import Any

from pumice.model.events import Seen
from pumice.model.queue import QueueStatus, QueueUsage
from pumice.state.store import Store
from pumice.testing.build import cluster, queue, resource


def versions(store: Store) -> dict[str, Any]:
    table = store.snapshot().tables.queues
    assert table.stamps is not None
    return {name: column.version for name, column in table.columns.items()} | {"stamps": table.stamps.tolist()}


def test_a_written_status_leaves_versions_and_stamps_of_queues() -> None:
    store = cluster(queue("a"), queue("b"))
    before = versions(store)
    written = QueueStatus(resource(1), QueueUsage(requested=resource(2)), "7")
    store.apply(Seen(written.added_to(queue("b"))))
    assert versions(store) == before
    statuses = store.snapshot().tables.queue_statuses
    assert statuses.objs[1] == written and statuses.allocated[1, 0] == 1000


def test_a_changed_spec_renews_queues_and_keeps_statuses() -> None:
    store = cluster(queue("a", allocated=resource(1)))
    before = versions(store)
    store.apply(Seen(queue("a", 5, allocated=resource(1))))
    assert versions(store) != before
    assert store.snapshot().tables.queue_statuses.objs[0] == QueueStatus(resource(1))
