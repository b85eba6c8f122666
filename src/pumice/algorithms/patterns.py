"""Patterns out of API objects: whether a Go regular expression matches in a text, in time linear in the text.

Python's ``re`` backtracks: a pattern such as ``(a+)+$`` can hold it for hours. These are matched by RE2, which Go's
``regexp`` is modelled on. This is the one place in the core that uses a library besides NumPy, and it is imported when
the first pattern is met: few clusters have any. Decision 0009 has the figures, and where RE2 and Go differ.

RE2 is an extra (``patterns``). Without it only plain text is matched, with ``^`` before it or ``$`` after it; every
other pattern is refused, and the refusal names the extra.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

PATTERN_MAX = 512
#: Bytes for one compiled pattern and what its searches keep; what needs more is refused, or searched without keeping.
MEMORY_MAX = 256 * 1024
_OPENING = re.compile(r"(\^?)((?:[A-Za-z0-9_-]|\\[.-])*)")
_PLAIN = re.compile(_OPENING.pattern + r"(\$?)")


class PatternError(ValueError):
    """A pattern that cannot be used, and why."""


class Pattern(Struct, frozen=True):
    """A compiled pattern. Every match begins with ``opening``, ``anchored`` at the begin of the text.

    ``opening`` is what can be told at a glance, often nothing. To look for it costs a tenth of a search.
    """

    opening: str
    anchored: bool
    _compiled: Any

    @property
    def size(self) -> int:
        """Steps of the compiled pattern: a search takes at most so many for each byte of the text."""
        return int(self._compiled.programsize)

    def search(self, text: str) -> bool:
        """Whether the pattern matches somewhere in the text."""
        if not (text.startswith(self.opening) if self.anchored else self.opening in text):
            return False
        return self._compiled.search(_utf8(text)) is not None


def compile_pattern(pattern: str) -> Pattern:
    """The pattern, ready to search with.

    Raises: PatternError for what is no pattern, or one that is longer than PATTERN_MAX or needs more than MEMORY_MAX.
    """
    if len(pattern) > PATTERN_MAX:
        raise PatternError(f"a pattern of {len(pattern)} characters, at most {PATTERN_MAX}")
    try:
        import re2  # noqa: PLC0415, TID251 - late and here only: decision 0009
    except ImportError:
        return _plain(pattern)

    options = re2.Options()
    options.max_mem = MEMORY_MAX
    options.log_errors = False  # it would write to standard error
    options.never_capture = True  # nobody asks what a group matched
    try:
        compiled = re2.compile(_utf8(pattern), options)
    except re2.error as error:
        raise PatternError(error.args[0].decode(errors="replace")) from None
    return Pattern(*_opening(pattern), compiled)


class _PlainText(Struct, frozen=True):
    """A pattern of plain characters, compiled without RE2."""

    text: bytes
    at_begin: bool
    at_end: bool

    @property
    def programsize(self) -> int:
        return len(self.text) + 1

    def search(self, text: bytes) -> Any:
        """Return a match, here any value but None, if the text is in ``text`` at the place that is asked for."""
        if self.at_begin and self.at_end:
            return True if text == self.text else None
        if self.at_begin:
            return True if text.startswith(self.text) else None
        return True if (text.endswith(self.text) if self.at_end else self.text in text) else None


def _plain(pattern: str) -> Pattern:
    """The pattern, where it is plain text. Raises: PatternError for every other pattern."""
    found = _PLAIN.fullmatch(pattern)
    if found is None:
        raise PatternError("RE2 is needed for this pattern and is not installed: pip install 'pumice[patterns]'")
    letters = found[2].replace("\\", "")
    return Pattern(letters, bool(found[1]), _PlainText(letters.encode(), bool(found[1]), bool(found[3])))


def _opening(pattern: str) -> tuple[str, bool]:
    """The plain characters that every match begins with, and whether a ``^`` stands before them."""
    found = _OPENING.match(pattern)
    if found is None or "|" in pattern:
        return "", False
    letters = found[2].replace("\\", "")
    certain = pattern[found.end() : found.end() + 1] in ("", "[", ".", "$")  # anything else may repeat the last, or not
    return letters if certain else letters[:-1], bool(found[1])


def _utf8(text: str) -> bytes:
    """The text as RE2 reads it. Half of a surrogate pair, which YAML can write, counts as U+FFFD, as it does in Go."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
