"""The pattern search agrees with Python's where both read the same, refuses what Go refuses, and never backtracks."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.algorithms.linear_regex import PATTERN_MAX, RegexError, compile_regex

ATOMS = [
    "a",
    "b",
    "ab",
    ".",
    "[ab]",
    "[^a]",
    "[a-c]",
    r"\d",
    r"\w",
    r"\W",
    "^",
    "$",
    r"\b",
    r"\B",
    "(a)",
    "(?:a|b)",
    "(?i:B)",
    "a*",
    "b+",
    "c?",
    "a{2}",
    "b{1,2}",
    "(ab)*",
    "(a|b)+",
    "|",
    "-",
    r"\.",
    "(?:a*)*",
    "()",
    r"\A",
    "a{2,}",
    "[a-]",
    "[]a]",
]


@given(st.lists(st.sampled_from(ATOMS), max_size=5), st.text("abcAB1-._ ", min_size=1, max_size=7))
@settings(max_examples=1500, deadline=None)
def test_agrees_with_python(atoms: list[str], text: str) -> None:
    pattern = "".join(atoms)
    try:
        wanted = re.search(pattern, text, re.ASCII) is not None
    except re.error:
        with pytest.raises(RegexError):
            compile_regex(pattern)
        return
    assert compile_regex(pattern).search(text) is wanted


@given(st.text("ab(|)[]{}*+?^$\\.-,:<>PQEdwxpis01", max_size=12), st.text("ab01", max_size=5))
@settings(max_examples=1500, deadline=None)
def test_any_text_compiles_or_is_refused(pattern: str, text: str) -> None:
    try:
        compile_regex(pattern).search(text)
    except RegexError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"\Qa.b\E+", "a.bbb", True),
        (r"\Qa.b\E+", "axb", False),
        (r"\Qa.b", "a.b", True),
        ("(?i)A|B", "b", True),
        ("a(?i)B|C", "c", True),
        ("(?:(?i)B)C", "bc", False),
        ("(?P<name>a)(?<other>b)", "ab", True),
        ("[[:digit:]]+[[:^digit:]]", "1a", True),
        (r"\x41\x{42}\103", "ABC", True),
        (r"[\d\-x]+$", "1-x", True),
        (r"a\z", "a", True),
        ("(?m)^b", "a\nb", True),
        ("(?s)a.b", "a\nb", True),
        ("a.b", "a\nb", False),
        ("", "", True),
        ("{", "{", True),
        ("a{,2}", "a{,2}", True),
        ("^$", "", True),
        (r"\B", "", True),
    ],
)
def test_what_is_gos_own(pattern: str, text: str, found: bool) -> None:
    assert compile_regex(pattern).search(text) is found


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)",
        "(?!a)",
        "(?<=a)",
        "(?<!a)",
        r"\1",
        r"(a)\1",
        "a*+",
        "a++",
        "a**",
        "(?>a)",
        "a{2}{3}",
        "a{1001}",
        "a{2,1}",
        "(",
        ")",
        "[",
        "[z-a]",
        "[[:foo:]]",
        "*",
        "\\",
        r"\pL",
        "(?i",
        "(?x)a",
        "[a-c-d]",
        r"\x{110000}",
        "(" * 200 + ")" * 200,
        "a" * (PATTERN_MAX + 1),
        "((a{1000}){1000}){1000}",
        "(((()){1000}){1000}){1000}",
    ],
)
def test_what_is_refused(pattern: str) -> None:
    with pytest.raises(RegexError):
        compile_regex(pattern)


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|a)*c", "(x?){30}x{30}", ".*.*.*.*.*z", r"(.*)(.*)\d{50}", "(a|b)*a(a|b){20}c"]
)
def test_catastrophic_patterns_are_plain_ones_here(pattern: str) -> None:
    """With a backtracking search each of these would not end before the test is killed."""
    regex = compile_regex(pattern)
    for i in range(20):
        assert not regex.search("ab" * 100 + "!" * i + "!")


def test_the_opening_text_is_known() -> None:
    regex = compile_regex(r"^rack\.1-[0-9]")
    assert (regex.literal, regex.anchored) == ("rack.1-", True)
    assert (compile_regex("^(a|b)").literal, compile_regex("ab*").literal) == ("", "a")
