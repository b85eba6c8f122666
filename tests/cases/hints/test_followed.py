"""Who follows hints exactly ends with a job that is placed, in most random worlds."""

from collections import Counter

import pytest

from tests.cases.hints.followed import WORLDS, End, followed
from tests.properties.answers.answer_worlds import LANGUAGES

#: Part of the jobs that end placed.
LEAST = 0.9

some_worlds = pytest.mark.parametrize("worlds", [10, pytest.param(WORLDS, marks=pytest.mark.long)])


@pytest.mark.parametrize("language", LANGUAGES)
@some_worlds
def test_followed_hints_end_with_a_job_that_is_placed(language: str, worlds: int) -> None:
    count = Counter(each.end for _, each in followed(language, worlds, claims=False))
    assert count[End.PLACED] >= LEAST * sum(count.values()), count
    assert not count[End.NO_HINT], count


@pytest.mark.parametrize("language", LANGUAGES)
@some_worlds
def test_hints_about_claims_can_be_followed_too(language: str, worlds: int) -> None:
    count = Counter(each.end for _, each in followed(language, worlds))
    assert count[End.PLACED] >= LEAST * sum(count.values()), count
    assert not count[End.NO_HINT], count
