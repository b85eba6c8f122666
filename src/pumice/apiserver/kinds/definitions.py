"""CustomResourceDefinitions that are part of Pumice: Volcano's kinds, and KAI's."""

from __future__ import annotations

from pathlib import Path

from pumice.model.manifest.reading.fields import Obj
from pumice.runtime.files.documents import documents
from pumice.runtime.problems.problem import Problem

_PACKAGE = Path(__file__).resolve().parents[2]
#: Folders in an installed package, and in a checkout.
_FOLDERS = (
    (_PACKAGE / "crds", _PACKAGE.parents[1] / "deploy" / "crds"),
    (_PACKAGE / "crds-kai", _PACKAGE.parents[1] / "deploy" / "kai" / "crds"),
)


def own_definitions() -> list[Obj]:
    """Return the definitions. Raises: FileNotFoundError if this installation lacks them."""
    found: list[Obj] = []
    for folder in map(_there, _FOLDERS):
        for path in sorted(folder.glob("*.yaml")):
            for document in documents(path):
                assert not isinstance(document, Problem), f"{document.where}: {document.what}"
                found.append(document.obj)
    return found


def _there(places: tuple[Path, Path]) -> Path:
    found = next((each for each in places if each.is_dir()), None)
    if found is None:
        raise FileNotFoundError(f"no definitions of kinds in {places[0]}: this installation is not complete")
    return found
