"""Small plugins of KAI's, each by what it changes."""

from msgspec.structs import replace

from pumice.model.pod import Pod
from tests.unit.kai.cluster import PLUGINS, cycle, job, node, policy, queue, store


def test_masters_and_heads_are_placed_first() -> None:
    for plugin, labels in (
        ("kubeflow", {"training.kubeflow.org/job-role": "master"}),
        ("ray", {"ray.io/node-type": "head"}),
    ):
        found = store(node("a", 1), queue("q"), job("j", "q", [""] * 3, minimum=1, labels={2: labels}))
        assert list(cycle(found, policy(["allocate"], PLUGINS)).binds) == ["j-0"]
        assert list(cycle(found, policy(["allocate"], [*PLUGINS, plugin])).binds) == ["j-2"]


def test_a_larger_task_priority_goes_first() -> None:
    labels = {0: {"kai.scheduler/task-priority": "1"}, 2: {"kai.scheduler/task-priority": "7"}}
    found = store(node("a", 1), queue("q"), job("j", "q", [""] * 3, minimum=1, labels=labels))
    assert list(cycle(found, policy(["allocate"])).binds) == ["j-2"]


def test_a_nominated_pod_goes_to_its_node() -> None:
    group = job("j", "q", [""])
    found = store(
        node("a"), node("b"), queue("q"), *(replace(o, nominated_node="b") if isinstance(o, Pod) else o for o in group)
    )
    off = {"promisedFirst": False}  # on, the node is kept for it whatever plugins there are
    assert cycle(found, policy(["allocate"], allocate=off)).binds == {"j-0": "a"}
    assert cycle(found, policy(["allocate"], [*PLUGINS, "nominatednode"], allocate=off)).binds == {"j-0": "b"}


def test_pods_without_gpus_rather_go_to_nodes_without() -> None:
    found = store(node("a"), node("b", 0), queue("q"), job("runs", "q", ["a"], gpus=0), job("j", "q", [""], gpus=0))
    assert cycle(found, policy(["allocate"])).binds == {"j-0": "b"}
    without = [name for name in PLUGINS if name != "resourcetype"]
    assert cycle(found, policy(["allocate"], without)).binds == {"j-0": "a"}


def test_spread_takes_the_emptiest_node() -> None:
    found = store(node("a"), node("b"), queue("q"), job("runs", "q", ["a"]), job("j", "q", [""]))
    spread = [{"name": "nodeplacement", "arguments": {"gpu": "spread"}} if n == "nodeplacement" else n for n in PLUGINS]
    assert cycle(found, policy(["allocate"])).binds == {"j-0": "a"}
    assert cycle(found, policy(["allocate"], spread)).binds == {"j-0": "b"}
