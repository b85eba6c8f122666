"""Read the parsed tree of a CEL expression: what it looks at, whether it has a loop within a loop, and how much is done
in an evaluation at most.

The tree, and not the text, because comments and texts can hide a loop from a reader of the text, and macros have
several spellings. The library gives the tree as bytes of ``cel.expr.CheckedExpr``. Source: cel-spec, syntax.proto.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

#: Numbers of fields of syntax.proto. An ``Expr`` has one of the kinds.
_ANY_VALUE, _CHECKED_EXPR = 2, 4
_CONST, _IDENT, _SELECT, _CALL, _LIST, _STRUCT, _COMPREHENSION = range(3, 10)
_CONST_TEXT, _IDENT_NAME, _ENTRY, _ELEMENT = 6, 1, 2, 1
_SELECT_OPERAND, _SELECT_FIELD = 1, 2
_CALL_TARGET, _CALL_FUNCTION, _CALL_ARGUMENT = 1, 2, 3
_ENTRY_PARTS = (3, 4)
#: Of a comprehension: range and start; condition, step and result.
_RANGE, _START, _EACH_TIME = 2, 4, (5, 6, 7)
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_KINDS = ("attributes", "capacity")
#: The most elements of a list or map that an expression finds in a device: its attributes or capacities.
_FOUND_MAX = 64
#: Expressions within the look-up of an attribute.
_LOOKUP_VISITS = 5

#: An attribute or a capacity: kind, domain, name.
Lookup = tuple[str, str, str]


class Work(NamedTuple):
    """What an evaluation does at most. ``visits``: expressions that are evaluated. ``calls``: of functions by name.
    ``patterns``: that texts are matched with, with how often each is; None for one that the expression computes."""

    visits: int
    calls: Mapping[str, int]
    patterns: tuple[tuple[str | None, int], ...]


class Tree(NamedTuple):
    """``domains``: (kind, domain) that are looked up by a constant. ``lookups``: all that it looks at of a device, or
    None if that is not known before it runs. ``has_nested_loop``: a loop is within the body of another."""

    domains: frozenset[tuple[str, str]]
    lookups: frozenset[Lookup] | None
    has_nested_loop: bool
    work: Work


def read_tree(serialized: bytes) -> Tree:
    """Return what a serialized expression does. Raises: ValueError if these are not the bytes of an expression."""
    checked = _first(serialized, _ANY_VALUE)
    domains, lookups = set[tuple[str, str]](), set[Lookup]()
    is_nested, is_whole, visits = False, False, 0
    calls, patterns = Counter[str](), list[tuple[str | None, int]]()
    # A stack, because a chain of a thousand operators is as deep. With whether it is in a loop, and how often it is
    # evaluated.
    rest: list[tuple[bytes, bool, int]] = [(_first(checked, _CHECKED_EXPR), False, 1)]
    while rest:
        expr, in_loop, times = rest.pop()
        lookup = _lookup(expr)
        # The whole path was read, so what is below it must not count as a use of the device as a whole.
        if lookup is not None:
            lookups.add(lookup)
            domains.add(lookup[:2])
            visits += _LOOKUP_VISITS * times
            continue
        visits += times
        if _is_of_device(expr, "driver"):
            continue
        domain = _domain(expr)
        if domain is not None:
            domains.add(domain)
        for number, part in _parts(expr):
            if number == _IDENT:
                # Reached by no path above, so any part of the device may be meant.
                is_whole |= _text(part, _IDENT_NAME) == "device"
            elif number == _COMPREHENSION:
                is_nested |= in_loop
                # The list of a loop is evaluated once, so a loop there follows this one and is not within it.
                rest += [(each, in_loop, times) for field, each in _parts(part) if field in (_RANGE, _START)]
                length = _length(_first(part, _RANGE))
                rest += [(each, True, times * length) for field, each in _parts(part) if field in _EACH_TIME]
                # A list that grows is copied with each element.
                if _has(_first(part, _START), _LIST):
                    visits += times * length * length
            else:
                if number == _CALL:
                    name = _text(part, _CALL_FUNCTION)
                    calls[name] += times
                    if name == "matches":
                        patterns.append((_pattern(part), times))
                rest += [(each, in_loop, times) for each in _below(number, part)]
    found = None if is_whole else frozenset(lookups)
    return Tree(frozenset(domains), found, is_nested, Work(visits, calls, tuple(patterns)))


def _length(expr: bytes) -> int:
    """Return how many elements a list or map has at most that an expression makes, or finds in a device."""
    count, rest = 0 if _has(expr, _LIST) else _FOUND_MAX, [expr]
    while rest:
        for number, part in _parts(rest.pop()):
            if number == _COMPREHENSION:
                rest += [each for field, each in _parts(part) if field in (_RANGE, _START, *_EACH_TIME)]
            else:
                below = list(_below(number, part))
                count += len(below) if number in (_LIST, _STRUCT) else 0
                rest += below
    return count


def _pattern(call: bytes) -> str | None:
    """Return the pattern of a call of ``matches`` if it is a constant."""
    # As a function it has the text as an argument before it.
    const = _first([each for field, each in _parts(call) if field == _CALL_ARGUMENT][-1], _CONST)
    return _text(const, _CONST_TEXT) if _has(const, _CONST_TEXT) else None


def _below(number: int, part: bytes) -> Iterator[bytes]:
    """Yield the expressions within an expression that is no loop."""
    # Only the fields that hold expressions: a text or a constant may have bytes that look like one.
    if number == _SELECT:
        yield from (each for field, each in _parts(part) if field == _SELECT_OPERAND)
    elif number == _CALL:
        yield from (each for field, each in _parts(part) if field in (_CALL_TARGET, _CALL_ARGUMENT))
    elif number == _LIST:
        yield from (each for field, each in _parts(part) if field == _ELEMENT)
    elif number == _STRUCT:
        for entry in (each for field, each in _parts(part) if field == _ENTRY):
            yield from (each for field, each in _parts(entry) if field in _ENTRY_PARTS)


def _lookup(expr: bytes) -> Lookup | None:
    """Return what ``device.attributes["domain"].name`` looks up, or None for another expression."""
    select = _first(expr, _SELECT)
    domain = _domain(_first(select, _SELECT_OPERAND)) if select else None
    return None if domain is None else (*domain, _text(select, _SELECT_FIELD))


def _domain(expr: bytes) -> tuple[str, str] | None:
    """Return kind and domain of ``device.attributes["domain"]``, or None for another expression."""
    call = _first(expr, _CALL)
    if not call or _text(call, _CALL_FUNCTION) != "_[_]":
        return None
    of, index = [each for field, each in _parts(call) if field == _CALL_ARGUMENT]
    const = _first(index, _CONST)
    kind = next((kind for kind in _KINDS if _is_of_device(of, kind)), None)
    return (kind, _text(const, _CONST_TEXT)) if kind is not None and _has(const, _CONST_TEXT) else None


def _is_of_device(expr: bytes, field: str) -> bool:
    """Return True for ``device.field``."""
    select = _first(expr, _SELECT)
    ident = _first(_first(select, _SELECT_OPERAND), _IDENT)
    return bool(ident) and _text(ident, _IDENT_NAME) == "device" and _text(select, _SELECT_FIELD) == field


# -- the encoding of protocol buffers


def _text(message: bytes, number: int) -> str:
    return _first(message, number).decode()


def _has(message: bytes, number: int) -> bool:
    """Return True if a message has a field with a number, which may be empty."""
    return any(field == number for field, _ in _parts(message))


def _first(message: bytes, number: int) -> bytes:
    """Return the first field with a number, or nothing."""
    return next((each for field, each in _parts(message) if field == number), b"")


def _parts(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the bytes of each field that has a length. Numbers and booleans are skipped."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        if key & 7 == _VARINT:
            _, at = _varint(message, at)
        elif key & 7 == _BYTES:
            length, at = _varint(message, at)
            yield key >> 3, message[at : at + length]
            at += length
        elif key & 7 in (_FIXED_32, _FIXED_64):
            at += 8 if key & 7 == _FIXED_64 else 4
        else:
            raise ValueError(f"a field of wire type {key & 7}, wanted 0, 1, 2 or 5")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Return a number and the position after it."""
    value = shift = 0
    while at < len(message):
        value |= (message[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if message[at - 1] < 0x80:
            return value, at
    raise ValueError("ends within a number")
