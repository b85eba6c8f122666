"""Without RE2 plain text is matched as RE2 matches it; every other pattern is refused, naming the extra."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.algorithms.patterns import Pattern, PatternError, compile_pattern

PLAIN = st.builds(
    "{}{}{}".format, st.sampled_from(["", "^"]), st.text("ab-", max_size=3), st.sampled_from(["", "$", r"\.", r"\-$"])
)


def without_re2(pattern: str) -> Pattern:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "re2", None)
        return compile_pattern(pattern)


@given(PLAIN, st.text("ab-.\ud800", max_size=5))
@settings(max_examples=500, deadline=None)
def test_plain_text_matches_as_with_re2(pattern: str, text: str) -> None:
    assert without_re2(pattern).search(text) is compile_pattern(pattern).search(text)


@pytest.mark.parametrize(
    "pattern", ["a.b", "a*", "a|b", "(a)", "[ab]", r"\d", "a^", "a$b", "(a+)+$", "a?", "ä", "^^", "$$"]
)
def test_every_other_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match=r"pip install 'pumice\[patterns\]'"):
        without_re2(pattern)
