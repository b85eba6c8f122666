"""Keys with which the pods of a job reach each other by ssh, as a Secret that all of them mount.

Source: Volcano's job plugin ssh. The name of the Secret ends in the UID of its job, unlike Volcano's. So an existing
one is the job's own, and no right to read Secrets is needed.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
from collections.abc import Callable
from typing import NamedTuple

from pumice.model.manifest.reading.fields import FieldError, Obj
from pumice.model.workloads.job import VolcanoJob
from pumice.runtime.controllers.job_plugins import Plugins, argument, hosts, port_of

_BITS, _EXPONENT = "2048", 65537
_TIMEOUT_S = 20
_HOME = "/root"  # home of the user of containers, unless their image says otherwise


class Keys(NamedTuple):
    """``private`` as PEM, ``public`` as a line of ``authorized_keys``."""

    private: str
    public: str


class NoKeys(Exception):
    """Keys could not be created."""


NewKeys = Callable[[], Keys]


def new_keys() -> Keys:
    """Return an RSA key pair, made by openssl. Raises: NoKeys."""
    program = shutil.which("openssl")
    if program is None:
        raise NoKeys("openssl, which creates keys, is not installed; use --ssh-private-key and --ssh-public-key")
    private = _answer(program, "genrsa", "-traditional", _BITS)
    modulus = int(_answer(program, "rsa", "-noout", "-modulus", given=private).partition("=")[2], 16)
    blob = b"".join(_field(part) for part in (b"ssh-rsa", _whole(_EXPONENT), _whole(modulus)))
    return Keys(private, f"ssh-rsa {base64.b64encode(blob).decode()}\n")


def _answer(*command: str, given: str = "") -> str:
    try:
        made = subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoKeys(f"openssl created no keys: {type(error).__name__}") from None
    if made.returncode:
        raise NoKeys(f"openssl created no keys: exit code {made.returncode}")
    return made.stdout


def _field(part: bytes) -> bytes:
    """Return a field with its length before it (RFC 4251)."""
    return len(part).to_bytes(4, "big") + part


def _whole(number: int) -> bytes:
    """Return a positive mpint (RFC 4251)."""
    return number.to_bytes(number.bit_length() // 8 + 1, "big")


def secret_name(job: VolcanoJob) -> str:
    return f"{job.name}-ssh-{job.uid[:12]}".rstrip("-")


def check(plugins: Plugins) -> None:
    """Raise FieldError for an invalid port, or half a pair of keys."""
    if "ssh" not in plugins:
        return
    port_of(plugins, "ssh", "ssh-port", "22")
    given = [bool(argument(plugins["ssh"], name, "")) for name in ("ssh-private-key", "ssh-public-key")]
    if given[0] != given[1]:
        raise FieldError("spec.plugins.ssh", "one key", "both --ssh-private-key and --ssh-public-key, or neither")


def secret_data(job: VolcanoJob, plugins: Plugins, make: NewKeys) -> dict[str, str]:
    """Return the files as in a Secret. Raises: NoKeys."""
    given = plugins["ssh"]
    private, public = argument(given, "ssh-private-key", ""), argument(given, "ssh-public-key", "")
    keys = Keys(private, public) if private else make()
    files = {
        "id_rsa": keys.private,
        "id_rsa.pub": keys.public,
        "authorized_keys": keys.public,
        "config": _config(job, port_of(plugins, "ssh", "ssh-port", "22")),
    }
    return {name: base64.b64encode(text.encode()).decode() for name, text in files.items()}


def _config(job: VolcanoJob, port: int) -> str:
    lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
    for task in job.tasks:
        for host in hosts(job, task.name, task.replicas):
            lines += [f"Host {host.partition('.')[0]}", f"  HostName {host}", f"  Port {port}"]
    return "\n".join(lines) + "\n"


def volume(job: VolcanoJob) -> Obj:
    """Return the volume. Only its user may read a private key, as ssh requires."""
    return {"secret": {"secretName": secret_name(job), "defaultMode": 0o600}}


def mount_path(plugins: Plugins) -> str:
    """Return the folder in every container."""
    return argument(plugins["ssh"], "ssh-key-file-path", f"{_HOME}/.ssh")
