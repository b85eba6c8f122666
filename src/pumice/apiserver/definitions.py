"""The CustomResourceDefinitions that Pumice brings along: those of ``deploy/crds``."""

from __future__ import annotations

from pathlib import Path

from pumice.model.manifest.fields import Obj
from pumice.runtime.documents import documents
from pumice.runtime.problems import Problem

_PACKAGE = Path(__file__).resolve().parents[1]
#: In an installed package, and in a checkout.
_FOLDERS = (_PACKAGE / "crds", _PACKAGE.parents[1] / "deploy" / "crds")


def own_definitions() -> list[Obj]:
    """Raises: FileNotFoundError where this installation lacks them."""
    folder = next((each for each in _FOLDERS if each.is_dir()), None)
    if folder is None:
        raise FileNotFoundError(f"no definitions of kinds in {_FOLDERS[0]}: this installation is not complete")
    found: list[Obj] = []
    for path in sorted(folder.glob("*.yaml")):
        for document in documents(path):
            assert not isinstance(document, Problem), f"{document.where}: {document.what}"
            found.append(document.obj)
    return found
