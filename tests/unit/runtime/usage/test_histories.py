"""What queues had of the cluster: the source that a policy names, the query, and what it changes."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from pumice.framework.plugin.errors import PolicyError
from pumice.framework.plugin.policy_file import read_policy
from pumice.model.usage import QueueHistory
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry
from pumice.runtime.usage.feed import of_queues
from pumice.runtime.usage.histories import queue_histories
from pumice.runtime.usage.history_settings import HistorySettings
from pumice.runtime.usage.sources import SourceError
from tests.unit.kai.cluster import PLUGINS, cycle, job, node, queue, store

NOW = 1_000_000.0
SECTION = {"clientType": "prometheus", "connectionString": "http://prometheus:9090"}


class Answers:
    """Queue a had half of all GPUs, b a quarter; neither has any cores, and how much memory there is is unknown."""

    def __init__(self) -> None:
        self.queries: list[str] = []

    async def __call__(self, path: str, body: Any = None) -> bytes:
        [query] = parse_qs(urlsplit(path).query)["query"]
        self.queries.append(query)
        held = {"a": "50", "b": "25", "gone": "5", "": "NaN"} if "_gpus" in query else {}
        held = {"": "100"} if re.search("nvidia|resource=.cpu", query) else held
        series = [{"metric": {"queue_name": name} if name else {}, "value": [NOW, each]} for name, each in held.items()]
        return json.dumps({"status": "success", "data": {"resultType": "vector", "result": series}}).encode()


async def test_a_queue_had_what_it_held_of_what_there_was() -> None:
    answers = Answers()
    settings = HistorySettings.read({**SECTION, "usageParams": {"halfLifePeriod": "1h", "windowSize": "1w"}})
    found = await queue_histories(settings, answers, [queue("a"), queue("b"), queue("new")], NOW)
    assert found == [
        QueueHistory("a", 0, 0, 0.5, NOW),
        QueueHistory("b", 0, 0, 0.25, NOW),
        QueueHistory("new", 0, 0, 0, NOW),
    ]
    summed = "sum by (queue_name) (kai_queue_allocated_gpus) * (0.5 ^ ((1000000 - time()) / 3600))"
    assert answers.queries[-2] == f"sum_over_time(({summed})[604800s:60s])"


def test_windows_slide_or_follow_each_other() -> None:
    assert HistorySettings.read(SECTION).span_s(NOW) == 7 * 86_400
    tumbling = {"windowType": "tumbling", "windowSize": "1d", "tumblingWindowStartTime": "1970-01-01T00:00:00Z"}
    assert HistorySettings.read({**SECTION, "usageParams": tumbling}).span_s(NOW) == NOW % 86_400


@pytest.mark.parametrize(
    ("cron", "span"),
    [
        pytest.param("30 * * * *", 1000.0, id="within the hour: it is 13:46:40"),
        pytest.param("0 0 * * 1", NOW - 11 * 86_400, id="on Mondays: it is one, the second of 1970"),
        pytest.param("46 13 * * *", 60.0, id="a window that has just begun is one sample long"),
        pytest.param("0 0 29 2 *", 400 * 86_400.0, id="no window is longer than its bound"),
    ],
)
def test_a_window_by_cron_begins_when_it_was_last_due(cron: str, span: float) -> None:
    params = {"windowType": "cron", "cronString": cron}
    assert HistorySettings.read({**SECTION, "usageParams": params}).span_s(NOW) == span


async def test_the_address_may_be_in_the_environment() -> None:
    """What it holds may be a secret: it is not shown."""
    section = {"clientType": "prometheus", "connectionStringEnvVar": "USAGE_DB"}
    given = HistorySettings.read(section, {"USAGE_DB": "http://db:9090"})
    assert (given.source.address, given.trouble) == ("http://db:9090", "")
    wrong = of_queues(lambda: section, {"USAGE_DB": "user:secret@db"})
    assert wrong.settings().type == "prometheus"
    with pytest.raises(SourceError, match="USAGE_DB is not set") as reports:
        await wrong.measure(wrong.settings(), Answers(), [], NOW)
    assert "secret" not in str(reports.value)


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"clientType": "influx"}, "clientType: found 'influx', wanted prometheus"),
        ({**SECTION, "connectionString": "file:///etc"}, "connectionString: found"),
        ({**SECTION, "usageParams": {"windowSize": "soon"}}, "usageParams: windowSize"),
        ({**SECTION, "usageParams": {"windowSize": "9000w"}}, "usageParams: windowSize"),
        ({**SECTION, "usageParams": {"windowType": "cron"}}, "usageParams: cronString: found None"),
        ({**SECTION, "usageParams": {"windowType": "tumbling"}}, "tumblingWindowStartTime: found None"),
        ({**SECTION, "usageParams": {"windowType": "leap"}}, "wanted sliding, tumbling or cron"),
        (
            {**SECTION, "usageParams": {"windowType": "cron", "cronString": "@every 5m"}},
            "cronString: found '@every 5m'",
        ),
        ({**SECTION, "connectionStringEnvVar": "HOME"}, "connectionStringEnvVar: there is a connectionString too"),
        ({"clientType": "prometheus", "connectionStringEnvVar": "a b"}, "connectionStringEnvVar: found 'a b'"),
        ({**SECTION, "usageParams": 5}, "usageParams: found a number"),
        (5, "found 5, wanted a mapping"),
    ],
)
def test_what_cannot_be_asked_is_reported(section: Any, said: str) -> None:
    conf = json.dumps({"dialect": "kai", "usageDBConfig": section})
    with pytest.raises(PolicyError, match=re.escape(said)):
        policy_of(conf, builtin_registry())
    assert policy_of(conf, builtin_registry(), strict=False).warnings


def test_only_kais_language_has_these_sections() -> None:
    with pytest.raises(PolicyError, match='unknown key "usageDBConfig"'):
        policy_of(json.dumps({"actions": "allocate", "usageDBConfig": SECTION}), builtin_registry())


@pytest.mark.parametrize("k", [1.0, 0.0])
def test_who_had_much_lately_gets_less_of_what_is_over(k: float) -> None:
    """Specified: of 16 GPUs without quotas, usage 0.5 and 0.1 make 6 and 10."""
    waiting = [job(f"{of}{i}", of, [""]) for i in range(16) for of in "ab"]
    plugins = [*(each for each in PLUGINS if each != "proportion"), {"name": "proportion", "arguments": {"kValue": k}}]
    queues = queue("a", 0), queue("b", 0), QueueHistory("a", 0, 0, 0.5), QueueHistory("b", 0, 0, 0.1)
    tiers = [{"plugins": [{"name": each} if isinstance(each, str) else each for each in plugins]}]
    found = read_policy({"dialect": "kai", "actions": "allocate", "tiers": tiers}, builtin_registry())
    binds = cycle(store(node("n", 8), node("m", 8), *queues, *waiting), found).binds
    assert sum(pod.startswith("a") for pod in binds) == (6 if k else 8)


def test_only_so_many_jobs_of_a_queue_are_tried() -> None:
    waiting = [job(f"{of}{i}", of, [""]) for i in range(3) for of in "ab"]
    conf = {"dialect": "kai", "actions": "allocate", "queueDepthPerAction": {"allocate": 2}}
    binds = cycle(store(node("n"), queue("a"), queue("b"), *waiting), read_policy(conf, builtin_registry())).binds
    assert sorted(binds) == ["a0-0", "a1-0", "b0-0", "b1-0"]
    for wrong in (0, -1, True, "2"):
        with pytest.raises(PolicyError, match="wanted a whole number of jobs"):
            read_policy({**conf, "queueDepthPerAction": {"allocate": wrong}}, builtin_registry())
