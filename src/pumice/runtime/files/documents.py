"""Read files into decoded documents, one by one: an invalid one is a problem, and the others are used.

YAML is split into documents before it is parsed, so that an invalid one does not affect the rest of the file. What a
few characters can make large (aliases, nesting) is bounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import yaml
from msgspec import Struct

from pumice.runtime.problems.problem import Problem, not_utf8, unforeseen

FILE_BYTES_MAX = 2**30
#: Nodes of a document with aliases when every alias is expanded.
EXPANDED_NODES_MAX = 1_000_000
NESTING_MAX = 500

_TAGS = "tag:yaml.org,2002:"
_MERGE = f"{_TAGS}merge"
_BITS_MAX = 4096  # of an integer; longer ones cannot even be printed
_SHOWN_MAX = 80
_SIXTIES = "(?::[0-5]?[0-9])+"  # YAML 1.1 numbers with base 60

_Base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MARKER = re.compile(r"^(?:---|\.\.\.)(?=\s|\Z)", re.MULTILINE)
_DIRECTIVE = re.compile(r"^%(?:YAML|TAG)[ \t].*$", re.MULTILINE)
_SOMETHING = re.compile(r"^[ \t]*[^\s#]", re.MULTILINE)
_BARE_MARKER = re.compile(r"^---[ \t]*(?:#.*)?$", re.MULTILINE)
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_BLOCK_OPENING = re.compile(r"^ *(?:[-?:] +)*", re.MULTILINE)


class Document(Struct, frozen=True):
    """A decoded document, and its name for messages."""

    where: str
    obj: Any


class _Refused(Exception):
    """A document that is not used, and why."""


def documents(path: Path) -> Iterator[Document | Problem]:
    """Yield the documents of a file, in order."""
    try:
        size = path.stat().st_size
        if size > FILE_BYTES_MAX:
            yield Problem(str(path), f"found {size} bytes, wanted at most {FILE_BYTES_MAX}")
            return
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        yield Problem(str(path), f"cannot be read: {error.strerror or error}")
        return
    except UnicodeDecodeError as error:
        yield Problem(str(path), not_utf8(error))
        return
    if path.suffix.lower() == ".json":
        yield _json_document(path, text)
    else:
        yield from yaml_documents(str(path), text)


# -- JSON


def _json_document(path: Path, text: str) -> Document | Problem:
    where = f"{path} document 1"
    try:
        return Document(where, _from_json(text))
    except json.JSONDecodeError as error:
        return Problem(where, f"is not valid JSON: line {error.lineno}, column {error.colno}: {error.msg}")
    except (ValueError, RecursionError, _Refused) as error:
        return Problem(where, f"is not usable JSON: {_first_line(error)}")
    except Exception as error:
        return Problem(where, unforeseen(error))


def _from_json(text: str) -> Any:
    found = json.loads(text, parse_constant=_no_constant)
    if half := _HALF_CHARACTER.search(text):
        _check_characters(found, half[0])
    return found


def _check_characters(value: Any, half: str) -> None:
    """Refuse half of a surrogate pair, which cannot be written as UTF-8. ``half``: a text that looks like it."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _Refused(f"half of a surrogate pair, such as {half}") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


# -- YAML


class _Loader(_Base):  # type: ignore[misc, valid-type]
    """YAML as Kubernetes reads it: what JSON can express; times and ``1:30`` stay text, and keys are unique."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        if not isinstance(node, yaml.MappingNode):
            raise yaml.constructor.ConstructorError(None, None, "the tagged value is not a mapping", node.start_mark)
        merges = any(key.tag == _MERGE for key, _ in node.value)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        if len(mapping) < len(node.value) and not merges:
            seen: set[str] = set()
            for key, _ in node.value:
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key.value}", key.start_mark)
                seen.add(key.value)
        return mapping


def _scalar(tag: str) -> Any:
    """Return the constructor of a plain value. Its errors are reported with their place."""
    construct = _Base.yaml_constructors[tag]

    def read(loader: Any, node: yaml.Node) -> Any:
        try:
            value = construct(loader, node)
        except (ValueError, LookupError, AttributeError, TypeError):
            found = repr(node.value)[:_SHOWN_MAX]
            raise yaml.constructor.ConstructorError(
                None, None, f"found {found} under {tag.removeprefix(_TAGS)}", node.start_mark
            ) from None
        if isinstance(value, int) and value.bit_length() > _BITS_MAX:
            raise yaml.constructor.ConstructorError(
                None, None, f"found an integer of {value.bit_length()} bits", node.start_mark
            )
        return value

    return read


_Loader.yaml_constructors = {
    **{tag: _Base.yaml_constructors[tag] for tag in (f"{_TAGS}{name}" for name in ("null", "str", "seq", "map"))},
    **{tag: _scalar(tag) for tag in (f"{_TAGS}{name}" for name in ("bool", "int", "float"))},
    None: _Base.yaml_constructors[None],  # any other tag is an error
}
_Loader.yaml_implicit_resolvers = {
    letter: [
        (tag, re.compile(regex.pattern.replace(_SIXTIES, "(?!)"), regex.flags))
        for tag, regex in resolvers
        if not tag.endswith(":timestamp")
    ]
    for letter, resolvers in _Base.yaml_implicit_resolvers.items()
}


def yaml_documents(source: str, text: str) -> Iterator[Document | Problem]:
    """Yield the documents of a text, in order. ``source``: its name for messages."""
    for number, (first_line, chunk) in enumerate(_chunks(text), start=1):
        where = f"{source} document {number}"
        try:
            yield Document(where, _from_yaml(chunk))
        except yaml.MarkedYAMLError as error:
            yield Problem(where, f"is not valid YAML: {_marked(error, first_line)}")
        except (yaml.YAMLError, ValueError, RecursionError, _Refused) as error:
            yield Problem(where, f"is not usable YAML: from line {first_line}: {_first_line(error)}")
        except Exception as error:
            yield Problem(where, f"from line {first_line} on it {unforeseen(error)}")


def _chunks(text: str) -> Iterator[tuple[int, str]]:
    """Yield (first line, text) of each document that is not empty. They are separated by ``---`` or ``...``."""
    starts = [match.start() for match in _MARKER.finditer(text)]
    if not starts or starts[0] > 0:
        starts.insert(0, 0)
    line = 1
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        chunk = text[start:end]
        lines = chunk.count("\n")
        chunk = _DIRECTIVE.sub("", chunk.removeprefix("..."))
        if _SOMETHING.search(_BARE_MARKER.sub("", chunk)):
            yield line, chunk
        line += lines


def _from_yaml(chunk: str) -> Any:
    if chunk.lstrip().startswith("{"):
        try:
            return _from_json(chunk)
        except (ValueError, RecursionError):
            pass  # YAML in flow style
    _check_nesting(chunk)
    loader = _Loader(chunk)
    try:
        node = loader.get_single_node()
        if node is not None and "*" in chunk:
            _check_aliases(node)
        return None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()


def _check_nesting(chunk: str) -> None:
    """Refuse nesting so deep that composing it would overflow the C stack.

    A cheap bound accepts almost every document: block nesting needs indentation, flow nesting needs brackets.
    """
    openings = chunk.count("[") + chunk.count("{")
    if openings + max(len(match) for match in _BLOCK_OPENING.findall(chunk)) <= NESTING_MAX:
        return
    depth = 0
    for event in yaml.parse(chunk, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > NESTING_MAX:
                raise _Refused(f"nested more than {NESTING_MAX} deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _check_aliases(root: yaml.Node) -> None:
    """Refuse a document that refers to itself, or that is far larger than it looks when aliases are expanded."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()
    waiting: list[tuple[yaml.Node, bool]] = [(root, False)]
    while waiting:
        node, done = waiting.pop()
        parts = _parts(node)
        if done:
            open_nodes.discard(id(node))
            sizes[id(node)] = 1 + sum(sizes[id(part)] for part in parts)
            if sizes[id(node)] > EXPANDED_NODES_MAX:
                raise _Refused(f"aliases that expand to more than {EXPANDED_NODES_MAX} values")
        elif id(node) in open_nodes:
            raise _Refused("an alias inside the value that it refers to")
        elif id(node) not in sizes:
            open_nodes.add(id(node))
            waiting.append((node, True))
            waiting += [(part, False) for part in parts]


def _parts(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _marked(error: yaml.MarkedYAMLError, first_line: int) -> str:
    mark = error.problem_mark or error.context_mark
    what = " ".join(str(part) for part in (error.context, error.problem) if part)
    if mark is None:
        return f"from line {first_line}: {what}"
    return f"line {first_line + mark.line}, column {mark.column + 1}: {what}"


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
