"""The alert rules ask for series that exist, by labels that they have."""

import re
from pathlib import Path

import pytest
import yaml

from pumice.answers.codes import Code
from pumice.kube.scheduler import http
from pumice.runtime.telemetry.metrics import FAMILIES, OWN_FAMILIES, PREFIX

RULES = Path(__file__).resolve().parents[3] / "deploy" / "prometheus" / "pumice-rules.yaml"
ALERTS = {rule["alert"]: rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]}
OWN = set(re.findall(r'"(pumice_\w+)"', Path(http.__file__).read_text()))
LABELS = {"pumice_objects_unread": {"kind"}, "pumice_api_requests": {"method", "code"}}


def bare(series: str) -> str:
    return re.sub(r"_(total|bucket|sum|count)$", "", series)


@pytest.mark.parametrize("name", ALERTS)
def test_series_and_labels_exist(name: str) -> None:
    expression = ALERTS[name]["expr"]
    series = set(re.findall(rf"\b(?:pumice|{PREFIX.rstrip('_')})_\w+", expression))
    assert series
    labels: set[str] = set()
    for each in series:
        if each.startswith("pumice_"):
            own = OWN_FAMILIES.get(each.removeprefix("pumice_"))
            assert own is not None or bare(each) in OWN, each
            labels |= set(own.labels) if own is not None else set()
            labels |= LABELS.get(bare(each), set())
        else:
            family = FAMILIES.get(each.removeprefix(PREFIX)) or FAMILIES[bare(each).removeprefix(PREFIX)]
            labels |= set(family.labels)
    used = set(re.findall(r"(\w+)=~?\"", expression))
    used |= {word for group in re.findall(r"by \(([^)]*)\)", expression) for word in group.split(", ")} - {"le"}
    assert used <= labels
    assert expression.count("(") == expression.count(")")


def test_codes_are_those_of_reasons() -> None:
    found = re.findall(
        r'\bcode=~?"([^"]*)"', " ".join(rule["expr"] for rule in ALERTS.values() if "waiting" in rule["expr"])
    )
    codes = [code for each in found for code in each.split("|")]
    assert len(codes) >= 5
    assert set(codes) <= {code.value for code in Code}


def test_every_alert_says_how_bad_and_what() -> None:
    for name, rule in ALERTS.items():
        assert name.startswith("Pumice")
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"]["summary"]
