"""Search with a Go (RE2) regular expression in time linear in the text, whatever the pattern.

Python's ``re`` backtracks: a pattern such as ``(a+)+$`` can hold it for hours, and here patterns come out of API
objects. This one walks a set of positions of the pattern (a lazily built automaton). It answers only whether there is
a match. Refused is also what is longer than PATTERN_MAX or needs more than STEPS_MAX.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from pumice.algorithms.regex_syntax import Assert, Chars, Either, RegexError, Repeat, Sequence, Tree, parse_regex

__all__ = ["Regex", "RegexError", "compile_regex"]

PATTERN_MAX = 512
STEPS_MAX = 4096
_STATES_MAX = 4096  # remembered at a time; forgetting costs time, not answers


# -- the steps of a pattern


class _Step(NamedTuple):
    """``what`` to pass (None: nothing), then where one goes on. No way on and nothing to pass: the match."""

    what: Chars | Assert | None
    ways: tuple[int, ...]


class _Compiler:
    """Steps of a tree, written from the last to the first: each knows where it goes on."""

    def __init__(self) -> None:
        self.steps: list[_Step] = [_Step(None, ())]
        self.visits = 0

    def add(self, what: Chars | Assert | None, *ways: int) -> int:
        if len(self.steps) >= STEPS_MAX:
            raise RegexError(f"the pattern needs more than {STEPS_MAX} steps")
        self.steps.append(_Step(what, ways))
        return len(self.steps) - 1

    def compile(self, tree: Tree, then: int) -> int:
        self.visits += 1  # repeats of nothing write no steps
        if self.visits > 8 * STEPS_MAX:
            raise RegexError("the pattern repeats repeats too often")
        match tree:
            case Chars() | Assert():
                return self.add(tree, then)
            case Sequence(parts):
                for part in reversed(parts):
                    then = self.compile(part, then)
                return then
            case Either(parts):
                return self.add(None, *(self.compile(part, then) for part in parts))
            case Repeat(part, low, high):
                return self.repeat(part, low, high, then)

    def repeat(self, part: Tree, low: int, high: int | None, then: int) -> int:
        if high is None:
            loop = self.add(None)
            self.steps[loop] = _Step(None, (self.compile(part, loop), then))
            then = loop
        else:
            end = then
            for _ in range(high - low):
                then = self.add(None, self.compile(part, then), end)
        for _ in range(low):
            then = self.compile(part, then)
        return then


# -- the search

_State = tuple[frozenset[int], str]  # steps to be at next, and the character before: "" at the begin


@dataclass(slots=True)
class Regex:
    """A compiled pattern. ``literal`` must occur in every match; ``anchored`` says that it opens the text."""

    pattern: str
    literal: str
    anchored: bool
    _plain: bool
    _start: int
    _steps: list[_Step]
    _moves: dict[tuple[frozenset[int], str, str], _State | None] = field(default_factory=dict)

    def search(self, text: str) -> bool:
        """Whether the pattern matches somewhere in the text."""
        if not (text.startswith(self.literal) if self.anchored else self.literal in text):
            return False
        if self._plain:
            return True
        at, before = frozenset((self._start,)), ""
        for letter in (*text, ""):
            key = (at, before, letter)
            try:
                state = self._moves[key]
            except KeyError:
                state = self._move(key)
            if state is None:
                return True
            at, before = state
        return False

    def _move(self, key: tuple[frozenset[int], str, str]) -> _State | None:
        """Where a character leads; None: a match is complete. ``""`` stands for the end of the text."""
        at, before, letter = key
        state: _State | None
        ready = self._closure(at, before, letter)
        if 0 in ready:
            state = None
        else:
            code = ord(letter) if letter else -1
            ahead = {self._start}
            for number in ready:
                step = self._steps[number]
                if isinstance(step.what, Chars) and any(low <= code <= high for low, high in step.what.ranges):
                    ahead.update(step.ways)
            state = frozenset(ahead), letter
        if len(self._moves) >= _STATES_MAX:
            self._moves.clear()
        self._moves[key] = state
        return state

    def _closure(self, at: frozenset[int], before: str, letter: str) -> set[int]:
        """Every step that can be reached between two characters without passing one."""
        found = set(at)
        waiting = list(at)
        while waiting:
            step = self._steps[waiting.pop()]
            if isinstance(step.what, Chars) or (step.what is not None and not _holds(step.what.kind, before, letter)):
                continue
            fresh = [way for way in step.ways if way not in found]
            found.update(fresh)
            waiting += fresh
        return found


def _holds(kind: str, before: str, after: str) -> bool:
    match kind:
        case "begin":
            return before == ""
        case "end":
            return after == ""
        case "line-begin":
            return before in ("", "\n")
        case "line-end":
            return after in ("", "\n")
    return (_is_word(before) != _is_word(after)) == (kind == "word")


def _is_word(letter: str) -> bool:
    return letter == "_" or (letter.isascii() and letter.isalnum())


def compile_regex(pattern: str) -> Regex:
    """The pattern, ready to search with.

    Raises: RegexError for what is no pattern, or one that is too large.
    """
    if len(pattern) > PATTERN_MAX:
        raise RegexError(f"a pattern of {len(pattern)} characters, at most {PATTERN_MAX}")
    compiler = _Compiler()
    start = compiler.compile(parse_regex(pattern), 0)
    literal, anchored, plain = _opening(compiler.steps, start)
    return Regex(pattern, literal, anchored, plain, start, compiler.steps)


def _opening(steps: list[_Step], at: int) -> tuple[str, bool, bool]:
    """The text that every match opens with, whether at the begin of the text, and whether that is the whole pattern."""
    anchored = False
    letters: list[str] = []
    while at != 0:
        what, ways = steps[at]
        if isinstance(what, Assert) and what.kind == "begin" and not letters:
            anchored = True
        elif isinstance(what, Chars) and len(what.ranges) == 1 and what.ranges[0][0] == what.ranges[0][1]:
            letters.append(chr(what.ranges[0][0]))
        elif what is not None or len(ways) != 1:
            break
        at = ways[0]
    return "".join(letters), anchored, at == 0
