"""No reader looks into a text: what prevents a job is a value, and its kind decides."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from pumice.model import blockers
from tests.tidy.repo import SRC

#: Names under which a text about a job is at hand in a module that knows blockers or the trace.
_ALWAYS = frozenset({"detail", "what"})
_KNOWS = ("pumice.model import blockers", "pumice.model.blockers", "pumice.framework.cycle.trace", "cycle.outcome")
#: And where blockers are read.
_OF_READERS = _ALWAYS | {"head", "message", "reason", "said", "sentence", "short", "text", "told", "why"}
_READERS = (
    "reasons/",
    "report/",
    "runtime/telemetry/",
    "kube/scheduler/cycle_log.py",
    "kube/writers/",
    "kai/words.py",
    "kai/status.py",
    "volcano/status/",
    "cli/answer.py",
)
_TESTS = ("startswith", "endswith", "find", "index", "count")


def texts_compared(source: str, names: frozenset[str] = _OF_READERS) -> list[str]:
    """Return the comparisons of a text of one of these names with a text that is written in the source."""
    tree = ast.parse(source)
    return [ast.unparse(each) for node in ast.walk(tree) for each in _compared(node, names)]


def _compared(node: ast.AST, names: frozenset[str]) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(left=left, comparators=others):
            sides = [left, *others]
            if any(_is_text(each) for each in sides) and any(_is_named(each, names) for each in sides):
                yield node
        case ast.Call(func=ast.Attribute(value=value, attr=attr), args=[first, *_]):
            if attr in _TESTS and _is_text(first) and _is_named(value, names):
                yield node
        case ast.Match(subject=subject, cases=cases) if _is_named(subject, names):
            yield from (each.pattern for each in cases if _has_text(each.pattern))


def _is_text(node: ast.AST) -> bool:
    """Return True for a text, or several, that is not empty: whether there is a text at all may be asked."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(_is_text(each) for each in node.elts)
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(node.value)


def _has_text(pattern: ast.pattern) -> bool:
    return any(isinstance(each, ast.MatchValue) and _is_text(each.value) for each in ast.walk(pattern))


def _is_named(node: ast.AST, names: frozenset[str]) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in names
        case ast.Call(func=ast.Name(id="sentence" | "text_of" | "error_text")):
            return True
    return False


def test_no_reader_compares_a_text() -> None:
    found = {}
    for path in sorted(SRC.rglob("*.py")):
        name = str(path.relative_to(SRC))
        reads = name.startswith(_READERS)
        source = path.read_text()
        if not reads and not any(each in source for each in _KNOWS):
            continue
        lines = texts_compared(source, _OF_READERS if reads else _ALWAYS)
        if lines:
            found[name] = lines
    assert found == {}


@pytest.mark.parametrize("place", _READERS)
def test_each_reader_is_there(place: str) -> None:
    assert (SRC / place).exists()


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        ('entry.what == "queue full"', True),
        ('entry.what.startswith("cannot ")', True),
        ('entry.what.startswith(("cannot ", "no "))', True),
        ('what == "queue full"', True),
        ('"gang" in why.text', True),
        ('finding.detail in ("a", "b")', True),
        ('sentence(finding).startswith("queue ")', True),
        ('match why.short:\n    case "a" | "b": pass', True),
        ("isinstance(entry.finding, QueueLimit)", False),
        ("refused.what == JOB", False),
        ('refused.detail == ""', False),
        ('limit.queue == "default"', False),
    ],
)
def test_the_search_finds_what_it_looks_for(line: str, is_found: bool) -> None:
    assert bool(texts_compared(line)) is is_found


def test_each_kind_of_blocker_is_emitted() -> None:
    kinds = [name for name in blockers.__all__ if name not in ("Blocker", *_PARTS) and not name.isupper()]
    elsewhere = [path for path in SRC.rglob("*.py") if "blockers" not in path.parts and "sentences" not in path.name]
    sources = "\n".join(path.read_text() for path in elsewhere)
    assert [kind for kind in kinds if not re.search(rf"\b{kind}\(", sources)] == []


#: Structs inside blockers.
_PARTS = ("Amount", "Part", "ResourceLimit", "Taints")
