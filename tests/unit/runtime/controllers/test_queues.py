"""Opening and closing queues, by order, by their PodGroups and by their parents."""

from typing import Any

import pytest

from pumice.runtime.controllers import queues
from pumice.runtime.controllers.queues import QueueAction, next_state, reconcile_queue
from pumice.runtime.controllers.writes import Create, Delete, Emit, Patch, Write, merged

OPEN, CLOSE, SYNC = QueueAction.OPEN, QueueAction.CLOSE, QueueAction.SYNC


def queue(name: str = "q", state: str = "Open", parent: str = "root", **annotations: str) -> dict[str, Any]:
    marks = {f"volcano.sh/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "uid": f"uid-{name}", "annotations": marks},
        "spec": {"parent": parent} if parent else {},
        "status": {"state": state} if state else {},
    }


def after(obj: dict[str, Any], writes: list[Write]) -> dict[str, Any]:
    for write in writes:
        if isinstance(write, Patch):
            assert write.subresource == ("status" if "status" in write.merge else "")
            obj = merged(obj, write.merge)
    return obj


@pytest.mark.parametrize(
    ("state", "action", "count", "wanted"),
    [
        ("", OPEN, 1, "Open"),
        ("", CLOSE, 1, "Closing"),
        ("", CLOSE, 0, "Closed"),
        ("", SYNC, 0, "Open"),
        ("Open", OPEN, 0, "Open"),
        ("Open", CLOSE, 2, "Closing"),
        ("Open", CLOSE, 0, "Closed"),
        ("Open", SYNC, 0, "Open"),
        ("Closing", OPEN, 3, "Open"),
        ("Closing", CLOSE, 1, "Closing"),
        ("Closing", CLOSE, 0, "Closed"),
        ("Closing", SYNC, 1, "Closing"),
        ("Closing", SYNC, 0, "Closed"),
        ("Closed", OPEN, 0, "Open"),
        ("Closed", CLOSE, 1, "Closed"),
        ("Closed", SYNC, 1, "Closed"),
        ("Unknown", OPEN, 0, "Open"),
        ("Unknown", CLOSE, 1, "Closing"),
        ("Unknown", CLOSE, 0, "Closed"),
        ("Unknown", SYNC, 0, "Unknown"),
        ("nonsense", SYNC, 0, "Unknown"),
    ],
)
def test_state_machine(state: str, action: QueueAction, count: int, wanted: str) -> None:
    assert next_state(state, action, count) == wanted


def test_a_new_queue_gets_parent_and_state() -> None:
    new = queue(state="", parent="")
    done = after(new, reconcile_queue(new, 0))
    assert (done["spec"]["parent"], done["status"]["state"]) == ("root", "Open")
    assert reconcile_queue(done, 0) == []


def test_root_has_no_parent_and_is_not_closed() -> None:
    root = after(queue("root", state="", parent=""), reconcile_queue(queue("root", state="", parent=""), 0))
    assert root["spec"] == {} and root["status"]["state"] == "Open"
    assert reconcile_queue(root, 0, action=CLOSE) == []


def test_closing_waits_for_the_last_pod_group() -> None:
    writes = reconcile_queue(queue(), 1, queue("root"), CLOSE)
    assert writes[-1] == Emit(writes[-1].ref, "Normal", "CloseQueue", "Close queue succeed")  # type: ignore[union-attr]
    closing = after(queue(), writes)
    assert closing["status"]["state"] == "Closing"
    assert reconcile_queue(closing, 1, queue("root")) == []
    closed = after(closing, reconcile_queue(closing, 0, queue("root")))
    assert closed["status"]["state"] == "Closed"


def test_children_follow_their_parent_down_and_up() -> None:
    parent, child = queue("p", "Closed"), queue("c", parent="p")
    closed = after(child, reconcile_queue(child, 0, parent))
    assert closed["status"]["state"] == "Closed"
    assert closed["metadata"]["annotations"] == {"volcano.sh/closed-by-parent": "true"}
    assert reconcile_queue(closed, 0, parent) == []
    opened = after(closed, reconcile_queue(closed, 0, queue("p")))
    assert opened["status"]["state"] == "Open"
    assert opened["metadata"]["annotations"] == {"volcano.sh/closed-by-parent": "false"}
    assert reconcile_queue(opened, 0, queue("p")) == []


def test_a_child_that_was_closed_itself_stays_closed() -> None:
    assert reconcile_queue(queue("c", "Closed", parent="p"), 0, queue("p")) == []


def test_a_child_cannot_open_below_a_closed_parent() -> None:
    (write,) = reconcile_queue(queue("c", "Closed", parent="p"), 0, queue("p", "Closing"), OPEN)
    assert isinstance(write, Emit) and write.type == "Warning" and "parent queue p is Closing" in write.message


@pytest.mark.parametrize("cut", range(3))
def test_a_batch_that_breaks_off_is_taken_up_again(cut: int) -> None:
    """Whatever of a batch was carried out, the next look brings the queue to where the whole would have."""
    parent, child = queue("p", "Closed"), queue("c", parent="p")
    half = after(child, reconcile_queue(child, 0, parent)[:cut])
    done = after(half, reconcile_queue(half, 0, parent))
    assert done == after(child, reconcile_queue(child, 0, parent))
    half = after(done, reconcile_queue(done, 0, queue("p"))[:cut])
    assert after(half, reconcile_queue(half, 0, queue("p"))) == after(done, reconcile_queue(done, 0, queue("p")))


def test_root_and_default_always_exist() -> None:
    made = [write.obj for write in queues.missing_queues(["other"]) if isinstance(write, Create)]
    assert [(obj["metadata"]["name"], obj["spec"]) for obj in made] == [
        ("root", {"weight": 1, "reclaimable": False}),
        ("default", {"weight": 1, "reclaimable": True, "parent": "root"}),
    ]
    assert queues.missing_queues(["root", "default"]) == []


def test_counts_name_every_phase() -> None:
    groups = [{"status": {"phase": "Running"}}, {}, {"status": {"phase": ""}}]
    assert queues.counts_by_phase(groups) == {"Pending": 2, "Running": 1, "Unknown": 0, "Inqueue": 0, "Completed": 0}


def test_a_command_is_consumed_once() -> None:
    command = {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "action": "CloseQueue",
        "metadata": {"name": "x", "namespace": "ns", "uid": "u"},
    }
    (write,), action = queues.consume_command(command)
    assert isinstance(write, Delete) and write.ref.uid == "u" and action is CLOSE
    assert queues.consume_command({**command, "action": "Dance"})[1] is None
