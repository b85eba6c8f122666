"""Input is described in words that need no Python."""

from __future__ import annotations

import pytest

from pumice.model.plain_words import kind_of


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, "nothing"), (True, "true or false"), (1, "a number"), (0.5, "a number"), ("", "a text")]
    + [([], "a list"), ((), "a list"), ({}, "a mapping"), (b"", "a bytes")],
)
def test_what_a_value_is(value: object, words: str) -> None:
    assert kind_of(value) == words
