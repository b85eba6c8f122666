"""Quantities and durations against tables of what Kubernetes 1.34 and Go answer, and against a Decimal path."""

from __future__ import annotations

import math
from decimal import ROUND_UP, Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.model.quantity import (
    INT64_MAX,
    INT64_MIN,
    DurationError,
    Quantity,
    QuantityError,
    format_quantity,
    milli_value,
    parse_duration,
    whole_value,
)

# ------------------------------------------------------------------------------------------------------- reading

#: quantity, thousandths, whole units
READ: list[tuple[Quantity, int, int]] = [
    ("0", 0, 0),
    ("1", 1000, 1),
    ("+1", 1000, 1),
    ("-1", -1000, -1),
    ("007", 7000, 7),
    ("1.5", 1500, 2),
    (".5", 500, 1),
    ("5.", 5000, 5),
    ("100m", 100, 1),
    ("100.1m", 101, 1),
    ("1u", 1, 1),
    ("1n", 1, 1),
    ("0n", 0, 0),
    ("2k", 2_000_000, 2000),
    ("2M", 2 * 10**9, 2 * 10**6),
    ("2G", 2 * 10**12, 2 * 10**9),
    ("2T", 2 * 10**15, 2 * 10**12),
    ("2P", 2 * 10**18, 2 * 10**15),
    ("1Ki", 1024_000, 1024),
    ("1Mi", 1000 * 2**20, 2**20),
    ("1.5Gi", 1536_000 * 2**20, 1536 * 2**20),
    ("0.1Gi", 107374182400, 107374183),
    ("1Ti", 1000 * 2**40, 2**40),
    ("1Pi", 1000 * 2**50, 2**50),
    ("1e3", 1_000_000, 1000),
    ("1E3", 1_000_000, 1000),
    ("1e+3", 1_000_000, 1000),
    ("1E-3", 1, 1),
    ("1e-30", 1, 1),
    ("0e99", 0, 0),
    ("-1.5", -1500, -2),
    ("-1u", -1, -1),
    ("9223372036854775.807", INT64_MAX, 9223372036854776),
    (3, 3000, 3),
    (0, 0, 0),
    (2.5, 2500, 3),
    (0.1, 100, 1),  # the number as it is written, not the binary fraction just above it
    (1e15, 10**18, 10**15),
    (1e-7, 1, 1),
]


@pytest.mark.parametrize(("quantity", "milli", "whole"), READ)
def test_reads_thousandths(quantity: Quantity, milli: int, whole: int) -> None:
    assert milli_value(quantity) == milli


@pytest.mark.parametrize(("quantity", "milli", "whole"), READ)
def test_reads_whole_units(quantity: Quantity, milli: int, whole: int) -> None:
    assert whole_value(quantity) == whole


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1 ",
        " 1",
        "-",
        ".",
        "Ki",
        "1K",
        "1ki",
        "1GiB",
        "1e",
        "1e1.5",
        "1_000",
        "0x10",
        "1e3k",
        "+-1",
        "1,5",
        "١",
    ]
    + ["nan", "inf", "1e100", "1\n", "9" * 65, "0." + "0" * 1000, "Infinity"],
)
def test_refuses_what_is_not_a_quantity_and_says_what_is(text: str) -> None:
    for read in (milli_value, whole_value):
        with pytest.raises(
            QuantityError, match="is not a quantity; accepted: a number with an optional suffix"
        ) as error:
            read(text)
        assert repr(text[:16])[:-1] in str(error.value)
        assert len(str(error.value)) < 300


@pytest.mark.parametrize("thing", [None, True, [1], {"a": 1}, b"1", Decimal(1), math.nan, math.inf])
def test_refuses_other_types_and_numbers_that_are_none(thing: Quantity) -> None:
    for read in (milli_value, whole_value):
        with pytest.raises(QuantityError, match="is not a quantity"):
            read(thing)


@pytest.mark.parametrize("quantity", ["9223372036854775808", "8Ei", "10E", "1e99", 2**63, 1e30])
def test_refuses_more_than_an_int64_in_whole_units(quantity: Quantity) -> None:
    with pytest.raises(QuantityError, match="is larger than 9223372036854775807, "):
        whole_value(quantity)


@pytest.mark.parametrize("quantity", ["9223372036854775.8071", "10P", "1Ei", 2**63 // 1000 + 1, 1e17])
def test_refuses_more_than_an_int64_in_thousandths(quantity: Quantity) -> None:
    assert whole_value(quantity) > 0
    with pytest.raises(QuantityError, match="is larger than 9223372036854775807 thousandths"):
        milli_value(quantity)


def test_refuses_an_integer_too_long_to_print() -> None:
    with pytest.raises(QuantityError, match="an integer of 20001 bits is larger than 9223372036854775807"):
        whole_value(1 << 20000)


def test_refuses_less_than_an_int64() -> None:
    assert whole_value("-9223372036854775808") == INT64_MIN
    with pytest.raises(QuantityError, match="is smaller than -9223372036854775808, "):
        whole_value("-9223372036854775809")


def test_a_bad_text_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(QuantityError):
            milli_value("1K")


DECIMAL_FACTORS = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
FACTORS = {suffix: Decimal(10) ** power for suffix, power in DECIMAL_FACTORS.items()}
FACTORS |= {f"{prefix}i": Decimal(1024) ** power for power, prefix in enumerate("KMGTPE", start=1)}
FACTORS |= {f"{e}{power}": Decimal(10) ** power for e in "eE" for power in range(-40, 41)}

digits = st.text("0123456789", min_size=1, max_size=19)
numbers = st.builds(str.__add__, st.sampled_from(["", "-", "+"]), digits | st.builds("{}.{}".format, digits, digits))


@given(number=numbers, suffix=st.sampled_from(sorted(FACTORS)), scale=st.sampled_from([1, 1000]))
def test_agrees_with_decimal_arithmetic(number: str, suffix: str, scale: int) -> None:
    read = whole_value if scale == 1 else milli_value
    with localcontext(prec=200):
        exact = int((Decimal(number) * FACTORS[suffix] * scale).to_integral_value(ROUND_UP))
    if INT64_MIN <= exact <= INT64_MAX:
        assert read(number + suffix) == exact
    else:
        with pytest.raises(QuantityError, match=f"than {INT64_MAX if exact > 0 else INT64_MIN}"):
            read(number + suffix)


@given(st.integers(-(2**53), 2**53) | st.floats(1e-9, 1e12))
def test_a_number_reads_as_its_own_text(number: float) -> None:
    assert milli_value(number) == milli_value(repr(number))


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (milli_value, whole_value):
        try:
            assert INT64_MIN <= read(text) <= INT64_MAX
        except QuantityError as error:
            assert len(str(error)) < 1000


# ------------------------------------------------------------------------------------------------------- writing

#: resource, amount in its unit, text
WRITTEN = [
    ("cpu", 0, "0"),
    ("cpu", 3000, "3"),
    ("cpu", 2500, "2500m"),
    ("cpu", 1_000_000, "1k"),
    ("cpu", -1500, "-1500m"),
    ("cpu", 2500.9, "2500m"),
    ("cpu", -0.5, "0"),
    ("memory", 0, "0"),
    ("memory", 12 * 2**30, "12Gi"),
    ("memory", 1024, "1Ki"),
    ("memory", 1536, "1536"),
    ("memory", 1023, "1023"),
    ("memory", 1000, "1k"),  # below 1 KiB Kubernetes turns to decimal suffixes
    ("memory", -1000, "-1k"),
    ("memory", -1024, "-1Ki"),
    ("memory", 10**9, "1000000000"),
    ("memory", 2**60, "1Ei"),
    ("pods", 110, "110"),
    ("pods", 1000, "1k"),
    ("nvidia.com/gpu", 8000, "8"),
    ("nvidia.com/gpu", 500, "500m"),
    ("ephemeral-storage", 1000 * 2**30, "1073741824"),
    ("ephemeral-storage", 10**18, "1P"),
]


@pytest.mark.parametrize(("name", "amount", "text"), WRITTEN)
def test_writes_the_canonical_text(name: str, amount: float, text: str) -> None:
    assert format_quantity(name, amount) == text


@pytest.mark.parametrize("amount", [math.inf, -math.inf, math.nan, 2.0**63, 1.7976931348623157e308])
def test_refuses_to_write_what_does_not_fit(amount: float) -> None:
    with pytest.raises(QuantityError, match=r"of cpu cannot be written .* beyond an int64"):
        format_quantity("cpu", amount)


@given(name=st.sampled_from(["cpu", "memory", "pods", "nvidia.com/gpu"]), amount=st.integers(INT64_MIN, INT64_MAX))
def test_what_is_written_reads_back(name: str, amount: int) -> None:
    read = whole_value if name in ("memory", "pods") else milli_value
    assert read(format_quantity(name, amount)) == amount


# ----------------------------------------------------------------------------------------------------- durations

DURATIONS = [
    ("0", 0.0),
    ("+0", 0.0),
    ("-0", 0.0),
    ("0s", 0.0),
    ("5s", 5.0),
    ("1h30m", 5400.0),
    ("1.5h", 5400.0),
    (".5s", 0.5),
    ("1.s", 1.0),
    ("500ms", 0.5),
    ("1m1ms", 60.001),
    ("100us", 1e-4),
    ("1µs", 1e-6),
    ("1μs", 1e-6),
    ("3ns", 3e-9),
    ("0.1ns", 0.0),  # nothing below a nanosecond
    ("-1m30s", -90.0),
    ("+2h", 7200.0),
    ("1s1s", 2.0),
    ("2562047h47m16.854775807s", INT64_MAX / 1e9),
]


@pytest.mark.parametrize(("text", "seconds"), DURATIONS)
def test_reads_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "1", "s", ".s", "1d", "1h 2m", " 1s", "1S", "h1", "--1s", "1s-1m", "1e3s", "nan", "1s" * 40, "١s"]
)
def test_refuses_what_is_not_a_duration_and_says_what_is(text: str) -> None:
    with pytest.raises(DurationError, match="is not a duration; accepted: numbers with units") as error:
        parse_duration(text)
    assert repr(text[:16])[:-1] in str(error.value)


@pytest.mark.parametrize(("thing", "said"), [(None, "nothing"), (5, "a number"), ({}, "a mapping"), (b"1s", "a bytes")])
def test_a_duration_is_a_text(thing: str, said: str) -> None:
    with pytest.raises(DurationError, match=f"^{said} is not a duration"):
        parse_duration(thing)


def test_refuses_a_duration_beyond_an_int64_of_nanoseconds() -> None:
    with pytest.raises(DurationError, match="is longer than 9223372036854775807 nanoseconds"):
        parse_duration("2562047h47m16.854775808s")
