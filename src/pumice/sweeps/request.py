"""What a user asks of a sweep, from a TOML or YAML file or from flags."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import Struct

from pumice.runtime.files.documents import yaml_documents
from pumice.runtime.problems.problem import Problem
from pumice.sim.traces.recognise import split
from pumice.sweeps.universe import Value

_RANGE = re.compile(r"(\d{1,18})\.\.(\d{1,18})")
#: Commas are also within a size such as 16:cpu=32,gpu=4; the next size begins with a count.
_NEXT_SIZE = re.compile(r",(?=\s*\d+\s*[x:])")
SEEDS_MAX = 100_000
#: Seeds of a sweep that names a precision and no seeds.
PRECISION_SEEDS = "0..199"
FILE_BYTES_MAX = 1 << 20


class Request(Struct, frozen=True, forbid_unknown_fields=True, rename={"arguments": "set"}):
    """Paths of ``inputs``; ``policies``: files or the word default; ``arguments`` (``set`` in a file): PLUGIN.ARGUMENT
    -> values; ``nodes``: sizes, none for that of the input; ``columns``: of plain tables among the inputs; ``seeds``:
    such as ``0..19``; times as texts such as ``7d``; ``precision``: a rule such as ``wait.mean ± 2 %``, until which
    seeds are taken. In a file, ``until`` may be a list of a time and a rule."""

    inputs: list[str]
    policies: list[str] = []
    arguments: dict[str, list[Value]] = {}
    nodes: list[str] = []
    seeds: str | int | list[int | str] = "0"
    until: str | float | None = None
    period: str | float = 1.0
    warm_up: str | float | None = None
    cool_down: str | float | None = None
    shake: str | float | None = None
    plugins_dir: str = ""
    columns: str = ""
    precision: str = ""


def divided(until: Sequence[str | float]) -> tuple[str | float | None, str]:
    """Return the time and the precision of what ``until`` says, None and "" for none. Raises: ValueError."""
    rules = [text for text in until if isinstance(text, str) and _is_precision(text)]
    times = [text for text in until if text not in rules]
    if len(rules) > 1 or len(times) > 1:
        raise ValueError(f"until: found {', '.join(map(repr, until))}, wanted one time and one rule at most")
    return (times[0] if times else None), (rules[0] if rules else "")


def _is_precision(text: str) -> bool:
    """Return True for a text that is meant as one, and not as a time."""
    return "±" in text or "+-" in text or "+/-" in text


def is_request_file(path: Path) -> bool:
    """Return True for a TOML file, and for a YAML file of one document with ``inputs`` and without ``kind``."""
    if path.suffix.lower() == ".toml":
        return True
    if path.suffix.lower() not in (".yaml", ".yml") or not path.is_file():
        return False
    try:
        found = _decoded(path)
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and "inputs" in found and "kind" not in found


def read_request(path: Path, folder: Path | None = None) -> Request:
    """Return the request of a file; paths in it are relative to ``folder``, by default the file's. Raises:
    ValueError."""
    try:
        found = _decoded(path)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise ValueError(f"{path}: cannot be read: {' '.join(str(error).split())[:200]}") from None
    try:
        request = msgspec.convert(_listed(found), Request)
    except msgspec.ValidationError as error:
        known = ", ".join(Request.__struct_encode_fields__)
        raise ValueError(f"{path}: {error}; known: {known}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    folder = path.parent if folder is None else folder
    return msgspec.structs.replace(
        request,
        inputs=[_beside(folder, each) for each in request.inputs],
        policies=[_beside(folder, each) for each in request.policies],
        plugins_dir=_beside(folder, request.plugins_dir) if request.plugins_dir else "",
    )


def _decoded(path: Path) -> Any:
    """Return the one document of a TOML or YAML file. Raises: ValueError, OSError."""
    with path.open("rb") as file:
        raw = file.read(FILE_BYTES_MAX + 1)
    if len(raw) > FILE_BYTES_MAX:
        raise ValueError(f"found more than {FILE_BYTES_MAX} bytes")
    text = raw.decode("utf-8")
    if path.suffix.lower() == ".toml":
        try:
            return tomllib.loads(text)
        except RecursionError:
            raise ValueError("it is nested too deep") from None
    found = list(yaml_documents(str(path), text))
    if len(found) != 1:
        raise ValueError(f"found {len(found)} documents, wanted one")
    if isinstance(found[0], Problem):
        raise ValueError(found[0].what)
    return found[0].obj


def _listed(found: Any) -> Any:
    """Return a document in which single values are lists of one, as a user need not write a list of one."""
    if not isinstance(found, Mapping):
        return found
    one: dict[str, Any] = {
        key: [found[key]] for key in ("inputs", "policies", "nodes") if isinstance(found.get(key), str)
    }
    if isinstance(until := found.get("until"), str | list):
        time, rule = divided([until] if isinstance(until, str) else until)
        one |= {"until": time} | ({"precision": rule} if rule else {})
    if (one.get("precision") or found.get("precision")) and "seeds" not in found:
        one["seeds"] = PRECISION_SEEDS
    values = found.get("set")
    if isinstance(values, Mapping):
        one["set"] = {key: value if isinstance(value, list) else [value] for key, value in values.items()}
    return {**found, **one}


def _beside(folder: Path, text: str) -> str:
    if text == "default" or Path(text).is_absolute():
        return text
    named = None if (folder / text).exists() else split(text)
    return str(folder / text) if named is None else f"{named[0]}:{folder / named[1]}"


def settings_of_flags(texts: Sequence[str]) -> dict[str, list[Value]]:
    """Return PLUGIN.ARGUMENT -> values of texts such as ``binpack.weight=1,5,10``. Raises: ValueError."""
    found: dict[str, list[Value]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not values:
            raise ValueError(f"found {text[:60]!r}, wanted PLUGIN.ARGUMENT=VALUE,… such as binpack.weight=1,5,10")
        found.setdefault(name.strip(), []).extend(_value(each) for each in values.split(","))
    return found


def _value(text: str) -> Value:
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return value if isinstance(value, int | float | bool | str) else text


def sizes_of(texts: Sequence[str]) -> list[str]:
    """Return each size of texts that may hold several, with commas between them."""
    return [size.strip() for text in texts for size in _NEXT_SIZE.split(text)]


def seeds_of(given: str | int | Sequence[int | str]) -> list[int]:
    """Return the seeds of ``0..19``, ``1,5,7`` or a list of such. Raises: ValueError for a seed that comes twice."""
    parts = given if isinstance(given, list | tuple) else str(given).split(",")
    seeds: list[int] = []
    for part in (str(each).strip() for each in parts):
        span = _RANGE.fullmatch(part)
        first, last = (int(span[1]), int(span[2])) if span else (int(part), int(part)) if part.isdecimal() else (1, 0)
        if not first <= last < 2**63 or len(seeds) + last - first >= SEEDS_MAX:
            raise ValueError(f"found {part[:40]!r}, wanted seeds such as 0..19 or 1,5,7, at most {SEEDS_MAX:,}")
        seeds += range(first, last + 1)
    twice = [seed for seed, before in zip(sorted(seeds)[1:], sorted(seeds), strict=False) if seed == before]
    if twice:
        raise ValueError(f"found seed {twice[0]} twice")
    return seeds
