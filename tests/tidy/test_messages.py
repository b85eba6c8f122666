"""Messages that the guide explains are those that the code prints."""

import ast
import functools
import re

import pytest

from tests.tidy import repo

#: Pages whose tables explain messages, in the first column, or in the second after a log level.
PAGES = ("embedded-server", "troubleshooting")
ROW = re.compile(r"^\| (?:\d \| )?(?P<cell>`.+?`) \| ", re.MULTILINE)
#: The place of a value in a message: an ellipsis, a name in angle brackets, a number, a single capital letter.
VALUE = re.compile(r"…|<[^>]*>|\d+|\b[A-Z]\b")
#: Messages that the code puts together from parts that are too short to be found.
PUT_TOGETHER = (
    "error: …/name.py: line 12: …",
    "After allocated Task <ns/pod>, … to Node <n>: idle <…>, used <…>, releasing <…>",
    "Job <ns/group> Queue <q> skip allocate, reason: …",
    "… skip enqueue, reason: …",
    "The attributes of queue <q> in proportion: deserved <…>, …, share <0.50>",
    "Enter Allocate ...",
    "Leaving Allocate ...",
)
#: Shortest part of a message that is looked for.
PART_MIN = 7


@functools.cache
def texts() -> tuple[str, ...]:
    """All texts in the code, without the values in them."""
    found = set[str]()
    for path in repo.files(".py", under="src"):
        for node in ast.walk(repo.tree(path)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.update(" ".join(part.split()) for part in re.split(r"%[sdr]|%\.\d+f", node.value))
    return tuple(sorted(each for each in found if len(each) >= PART_MIN))


def is_printed(part: str) -> bool:
    """True if the code has a part of a message, or most of it with a value in its place."""
    return any(part in text or (text in part and 2 * len(text) >= len(part)) for text in texts())


def messages() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        for row in ROW.finditer(repo.text(repo.ROOT / f"docs/guide/{page}.md")):
            found += [(page, code) for code in re.findall(r"`([^`]+)`", row["cell"]) if " " in code]
    return found


@pytest.mark.parametrize(("page", "message"), messages())
def test_messages_of_the_guide_are_printed(page: str, message: str) -> None:
    if message in PUT_TOGETHER:
        return
    parts = (part.strip(" .,:;") for part in VALUE.split(message.removeprefix("error: ")))
    missing = [part for part in parts if len(part) >= PART_MIN and not is_printed(part)]
    assert not missing, f"{page}.md explains a message that nothing prints: {missing}"


def test_the_table_of_exceptions_names_messages_of_the_guide() -> None:
    assert set(PUT_TOGETHER) <= {message for _, message in messages()}


def test_a_message_that_is_not_printed_is_found() -> None:
    assert len(messages()) > 40 and not is_printed("another program has port")
