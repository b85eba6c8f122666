"""Decisions are those of the table: a change that moves none of them leaves every digest as it is."""

import json

import pytest

from tests.simulation.digests import COMMANDS, TABLE, digest_of, is_there

KNOWN: dict[str, str] = json.loads(TABLE.read_text())


def test_the_table_has_every_command_and_no_other() -> None:
    assert list(KNOWN) == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_decisions_are_those_of_the_table(name: str) -> None:
    if not is_there(name):
        pytest.skip(f"{name}: the trace is not beside the checkout")
    assert digest_of(name) == KNOWN[name], "if it means to decide otherwise: python -m tests.simulation.digests --write"
