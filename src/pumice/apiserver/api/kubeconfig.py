"""Write a kubeconfig for this server."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from pumice.apiserver.api.tls import AccessError
from pumice.model.manifest.reading.fields import Obj
from pumice.runtime.files.private import write_private

_NO_TOKEN = "none-is-asked-for"  # lightkube treats a user without credentials as missing
_MARK = "# Written by pumice serve; each start overwrites it.\n"


def write_kubeconfig(path: Path, url: str, token: str = "", trusted: bytes = b"") -> None:
    """Write a kubeconfig. Raises: AccessError if a foreign file is in the way, OSError."""
    if path.exists() and not _is_ours(path):
        raise AccessError(f"{path} is there and was not written by pumice serve; name another file with --kubeconfig")
    cluster: Obj = {"server": url}
    if trusted:
        cluster["certificate-authority-data"] = base64.b64encode(trusted).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "pumice",
        "clusters": [{"name": "pumice", "cluster": cluster}],
        "users": [{"name": "pumice", "user": {"token": token or _NO_TOKEN}}],
        "contexts": [{"name": "pumice", "context": {"cluster": "pumice", "user": "pumice"}}],
    }
    write_private(path, _MARK + json.dumps(config, indent=2) + "\n")


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MARK)) == _MARK.encode()
