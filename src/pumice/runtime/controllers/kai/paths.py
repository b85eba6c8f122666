"""The part of jq that Kartas need to find a value in an object: a path, and a default.

    .spec.workers[].replicas          .metadata.labels["example.com/role"] // "worker"

Source: jq, which KAI uses. Its functions, pipes and filters are not evaluated: what they cost a tenant would choose.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_LENGTH_MAX = 1_000
_VALUES_MAX = 10_000
_STEP = re.compile(r'\.?\["((?:[^"\\]|\\.)*)"\]\??|\.?\[(\d{0,5})\]\??|\.([A-Za-z_]\w*)\??|\."((?:[^"\\]|\\.)*)"\??')


class PathError(Exception):
    """A path that is not evaluated. The text has what was found and what was wanted."""


def values_at(path: str, obj: Any) -> list[Any]:
    """Return the values that a path finds, without nulls, or its default if it finds none. Raises: PathError."""
    if len(path) > _LENGTH_MAX:
        raise PathError(f"found a path of {len(path)} characters, wanted at most {_LENGTH_MAX}")
    written, has_default, default = path.partition("//")
    defaults = [_literal(default.strip(), path)] if has_default else []
    found = [obj]
    for key in _steps(written.strip(), path):
        found = [value for each in found for value in _inside(each, key)][:_VALUES_MAX]
    kept = [each for each in found if each is not None]
    return kept or defaults


def _steps(path: str, whole: str) -> Iterator[str | int | None]:
    """Yield the keys of a path, a number for an item, and None for all items. Raises: PathError."""
    at = 0
    if path == ".":
        return
    if not path:
        raise _not_read(whole)
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None or (at == 0 and not path.startswith(".")):
            raise _not_read(whole)
        quoted, number, name, quoted_name = step.groups()
        if number is not None:
            yield int(number) if number else None
        else:
            yield name if name is not None else _literal(f'"{quoted if quoted is not None else quoted_name}"', whole)
        at = step.end()


def _inside(value: Any, key: str | int | None) -> list[Any]:
    if key is None:
        return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if isinstance(key, int):
        return [value[key]] if isinstance(value, list) and key < len(value) else []
    return [value.get(key)] if isinstance(value, dict) else []


def _literal(text: str, whole: str) -> Any:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise _not_read(whole) from None
    if not isinstance(found, str | int | float | None):
        raise _not_read(whole)
    return found


def _not_read(path: str) -> PathError:
    return PathError(f"found {path[:80]!r}, wanted a path such as .spec.workers[].replicas, and // with a default")
