"""Files with secrets: who may read them, and where they are written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pumice.runtime.files.private import NotPrivate, open_private, read_secret, require_own_folder, write_private


def test_only_the_owner_reads_it(tmp_path: Path) -> None:
    write_private(tmp_path / "a", "text")
    assert (tmp_path / "a").read_text() == "text"
    assert (tmp_path / "a").stat().st_mode & 0o077 == 0
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_link_that_waits_under_a_name_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("theirs")
    (tmp_path / "a").symlink_to(tmp_path / "theirs")
    (tmp_path / f".a.{os.getpid()}.part").symlink_to(tmp_path / "theirs")  # the name that could be guessed
    write_private(tmp_path / "a", "secret")
    assert (tmp_path / "theirs").read_text() == "theirs"
    assert not (tmp_path / "a").is_symlink()
    assert (tmp_path / "a").read_text() == "secret"


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_private(tmp_path / "a", "secret")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_an_opener_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "theirs")
    with pytest.raises(OSError, match="symbolic link"), open(tmp_path / "a", "w", opener=open_private):
        pass
    assert not (tmp_path / "theirs").exists()


def test_a_secret_that_everybody_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("secret")
    for mode, fine in ((0o600, True), (0o640, True), (0o644, False), (0o602, False)):
        path.chmod(mode)
        if fine:
            assert read_secret(path) == "secret"
            continue
        with pytest.raises(NotPrivate, match=r"token: all users of this machine can read it; chmod 600"):
            read_secret(path)


def test_a_folder_in_which_everybody_may_write_is_refused(tmp_path: Path) -> None:
    require_own_folder(tmp_path)
    tmp_path.chmod(0o1777)
    with pytest.raises(NotPrivate, match="all users of this machine can write there"):
        require_own_folder(tmp_path)
