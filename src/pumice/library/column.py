"""Columns of tables: their names, Arrow types, units and meanings."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Kind(StrEnum):
    """What a column holds, which decides its Arrow type."""

    TEXT = "text"  # string
    COUNT = "count"  # int64
    NUMBER = "number"  # double
    FLAG = "flag"  # bool


class Column(Struct, frozen=True):
    """A column. ``unit``: ``s``, ``pods``, ``cores``, … or nothing for a text. ``about``: what a value says, and when
    it is missing."""

    name: str
    kind: Kind
    unit: str
    about: str


def text(name: str, about: str) -> Column:
    return Column(name, Kind.TEXT, "", about)


def count(name: str, unit: str, about: str) -> Column:
    return Column(name, Kind.COUNT, unit, about)


def number(name: str, unit: str, about: str) -> Column:
    return Column(name, Kind.NUMBER, unit, about)


def flag(name: str, about: str) -> Column:
    return Column(name, Kind.FLAG, "", about)
