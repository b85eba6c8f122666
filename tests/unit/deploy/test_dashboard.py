"""The dashboard asks for series that exist, by labels that they have."""

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pumice.runtime.telemetry.metrics import FAMILIES, OWN_FAMILIES, PREFIX, Family

BOARD = json.loads((Path(__file__).resolve().parents[3] / "deploy" / "grafana" / "pumice.json").read_text())
PANELS: list[dict[str, Any]] = BOARD["panels"]


def expressions() -> Iterator[tuple[str, str, str]]:
    """(title, expression, legend)"""
    for panel in PANELS:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"], target["legendFormat"]
    for variable in BOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["definition"], ""


def family_of(series: str) -> Family:
    name = series.removeprefix(PREFIX)
    if series.startswith("pumice_"):
        return OWN_FAMILIES[series.removeprefix("pumice_")]
    found = FAMILIES.get(name) or FAMILIES[re.sub("_(bucket|sum|count)$", "", name)]
    assert (found.name == name) is (found.buckets is None), f"{series}: the series of a histogram have endings"
    return found


def test_series_and_labels_exist() -> None:
    asked = 0
    for title, expression, legend in expressions():
        labels: set[str] = set()
        for series in re.findall(rf"\b(?:{PREFIX}|pumice_)\w+", expression):
            labels |= set(family_of(series).labels)
            asked += 1
        used = set(re.findall(r"(\w+)=~?\"", expression)) | set(re.findall(r"{{(\w+)}}", legend))
        used |= {word for group in re.findall(r"by \(([^)]*)\)", expression) for word in group.split(", ")} - {"le"}
        assert used <= labels, title
        assert expression.count("(") == expression.count(")") and expression.count("{") == expression.count("}")
    assert asked > 20


def test_panels_are_side_by_side() -> None:
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    cells = [
        (x, y)
        for panel in PANELS
        for x, y in itertools.product(
            *(range(panel["gridPos"][a], panel["gridPos"][a] + panel["gridPos"][b]) for a, b in ("xw", "yh"))
        )
    ]
    assert len(cells) == len(set(cells)), "two panels cover each other"
    assert all(x < 24 for x, _ in cells)


def test_the_data_source_is_the_readers() -> None:
    used = {panel["datasource"]["uid"] for panel in PANELS if "datasource" in panel}
    assert used == {"${datasource}"}
