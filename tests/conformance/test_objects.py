"""Every object of every recorded Volcano case can be read, but for a few kinds that are named here."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.model.manifest import Decoder, ManifestError, UnsupportedKind

SHARED = Path(os.environ.get("PUMICE_SHARED") or Path(__file__).parents[3] / "shared")
FOLDERS = [SHARED / "conformance" / name for name in ("volcano", "volcano-generated")]

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(
        not all(folder.is_dir() for folder in FOLDERS),
        reason=f"no recorded cases at {FOLDERS[0]}: put `shared` beside the checkout or set PUMICE_SHARED",
    ),
]


def objects_of(case: dict[str, Any]) -> Iterator[Any]:
    yield from case.get("objects") or ()
    cycles = case.get("cycles")
    for cycle in cycles if isinstance(cycles, list) else ():
        yield from cycle.get("add") or ()


def test_every_object_decodes() -> None:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    decoder = Decoder()
    unread: Counter[str] = Counter()
    read: Counter[str] = Counter()
    wrong: list[str] = []
    for folder in FOLDERS:
        for path in sorted(folder.glob("*/*.yaml")):
            for obj in objects_of(yaml.load(path.read_text(), loader)):
                try:
                    read[type(decoder.decode(obj)).__name__] += 1
                except UnsupportedKind as error:
                    unread[error.kind] += 1
                except ManifestError as error:
                    wrong.append(f"{path.name}: {error}")
    assert wrong == []
    assert not unread
    assert read.total() > 17_000
