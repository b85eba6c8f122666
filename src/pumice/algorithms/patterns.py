"""Patterns from API objects: matches Go regular expressions in time linear in the text.

Python's ``re`` backtracks, and a pattern such as ``(a+)+$`` can keep it busy for hours. RE2, on which Go's ``regexp``
is
modelled, does not. Few clusters have patterns, so the library is imported for the first one. Decision 0009 has the
figures, and the differences between RE2 and Go.

RE2 is an extra (``patterns``). Without it only plain text can be matched, with ``^`` before it or ``$`` after it; every
other pattern is an error that names the extra.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

PATTERN_MAX = 512
#: The most bytes for a compiled pattern and the states that its searches keep. A pattern that needs more is refused; a
#: search that needs more goes on without keeping states.
MEMORY_MAX = 256 * 1024
_OPENING = re.compile(r"(\^?)((?:[A-Za-z0-9_-]|\\[.-])*)")
_PLAIN = re.compile(_OPENING.pattern + r"(\$?)")


class PatternError(ValueError):
    """A pattern cannot be used, for the reason in the message."""


class Pattern(Struct, frozen=True):
    """A compiled pattern.

    Every match begins with the characters of ``opening``, which may be empty. If ``anchored``, a match begins at the
    start of the text.
    """

    opening: str
    anchored: bool
    _compiled: Any

    @property
    def size(self) -> int:
        """The number of steps of the compiled pattern: the most that a search takes for each byte of the text."""
        return int(self._compiled.programsize)

    def search(self, text: str) -> bool:
        """Return True if the pattern matches somewhere in the text."""
        # Looking for the literal prefix costs a tenth of a search, and rules out most texts.
        if not (text.startswith(self.opening) if self.anchored else self.opening in text):
            return False
        return self._compiled.search(_utf8(text)) is not None


def compile_pattern(pattern: str) -> Pattern:
    """Compile a pattern.

    Raises: PatternError if it is invalid, longer than PATTERN_MAX, or needs more than MEMORY_MAX.
    """
    if len(pattern) > PATTERN_MAX:
        raise PatternError(f"a pattern of {len(pattern)} characters, at most {PATTERN_MAX}")
    try:
        import re2  # noqa: PLC0415, TID251 - late and here only: decision 0009
    except ImportError:
        return _plain(pattern)

    options = re2.Options()
    options.max_mem = MEMORY_MAX
    options.log_errors = False  # RE2 writes them to standard error
    options.never_capture = True  # groups are not used, and searches without them are faster
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
        """Return a value that is not None if the plain text is in ``text``, at the anchored position if there is
        one."""
        if self.at_begin and self.at_end:
            return True if text == self.text else None
        if self.at_begin:
            return True if text.startswith(self.text) else None
        return True if (text.endswith(self.text) if self.at_end else self.text in text) else None


def _plain(pattern: str) -> Pattern:
    """Compile a pattern of plain text without RE2.

    Raises: PatternError for every other pattern.
    """
    found = _PLAIN.fullmatch(pattern)
    if found is None:
        raise PatternError("RE2 is needed for this pattern and is not installed: pip install 'pumice[patterns]'")
    letters = found[2].replace("\\", "")
    return Pattern(letters, bool(found[1]), _PlainText(letters.encode(), bool(found[1]), bool(found[3])))


def _opening(pattern: str) -> tuple[str, bool]:
    """Return the plain characters with which every match begins, and whether a ``^`` is before them."""
    found = _OPENING.match(pattern)
    # With an alternative a match may begin with something else.
    if found is None or "|" in pattern:
        return "", False
    letters = found[2].replace("\\", "")
    # Anything but these may be a quantifier, which makes the last character optional.
    certain = pattern[found.end() : found.end() + 1] in ("", "[", ".", "$")
    return letters if certain else letters[:-1], bool(found[1])


def _utf8(text: str) -> bytes:
    """Return the text in UTF-8, with U+FFFD for lone surrogates, as in Go."""
    # YAML and JSON can express half of a surrogate pair, which UTF-8 cannot.
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
