"""The page of extension points is the one that the points themselves would write."""

from docs.points import PAGE, page
from pumice.framework.points import POINTS
from tests.tidy import repo


def test_the_page_of_points_is_fresh() -> None:
    assert repo.text(PAGE) == page(), "run .venv/bin/python -m docs.points"


def test_every_point_is_on_it() -> None:
    missing = [name for name in POINTS if f"| `{name}` |" not in page()]
    assert not missing
