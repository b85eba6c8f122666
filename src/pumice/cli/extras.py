"""Packages of an extra, which only some commands need and a plain installation does not have."""

from __future__ import annotations

from importlib.util import find_spec

from pumice.cli.errors import InputError

#: Extra -> the modules that it brings.
EXTRAS = {
    "serve": ("aiohttp", "prometheus_client", "re2"),
    "run": ("aiohttp", "prometheus_client", "re2", "kubernetes"),
}


def require(command: str, extra: str) -> None:
    """Raise InputError if a package of the extra is missing. To be called before the command does anything."""
    missing = [module for module in EXTRAS[extra] if find_spec(module) is None]
    if missing:
        raise InputError(
            f"pumice {command} needs packages that are not installed ({', '.join(missing)}): "
            f"pip install 'pumice[{extra}]'"
        )
