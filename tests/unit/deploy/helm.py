"""As much of Helm as our chart uses, so that its test needs no Helm: values, if, else, end, and six functions.

Anything else is an error, which keeps the templates simple.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml


def render(chart: Path, namespace: str, values: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """The objects of a chart's templates, with ``values`` merged into its own."""
    own = yaml.safe_load((chart / "values.yaml").read_text())
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    scope = {
        "Values": _merged(own, values or {}),
        "Release": {"Namespace": namespace},
        "Chart": {"AppVersion": about["appVersion"]},
    }
    texts = (_template(path.read_text(), scope) for path in sorted((chart / "templates").glob("*.yaml")))
    return [obj for text in texts for obj in yaml.safe_load_all(text) if obj]


def _template(text: str, scope: dict[str, Any]) -> str:
    """Line by line: a tag that is alone on its line with ``{{-`` takes the line with it."""
    out: list[str] = []
    open_ifs: list[bool] = []
    for line in text.splitlines(keepends=True):
        alone = re.fullmatch(r"\s*\{\{-\s*(.*?)\s*\}\}\n", line)
        word, _, rest = (alone[1] if alone else "").partition(" ")
        if word == "if":
            open_ifs.append(_truth(rest, scope))
        elif word == "else":
            open_ifs[-1] = not open_ifs[-1]
        elif word == "end":
            open_ifs.pop()
        elif all(open_ifs):
            if alone:
                out[-1] = out[-1].rstrip()
                out.append(str(_value(alone[1], scope)) + "\n")
            else:
                out.append(re.sub(r"\{\{\s*(.*?)\s*\}\}", lambda hit: str(_value(hit[1], scope)), line))
    assert not open_ifs, "an if without an end"
    return "".join(out)


def _truth(words: str, scope: dict[str, Any]) -> bool:
    negated = words.startswith("not ")
    return bool(_value(words.removeprefix("not "), scope)) is not negated


def _value(expression: str, scope: dict[str, Any]) -> Any:
    first, *pipes = (part.strip() for part in expression.split("|"))
    found = _operand(first, scope)
    for pipe in pipes:
        name, *arguments = pipe.split()
        match name, [_operand(each, scope) for each in arguments]:
            case "default", [other]:
                found = found or other
            case "quote", []:
                found = json.dumps(str(found))
            case "toYaml", []:
                found = yaml.safe_dump(found, sort_keys=True).rstrip("\n")
            case "nindent", [int(count)]:
                found = "\n" + "\n".join(" " * count + line if line else "" for line in str(found).split("\n"))
            case _:
                raise AssertionError(f"the chart uses {pipe!r}, which this renderer does not know")
    return found


def _operand(word: str, scope: dict[str, Any]) -> Any:
    if not word.startswith("."):
        return json.loads(word)
    found: Any = scope
    for key in word[1:].split("."):
        assert key in found, f"{word}: there is no such value"
        found = found[key]
    return found


def _merged(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, Mapping):
        return new
    return {**old, **{key: _merged(old.get(key), value) for key, value in new.items()}}
