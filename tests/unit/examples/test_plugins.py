"""The plugins of examples/plugins: each keeps its contract, does what it says, and is on the page word for word."""

from __future__ import annotations

import csv
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.framework.plugin.errors import PolicyError
from pumice.model.events import Object, Seen
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.model.workloads.podgroup import PodGroup
from pumice.reasons.nearest import NearestBlockers, why_pods_wait
from pumice.runtime.policy.conf import load_policy
from pumice.runtime.policy.languages import builtin_registry
from pumice.runtime.policy.user_plugins import with_plugins_of
from pumice.testing.build import Ran, cluster, node, pod, podgroup, pods, queue, run
from pumice.testing.check import check_plugin
from tests.unit.cli.kit import run as pumice

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples" / "plugins"
PAGE = (ROOT / "docs" / "guide" / "write-a-plugin.md").read_text(encoding="utf-8")
NAMES = (
    *("few-failures", "gpu-quota-by-user", "fair-share-by-user"),
    *("before-maintenance", "queues-by-hour", "users-over-racks"),
)
USER, FAILURES = "example.com/user", "example.com/failures"
MAINTENANCE, RACK, ESTIMATE = "example.com/maintenance-at", "example.com/rack", "pumice.dev/estimate"
NOW = 1000 * 86_400.0


def labelled(obj: Object, dice: Random) -> Object:
    """What the plugins look at."""
    if isinstance(obj, Node):
        failures, begins = dice.choice(("", "0", "1", "12", "many")), dice.choice(("", "1500", "9000", "soon"))
        return replace(obj, labels={**obj.labels, FAILURES: failures, MAINTENANCE: begins, RACK: dice.choice("abc")})
    if isinstance(obj, Pod | PodGroup):
        user = dice.choice(("ann", "bob", ""))
        obj = replace(obj, labels={**obj.labels, USER: user} if user else obj.labels)
        obj = replace(obj, annotations={**obj.annotations, ESTIMATE: dice.choice(("100s", "1h", "long"))})
    if isinstance(obj, Pod) and obj.node_name:
        return replace(obj, start_time=dice.choice((0.0, 500.0, None)))
    return obj


@pytest.mark.parametrize("name", NAMES)
def test_it_keeps_its_contract(name: str) -> None:
    assert check_plugin(name, folder=EXAMPLES, alter=labelled, seeds=range(8)).asked


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_its_code_is_on_the_page(path: Path) -> None:
    code = path.read_text(encoding="utf-8").partition("from __future__ import annotations\n")[2].strip()
    assert code in PAGE


def decided(name: str, *objects: Any, arguments: str = "", now: float = NOW) -> Ran:
    """One cycle under the plugin, gangs and room."""
    conf = f"""
        actions: "allocate"
        tiers:
        - plugins:
          - name: gang
          - name: predicates
          - name: {name}
            arguments: {{{arguments}}}
        """
    registry = with_plugins_of(EXAMPLES, builtin_registry())
    spec = registry.plugin("volcano", name)
    assert spec is not None
    return run(cluster(*objects), conf, now=now, plugins=[spec.target])


def test_few_failures_goes_where_there_were_the_fewest() -> None:
    machines = [node(f"n{i}", labels={FAILURES: label}) for i, label in enumerate(("2", "0", "10"))]
    assert decided("few-failures", machines, podgroup("g", phase="Inqueue"), pod("p", "g")).binds == {"ns/p": "n1"}


@pytest.mark.parametrize("label", ["many", "-3", "1.5", "9" * 5000, "", "٣"])
def test_few_failures_reads_every_label(label: str) -> None:
    there = [node("n", labels={FAILURES: label}), podgroup("g", phase="Inqueue"), pod("p", "g")]
    assert decided("few-failures", there).binds == {"ns/p": "n"}


@pytest.mark.parametrize(
    ("label", "estimate", "is_placed"),
    [
        pytest.param(f"{NOW + 3600:.0f}", "1h", True, id="ends as the maintenance begins"),
        pytest.param(f"{NOW + 3599:.0f}", "1h", False, id="would end after that"),
        pytest.param(f"{NOW - 1:.0f}", None, False, id="it has begun"),
        pytest.param(f"{NOW + 1:.0f}", None, True, id="no estimate"),
        pytest.param("soon", "1h", True, id="a label that is not a moment"),
        pytest.param("9" * 5000, "1h", True, id="a label that is too long"),
    ],
)
def test_a_job_is_not_placed_where_it_would_run_into_maintenance(
    label: str, estimate: str | None, is_placed: bool
) -> None:
    annotations = {} if estimate is None else {ESTIMATE: estimate}
    there = [node("n", labels={MAINTENANCE: label}), podgroup("g", phase="Inqueue", annotations=annotations)]
    ran = decided("before-maintenance", there, pod("p", "g"))
    assert bool(ran.binds) == is_placed
    if not is_placed:
        reason = "0/1 nodes are unavailable: 1 node(s) had maintenance before the job ends."
        assert why_pods_wait(NearestBlockers(ran.outcome)) == {"ns/p": reason}


@pytest.mark.parametrize(
    ("hour", "arguments", "first", "wakes_h"),
    [
        pytest.param(19, "", "day", 20, id="before it begins"),
        pytest.param(20, "", "night", 30, id="at its first moment"),
        pytest.param(5, "", "night", 6, id="after midnight"),
        pytest.param(6, "", "day", 20, id="when it has ended"),
        pytest.param(9, "begin: 9, end: 17", "night", 17, id="within one day"),
        pytest.param(9, "begin: 9, end: 9", "day", 33, id="no hour at all"),
    ],
)
def test_a_queue_goes_first_during_its_hours(hour: int, arguments: str, first: str, wakes_h: int) -> None:
    queues = queue("day"), queue("night", creation=1.0)
    jobs = [*gang("d", "", queue="day"), *gang("n", "", queue="night", creation=1.0)]
    ran = decided("queues-by-hour", *queues, node("n", gpu=1), jobs, arguments=arguments, now=NOW + 3600 * hour)
    assert list(ran.binds) == [f"ns/{first[0]}-0"]
    assert ran.outcome.wakes_at == NOW + 3600 * wakes_h


def test_hours_that_there_are_not_are_refused() -> None:
    with pytest.raises(PolicyError, match="argument end: found 24, wanted an hour from 0 to 23"):
        decided("queues-by-hour", node("n"), arguments="end: 24")


def test_pods_of_a_user_are_spread_over_racks() -> None:
    machines = [node(f"{rack}{i}", labels={RACK: rack}) for rack in "abc" for i in range(2)]
    there = [podgroup("old"), pod("old", "old", on="a0", labels={USER: "ann"})]
    jobs = [*gang("a", "ann", gpus=0, count=2), *gang("b", "bob", gpus=0, count=3, creation=1.0)]
    binds = decided("users-over-racks", machines, there, jobs).binds
    assert sorted(binds[f"ns/a-{i}"][0] for i in range(2)) == ["b", "c"]
    assert sorted(binds[f"ns/b-{i}"][0] for i in range(3)) == ["a", "b", "c"]


def gang(name: str, user: str, gpus: int = 1, count: int = 1, **group: Any) -> list[Any]:
    """A job of a user that waits."""
    group = {"minimum": count, "phase": "Inqueue", **group}
    return [podgroup(name, **group), *pods(name, count, gpu=gpus, labels={USER: user} if user else {})]


RUNNING = [podgroup("old"), pod("old", "old", gpu=2, on="n", labels={USER: "ann"})]


def test_a_quota_counts_what_runs_and_what_is_placed() -> None:
    jobs = [*gang("a0", "ann"), *gang("a1", "ann", creation=1.0), *gang("b0", "bob", gpus=2, creation=2.0)]
    ran = decided("gpu-quota-by-user", node("n", gpu=8), RUNNING, jobs, arguments="gpus: 3")
    assert sorted(ran.binds) == ["ns/a0-0", "ns/b0-0"]
    full = "queue default may not take more of what the pods ask for"
    assert why_pods_wait(NearestBlockers(ran.outcome)) == {"ns/a1-0": f"{full}: user ann has 3 of 3 GPUs"}


def test_a_gang_that_is_over_the_quota_gives_back_what_was_tried() -> None:
    jobs = [*gang("a0", "ann", count=3), *gang("a1", "ann", count=2, creation=1.0)]
    assert sorted(decided("gpu-quota-by-user", node("n", gpu=8), jobs, arguments="gpus: 2").binds) == [
        "ns/a1-0",
        "ns/a1-1",
    ]


def test_no_user_and_no_gpu_is_no_quota() -> None:
    jobs = [*gang("a0", "", gpus=2), *gang("a1", "ann", gpus=0)]
    assert len(decided("gpu-quota-by-user", node("n", gpu=2), jobs, arguments="gpus: 0").binds) == 2
    assert len(decided("gpu-quota-by-user", node("n"), gang("a1", "ann", gpus=0), arguments="gpus: 0").binds) == 1


@pytest.mark.parametrize(
    ("ended_h", "first"),
    [
        pytest.param(2, "b", id="of ann's job that ended just now"),
        pytest.param(30, "a", id="a day has passed"),
    ],
)
def test_who_used_less_goes_first(ended_h: float, first: str) -> None:
    end = NOW - ended_h * 3600
    past = {"on": "n", "phase": "Succeeded", "start_time": end - 3600, "finish_time": end, "labels": {USER: "ann"}}
    objects = [node("n", gpu=1), pod("past", gpu=1, **past), *gang("a", "ann"), *gang("b", "bob", creation=1.0)]
    assert list(decided("fair-share-by-user", objects).binds) == [f"ns/{first}-0"]


def test_what_is_kept_comes_from_the_arguments() -> None:
    registry = with_plugins_of(EXAMPLES, builtin_registry())
    (window,) = load_policy(EXAMPLES / "plugins.conf", registry).usage_windows
    assert (window.label, window.window_s) == (USER, 86_400.0)


def test_the_three_together_share_a_small_cluster(tmp_path: Path) -> None:
    """As the page tells: bob's second job goes before those of ann's that have waited for longer."""
    options = ["--conf", str(EXAMPLES / "plugins.conf"), "--plugins-dir", str(EXAMPLES)]
    reports = pumice("simulate", str(EXAMPLES), *options, "--jobs", str(tmp_path / "jobs.csv"))
    assert reports.code == 0, reports.err
    with (tmp_path / "jobs.csv").open() as file:
        started = {row["job"].partition("/")[2]: float(row["started_s"]) for row in csv.DictReader(file)}
    assert [started[f"ann-{i}"] for i in range(1, 8)] == [1, 1, 1, 3601, 3601, 4201, 7201]
    assert [started[f"bob-{i}"] for i in (1, 2)] == [601, 3601]


def test_a_saved_cycle_decides_by_the_same_usage(tmp_path: Path) -> None:
    """The ninth cycle finds that three jobs of ann's have ended; what of hers still runs is nothing."""
    options = ["--conf", str(EXAMPLES / "plugins.conf"), "--plugins-dir", str(EXAMPLES)]
    saved = tmp_path / "cycle.pumice"
    assert pumice("simulate", str(EXAMPLES), *options, "--save-cycle", "9", str(saved)).code == 0
    again = pumice("schedule", str(saved), "--plugins-dir", str(EXAMPLES), "--json")
    assert list(again.json["binds"]) == ["lab/bob-2-main-0", "lab/ann-4-main-0", "lab/ann-5-main-0"]


def test_seen_again_an_ended_pod_counts_once() -> None:
    state = cluster(node("n", gpu=1))
    ended = pod("past", gpu=1, on="n", phase="Succeeded", start_time=NOW - 3600, finish_time=NOW, labels={USER: "ann"})
    registry = with_plugins_of(EXAMPLES, builtin_registry())
    windows = load_policy(EXAMPLES / "plugins.conf", registry).usage_windows
    state.keep_usage(windows)
    for _ in range(2):
        state.apply(Seen(ended))
        tables = state.snapshot(NOW).tables
    used = tables.label_usages.used(windows[0], NOW)
    assert used["ann"][tables.axis.column["nvidia.com/gpu"]] == 1000 * 3600
