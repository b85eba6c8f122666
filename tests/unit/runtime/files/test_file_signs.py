from __future__ import annotations

import os
from pathlib import Path

from pumice.runtime.files.file_signs import is_archive
from pumice.runtime.files.snapshot_file import to_bytes
from tests.unit.runtime.saved import CYCLE


def test_a_snapshot_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    snapshot = to_bytes(CYCLE)
    for name, content in {"a.yaml": snapshot, "b.pumice": b"kind: Node", "c": b"", "d.zip": b"PK\x03\x04"}.items():
        (tmp_path / name).write_bytes(content)
    assert {path.name for path in tmp_path.iterdir() if is_archive(path)} == {"a.yaml", "d.zip"}
    assert not is_archive(tmp_path)
    assert not is_archive(tmp_path / "gone")
    assert not is_archive(Path(os.devnull))
