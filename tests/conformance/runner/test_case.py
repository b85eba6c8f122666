"""Case files are read as carefully as manifests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.runner.case import case_of, read_yaml
from tests.conformance.runner.result import Unusable

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{this}: &{this} [{', '.join([f'*{last}'] * 10)}]\n" for last, this in zip("abcdefg", "bcdefgh", strict=True)
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(BOMB, "file is not usable YAML: .*aliases that expand", id="aliases"),
        pytest.param("[" * 100_000, "file is not usable YAML: .*nested", id="nesting"),
        pytest.param("a: 1\na: 2\n", "file is not valid YAML: .*duplicate key a", id="twice"),
        pytest.param("a: 1\n---\nb: 2\n", "file: found 2 documents, wanted one", id="two"),
    ],
)
def test_files_that_are_no_case(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "case.yaml").write_text(text)
    with pytest.raises(Unusable, match=why):
        read_yaml(tmp_path / "case.yaml")


def test_a_conf_is_read_like_a_file() -> None:
    assert case_of("f", {"kind": "cycle", "conf": "actions: allocate\n"}).conf == {"actions": "allocate"}
    with pytest.raises(Unusable, match="conf is not valid YAML: line 2"):
        case_of("f", {"kind": "cycle", "conf": "actions: [\n"})


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="file cannot be read: No such file"):
        read_yaml(tmp_path / "none.yaml")
