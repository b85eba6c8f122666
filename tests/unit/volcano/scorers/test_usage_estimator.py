"""What pods will use that were not measured yet: arguments that are read, and the use that follows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.testing.build import resource, spec
from pumice.volcano.scorers.usage_estimator import (
    INTERVAL_S,
    THRESHOLD,
    Estimator,
    estimator_problems,
    interval_of,
    percent,
    threshold_problems,
)

MIB = 2.0**20
DEFAULT = Estimator()


@pytest.mark.parametrize(
    ("name", "given", "read"),
    [
        pytest.param("request_ratio", 0, 0.0, id="none of it"),
        pytest.param("request_ratio", 1, 1.0, id="all of it"),
        pytest.param("request_ratio", 1.01, None, id="more than all"),
        pytest.param("burst_ratio", True, None, id="a truth is no number"),
        pytest.param("risk_threshold", "0.5", None, id="a text is no number"),
        pytest.param("risk_factor", 1, 1.0, id="a factor of 1"),
        pytest.param("risk_factor", 0.99, None, id="risk makes nothing smaller"),
        pytest.param("risk_factor", float("nan"), None, id="no number"),
        pytest.param("be_cpu", 500, 500.0, id="milli-cores"),
        pytest.param("be_cpu", "1", 1000.0, id="cores"),
        pytest.param("be_mem", 3, 3 * MIB, id="MiB"),
        pytest.param("be_mem", "1Ki", 1024.0, id="a quantity"),
        pytest.param("be_mem", -1, None, id="less than nothing"),
        pytest.param("be_cpu", 10**15, 1e15, id="the most"),
        pytest.param("be_cpu", 10**15 + 1, None, id="more than the most"),
        pytest.param("be_mem", 10**400, None, id="more than any number of the machine"),
    ],
)
def test_what_cannot_be_used_is_as_by_default_and_is_said(name: str, given: Any, read: float | None) -> None:
    found = getattr(Estimator.read({name: given}), name)
    assert found == (getattr(DEFAULT, name) if read is None else read)
    problems = [text.partition(":")[0] for text in estimator_problems({name: given})]
    assert problems == ([f"argument estimator.{name}"] if read is None else [])


@pytest.mark.parametrize("given", [None, [], "x", {}, {"ratio": 1}])
def test_without_anything_that_is_known_it_is_the_default(given: Any) -> None:
    assert Estimator.read(given) == DEFAULT


@pytest.mark.parametrize(
    ("asks", "load", "use"),
    [
        pytest.param({"cpu": 2, "memory": 1000}, 0.0, [1400.0, 700.0], id="most of the request"),
        pytest.param({"cpu": 2, "memory": 1000}, 0.59, [1400.0, 700.0], id="below the threshold of risk"),
        pytest.param({"cpu": 2, "memory": 1000}, 0.6, [1680.0, 840.0], id="a fifth more from there on"),
        pytest.param(
            {"cpu": 2, "memory": 1000, "limit": resource(4, 3000)}, 0.0, [2400.0, 1700.0], id="half of what is beyond"
        ),
        pytest.param({"cpu": 0, "memory": 0, "qos": "BestEffort"}, 0.0, [250.0, 200 * MIB], id="asks for nothing"),
        pytest.param({"cpu": 0, "memory": 0, "qos": "BestEffort"}, 1.0, [300.0, 240 * MIB], id="which is at risk too"),
    ],
)
def test_what_a_pod_will_use(asks: dict[str, Any], load: float, use: list[float]) -> None:
    one = Estimator(burst_ratio=0.5 if "limit" in asks else 0.0)
    assert one.use(np.array(one.of(spec(**asks))), np.array(load)).tolist() == pytest.approx(use)


def test_nobody_uses_nothing() -> None:
    assert DEFAULT.use(np.array(DEFAULT.of(None)), np.array(1.0)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("given", "found", "problems"),
    [
        pytest.param({"cpu": 0}, 0, 0, id="0"),
        pytest.param({"cpu": 100}, 100, 0, id="100"),
        pytest.param({"cpu": 101}, THRESHOLD, 1, id="101"),
        pytest.param({"cpu": -1}, THRESHOLD, 1, id="-1"),
        pytest.param({"cpu": 50.0}, THRESHOLD, 1, id="no whole number"),
        pytest.param({"cpu": True}, THRESHOLD, 1, id="a truth"),
        pytest.param({"mem": 5}, THRESHOLD, 0, id="another one"),
        pytest.param({"gpu": 5}, THRESHOLD, 1, id="an unknown one"),
        pytest.param(80, THRESHOLD, 1, id="no mapping"),
        pytest.param(None, THRESHOLD, 0, id="nothing"),
    ],
)
def test_thresholds(given: Any, found: float, problems: int) -> None:
    assert percent(given, "cpu") == found
    assert len(list(threshold_problems(given))) == problems


@pytest.mark.parametrize(
    ("given", "seconds"), [("2m", 120.0), ("500ms", 0.5), ("0s", INTERVAL_S), ("-1s", INTERVAL_S), ("x", INTERVAL_S)]
)
def test_seconds_between_measurements(given: str, seconds: float) -> None:
    assert interval_of({"interval": given}) == seconds
    assert interval_of({}) == INTERVAL_S
