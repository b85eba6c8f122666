"""Patterns match as Go's do and, where both read the same, as Python's; Go's refusals hold, and nothing backtracks."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pumice.algorithms.patterns import PATTERN_MAX, PatternError, compile_pattern

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
        with pytest.raises(PatternError):
            compile_pattern(pattern)
        return
    assert compile_pattern(pattern).search(text) is wanted


@given(st.text("ab(|)[]{}*+?^$\\.-,:<>PQEdwxpis01", max_size=12), st.text("ab01", max_size=5))
@settings(max_examples=1500, deadline=None)
def test_any_text_compiles_or_is_refused(pattern: str, text: str) -> None:
    try:
        compile_pattern(pattern).search(text)
    except PatternError as error:
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
        ("[a-c-d]+$", "b-d", True),
        (r"a\z", "a", True),
        ("(?m)^b", "a\nb", True),
        ("(?s)a.b", "a\nb", True),
        ("a.b", "a\nb", False),
        ("a$", "a\n", False),
        ("", "", True),
        ("{", "{", True),
        ("a{,2}", "a{,2}", True),
        ("^$", "", True),
        (r"\B", "", True),
        (r"^\pL\p{Greek}$", "éλ", True),
        (r"^\w$", "é", False),
        ("^.$", "日", True),
        ("(?i)^k$", "\N{KELVIN SIGN}", True),
        ("(" * 200 + "a" + ")" * 200, "a", True),
    ],
)
def test_what_is_gos_own(pattern: str, text: str, found: bool) -> None:
    assert compile_pattern(pattern).search(text) is found


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
        r"\p{Elvish}",
        "(?i",
        "(?x)a",
        r"\x{110000}",
        "((a{1000}){1000}){1000}",
        "(((()){1000}){1000}){1000}",
    ],
)
def test_what_go_refuses_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        compile_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("a" * (PATTERN_MAX + 1), "a pattern of 513 characters, at most 512"),
        (r"[\pL\pN\pM]{40}", "pattern too large - compile failed"),
        ("((.{20}){20}){2}" * 8, "pattern too large - compile failed"),
    ],
    ids=["length", "classes", "repeats"],
)
def test_what_go_takes_and_is_too_large_here(pattern: str, why: str) -> None:
    with pytest.raises(PatternError, match=f"^{why}$"):
        compile_pattern(pattern)


def test_where_re2_and_go_differ() -> None:
    """Go refuses the first two, and from 1.25 on reads the names of Unicode classes in either case: decision 0009."""
    assert compile_pattern(r"^\C$").search("a")
    assert compile_pattern("(?P<n>a)(?P<n>b)").search("ab")
    with pytest.raises(PatternError, match="invalid character class range"):
        compile_pattern(r"\pl")


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(a|a)*c",
        "(x?){30}x{30}",
        ".*.*.*.*.*z",
        r"(.*)(.*)\d{50}",
        "(a|b)*a(a|b){20}c",
        "(a|b)*a(a|b){500}c",
        "(((((a|b)?){10}){10}){10})c",
    ],
)
def test_catastrophic_patterns_are_plain_ones_here(pattern: str, capfd: pytest.CaptureFixture[str]) -> None:
    """With a backtracking search each of these would not end before the test is killed. Where the library runs out of
    its memory it goes on without keeping anything, and says nothing of it to standard error."""
    compiled = compile_pattern(pattern)
    for i in range(20):
        assert not compiled.search("ab" * 100 + "!" * i + "!")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("pattern", "opening", "anchored"),
    [
        (r"^rack\.1-[0-9]", "rack.1-", True),
        (r"rack\.1-[0-9]", "rack.1-", False),
        ("^rack-7$", "rack-7", True),
        ("^rack-7+", "rack-", True),
        ("^rack-7*", "rack-", True),
        ("^rack-7?", "rack-", True),
        ("^rack-7{0,2}", "rack-", True),
        (r"^rack-7\Q\E*", "rack-", True),
        ("^rack-7(?i)*", "rack-", True),
        ("^ab|c", "", False),
        ("^(a|b)", "", False),
        ("ab*", "a", False),
        ("(?i)^ab", "", False),
        ("^", "", True),
        ("", "", False),
    ],
)
def test_the_opening_text_is_known(pattern: str, opening: str, anchored: bool) -> None:
    compiled = compile_pattern(pattern)
    assert (compiled.opening, compiled.anchored) == (opening, anchored)


@given(
    st.booleans(),
    st.lists(st.sampled_from(["a", "b", "*", "?", "{0}", "{2}", "(?i)", r"\Q\E", *ATOMS]), max_size=5),
    st.text("abAB1-.", max_size=6),
)
@settings(max_examples=500, deadline=None)
def test_the_opening_changes_no_answer(anchored: bool, atoms: list[str], text: str) -> None:
    try:
        pattern = compile_pattern("^" * anchored + "".join(atoms))
    except PatternError:
        return
    assert pattern.search(text) is replace(pattern, opening="", anchored=False).search(text)


def test_half_a_surrogate_pair_is_a_character_that_could_not_be_read() -> None:
    assert compile_pattern("^a.b$").search("a\ud800b")
    assert compile_pattern("\ud800").search("a\ufffdb")


def test_the_library_is_not_loaded_before_the_first_pattern() -> None:
    """It costs each command some 6 ms, and few clusters have patterns."""
    code = (
        "import sys, pumice.kube.scheduler.live, pumice.runtime.one_cycle, pumice.sim.run\n"
        "import pumice.apiserver.kinds.schema as schema\n"
        "assert 're2' not in sys.modules\n"
        "schema.conformed.__globals__['_pattern']('a')\n"
        "assert 're2' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
