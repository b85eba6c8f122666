"""A Go (RE2) regular expression as a tree.

Source: RE2 syntax as Go's ``regexp`` reads it. Refused, as there: look-around, back-references, possessive repeats.
Refused only here: Unicode classes (``\\pL``) and ``\\C``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

_REPEAT_MAX = 1000  # as in Go
_DEPTH_MAX = 100
_LAST = 0x10FFFF

Ranges = tuple[tuple[int, int], ...]

_DIGIT: Ranges = ((48, 57),)
_WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: Ranges = ((9, 10), (12, 13), (32, 32))
_NAMED: dict[str, Ranges] = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": _DIGIT,
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": _WORD,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}
_PERL: dict[str, Ranges] = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_CONTROL = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}


class RegexError(ValueError):
    """A pattern that cannot be used, and why."""


class Chars(NamedTuple):
    """One character out of these ranges."""

    ranges: Ranges


class Assert(NamedTuple):
    """A place: begin, end, line-begin, line-end, word, not-word."""

    kind: str


class Sequence(NamedTuple):
    parts: tuple[Tree, ...]


class Either(NamedTuple):
    parts: tuple[Tree, ...]


class Repeat(NamedTuple):
    part: Tree
    low: int
    high: int | None


Tree = Chars | Assert | Sequence | Either | Repeat


def _negated(ranges: Iterable[tuple[int, int]]) -> Ranges:
    found, start = [], 0
    for low, high in sorted(ranges):
        if low > start:
            found.append((start, low - 1))
        start = max(start, high + 1)
    return (*found, (start, _LAST)) if start <= _LAST else tuple(found)


def _either_case(ranges: Ranges) -> Ranges:
    """The ranges with ASCII letters in both cases."""
    extra = [
        (max(low, first) + shift, min(high, last) + shift)
        for low, high in ranges
        for first, last, shift in ((65, 90, 32), (97, 122, -32))
        if max(low, first) <= min(high, last)
    ]
    return ranges + tuple(extra)


@dataclass(slots=True)
class _Parser:
    """Recursive descent. ``flags`` are those in force: i, m, s (U changes which match is found, not whether)."""

    pattern: str
    place: int = 0
    flags: frozenset[str] = frozenset()
    depth: int = 0

    def parse(self) -> Tree:
        tree = self.either()
        if self.place < len(self.pattern):
            raise RegexError("unexpected )")
        return tree

    def peek(self, text: str) -> bool:
        return self.pattern.startswith(text, self.place)

    def take(self, text: str) -> bool:
        if self.peek(text):
            self.place += len(text)
            return True
        return False

    def next(self, wanted: str) -> str:
        if self.place >= len(self.pattern):
            raise RegexError(f"the pattern ends where {wanted} is wanted")
        self.place += 1
        return self.pattern[self.place - 1]

    def until(self, end: str) -> str:
        stop = self.pattern.find(end, self.place)
        if stop < 0:
            raise RegexError(f"missing {end}")
        found, self.place = self.pattern[self.place : stop], stop + len(end)
        return found

    def either(self) -> Tree:
        flags = self.flags
        parts = [self.sequence()]
        while self.take("|"):
            parts.append(self.sequence())
        self.flags = flags
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def sequence(self) -> Tree:
        parts: list[Tree] = []
        while self.place < len(self.pattern) and not self.peek("|") and not self.peek(")"):
            parts += self.repeated(self.atom())
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def repeated(self, parts: list[Tree]) -> list[Tree]:
        bounds = self.bounds()
        while bounds is not None:
            if not parts:
                raise RegexError("nothing to repeat")
            parts[-1] = Repeat(parts[-1], *bounds)
            bounds = self.bounds()
            if bounds is not None:
                raise RegexError("a repeat of a repeat")
        return parts

    def bounds(self) -> tuple[int, int | None] | None:
        found: tuple[int, int | None]
        if self.take("*"):
            found = (0, None)
        elif self.take("+"):
            found = (1, None)
        elif self.take("?"):
            found = (0, 1)
        else:
            counted = self.counted()
            if counted is None:
                return None
            found = counted
        self.take("?")  # lazy: another match, the same answer
        return found

    def counted(self) -> tuple[int, int | None] | None:
        """``{n}``, ``{n,}`` or ``{n,m}``; any other brace is a plain character."""
        stop = self.pattern.find("}", self.place)
        if not self.peek("{") or stop < 0:
            return None
        low, comma, high = self.pattern[self.place + 1 : stop].partition(",")
        if not _is_number(low) or (high and not _is_number(high)):
            return None
        least, most = int(low), (int(high) if high else None) if comma else int(low)
        if least > _REPEAT_MAX or (most or 0) > _REPEAT_MAX or (most is not None and most < least):
            raise RegexError(f"a repeat from {low} to {high or low}: at most {_REPEAT_MAX}, low to high")
        self.place = stop + 1
        return least, most

    def atom(self) -> list[Tree]:
        """One unit, or several from ``\\Q...\\E``, or none from a bare group of flags."""
        letter = self.next("something")
        match letter:
            case "(":
                return self.group()
            case "[":
                return [self.bracket()]
            case ".":
                return [Chars(((0, _LAST),) if "s" in self.flags else _negated(((10, 10),)))]
            case "^":
                return [Assert("line-begin" if "m" in self.flags else "begin")]
            case "$":
                return [Assert("line-end" if "m" in self.flags else "end")]
            case "\\":
                return self.escaped()
            case "*" | "+" | "?":
                raise RegexError(f"nothing to repeat before {letter}")
        return [self.literal(ord(letter))]

    def literal(self, code: int) -> Tree:
        return self.chars(((code, code),))

    def chars(self, ranges: Ranges) -> Tree:
        return Chars(_either_case(ranges) if "i" in self.flags else ranges)

    def group(self) -> list[Tree]:
        self.depth += 1
        if self.depth > _DEPTH_MAX:
            raise RegexError(f"groups nested more than {_DEPTH_MAX} deep")
        outer = self.flags
        if self.take("?P<") or self.take("?<"):
            label = self.until(">")
            if not label.isidentifier():  # (?<= and (?<! come here too
                raise RegexError(f"{label!r} as the name of a group")
        elif self.take("?") and not self.switches():
            self.depth -= 1
            return []
        tree = self.either()
        if not self.take(")"):
            raise RegexError("missing )")
        self.flags, self.depth = outer, self.depth - 1
        return [tree]

    def switches(self) -> bool:
        """``(?i-s:`` opens a group (true); ``(?i)`` holds up to the end of the group it stands in (false)."""
        on = True
        while True:
            letter = self.next("a flag")
            if letter in "imsU":
                self.flags = self.flags | {letter} if on else self.flags - {letter}
            elif letter == "-" and on:
                on = False
            elif letter in ":)":
                return letter == ":"
            else:
                raise RegexError(f"(?{letter}")

    def escaped(self) -> list[Tree]:
        letter = self.next("an escaped character")
        places = {"A": "begin", "z": "end", "b": "word", "B": "not-word"}
        if letter in places:
            return [Assert(places[letter])]
        if letter == "Q":
            text, _, rest = self.pattern[self.place :].partition("\\E")
            self.place = len(self.pattern) - len(rest)
            return [self.literal(ord(each)) for each in text]
        if letter.lower() in _PERL:
            return [Chars(self.perl(letter))]
        return [self.literal(self.code(letter))]

    def perl(self, letter: str) -> Ranges:
        ranges = _PERL[letter.lower()]
        return _negated(ranges) if letter.isupper() else ranges

    def code(self, letter: str) -> int:
        """The character that an escape stands for."""
        if letter in _CONTROL:
            return _CONTROL[letter]
        if letter == "x":
            digits = self.until("}") if self.take("{") else self.next("a hex digit") + self.next("a hex digit")
            if not digits or len(digits) > 6 or not all(d in "0123456789abcdefABCDEF" for d in digits):
                raise RegexError(f"\\x{digits}")
            if int(digits, 16) > _LAST:
                raise RegexError(f"\\x{digits}")
            return int(digits, 16)
        if letter in "01234567" and (letter == "0" or self.pattern[self.place : self.place + 1] in tuple("01234567")):
            digits = letter
            while len(digits) < 3 and self.pattern[self.place : self.place + 1] in tuple("01234567"):
                digits += self.next("an octal digit")
            return int(digits, 8)
        if letter.isascii() and not letter.isalnum():
            return ord(letter)
        raise RegexError(f"\\{letter}")

    def bracket(self) -> Tree:
        negated = self.take("^")
        ranges: list[tuple[int, int]] = []
        first = True
        while first or not self.peek("]"):
            ranges += self.bracket_part(first)
            first = False
        self.place += 1
        cased = _either_case(tuple(ranges)) if "i" in self.flags else tuple(ranges)
        return Chars(_negated(cased) if negated else cased)

    def bracket_part(self, first: bool) -> Ranges:
        if self.take("[:"):
            label = self.until(":]")
            if label.removeprefix("^") not in _NAMED:
                raise RegexError(f"[:{label}:]")
            ranges = _NAMED[label.removeprefix("^")]
            return _negated(ranges) if label.startswith("^") else ranges
        letter = self.next("]")
        if letter == "-" and not first and not self.peek("]"):
            raise RegexError("a - in the middle of a class")
        if letter == "\\":
            letter = self.next("an escaped character")
            if letter.lower() in _PERL:
                return self.perl(letter)
            low = self.code(letter)
        else:
            low = ord(letter)
        if not self.peek("-") or self.peek("-]"):
            return ((low, low),)
        self.place += 1
        letter = self.next("the end of a range")
        high = self.code(self.next("an escaped character")) if letter == "\\" else ord(letter)
        if high < low:
            raise RegexError("a range from high to low")
        return ((low, high),)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 4


def parse_regex(pattern: str) -> Tree:
    """The tree of a pattern. Raises: RegexError."""
    return _Parser(pattern).parse()
