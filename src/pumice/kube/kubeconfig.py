"""The way in that a user means: a kubeconfig, or the service account of the pod that this runs in.

Reading, plugins (exec v1), OpenID and service accounts are the business of the ``kubernetes`` package, which is slow to
import and therefore imported when it is needed. What it gives is renewed here: after a 401, and each minute for what
changes by itself (token files, tokens that end).
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pumice.kube.access import Access, Headers
from pumice.kube.errors import AccessError, clean

_RENEW_S = 60.0
_LOADER_LOG = logging.getLogger("kubernetes.aio.config.kube_config")
_log = logging.getLogger("pumice.kube")


async def find_access(kubeconfig: str = "", master: str = "", *, home: Path | None = None) -> Access:
    """``kubeconfig``, else what KUBECONFIG names, else the pod's service account, else ``~/.kube/config``.

    ``master`` is an address to use in place of the one that is found; alone, it needs no credentials. Raises: AccessError.
    """
    paths = kubeconfig or os.environ.get("KUBECONFIG", "")
    if not paths and os.environ.get("KUBERNETES_SERVICE_HOST"):
        return _moved(await _Credentials(_in_cluster, "the service account").access(), master)
    default = (home or Path.home()) / ".kube" / "config"
    if not paths and master and not default.exists():
        return Access(_address(master, "--master"))
    paths = paths or str(default)
    there = [part for part in paths.split(os.pathsep) if part and Path(part).expanduser().is_file()]
    if not there:
        raise AccessError(f"{clean(paths)}: no such kubeconfig; name one with --kubeconfig, or set KUBECONFIG")
    return _moved(await _Credentials(_of_files(os.pathsep.join(there)), paths).access(), master)


def _moved(access: Access, master: str) -> Access:
    return replace(access, url=_address(master, "--master")) if master else access


def _address(url: str, where: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise AccessError(f"{where}: found {clean(url)!r} as the server's address, wanted http:// or https://")
    return url.rstrip("/")


# -- what the kubernetes package reads

#: Fills its Configuration, with nothing kept where ``fresh``; answers whether to look again now and then.
Load = Callable[[Any, bool], Awaitable[bool]]


def _of_files(paths: str) -> Load:
    """Anew from the files each time, but for a plugin's answer, which holds until it ends."""
    kept: list[Any] = []

    async def load(conf: Any, fresh: bool) -> bool:
        from kubernetes.aio.config.kube_config import KubeConfigLoader, KubeConfigMerger  # noqa: PLC0415 - slow

        if fresh or not kept or not hasattr(kept[0], "exec_plugin_expiry"):
            kept[:] = [KubeConfigLoader(KubeConfigMerger(paths).config, config_base_path=None)]
        loader = kept[0]
        user = loader._user
        with _complaints() as said:
            await loader.load_and_set(conf)
        has_any = bool(conf.api_key) or bool(conf.cert_file)
        if user is not None and "exec" in user and not has_any:
            raise AccessError(f"the credential plugin failed: {said[-1] if said else 'it gave no credentials'}")
        return user is not None and ("exec" not in user or hasattr(loader, "exec_plugin_expiry"))

    return load


async def _in_cluster(conf: Any, fresh: bool) -> bool:
    from kubernetes.aio.config.incluster_config import load_incluster_config  # noqa: PLC0415 - slow

    load_incluster_config(conf, try_refresh_token=False)
    return True


@contextmanager
def _complaints() -> Iterator[list[str]]:
    """What the loader logs in place of raising it."""
    said: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(clean(record.getMessage()))

    ear, spread = Ear(logging.ERROR), _LOADER_LOG.propagate
    _LOADER_LOG.addHandler(ear)
    _LOADER_LOG.propagate = False
    try:
        yield said
    finally:
        _LOADER_LOG.removeHandler(ear)
        _LOADER_LOG.propagate = spread


# -- credentials over time


class _Credentials:
    """Of one source. What cannot be renewed stays as it was, with a line in the log."""

    def __init__(self, load: Load, whence: str) -> None:
        self._load, self._whence = load, whence
        self._headers: Headers = {}
        self._ssl: ssl.SSLContext | None = None
        self._changes = False
        self._read_at = 0.0
        self._lock = asyncio.Lock()

    async def access(self) -> Access:
        """Raises: AccessError."""
        conf = await self._read(fresh=True)
        if conf.tls_server_name:
            raise AccessError(f"{self._whence}: tls-server-name is not supported")
        url = _address(str(conf.host or ""), self._whence)
        return Access(url, self._ssl, self.headers, proxy=conf.proxy or None, whence=self._whence)

    async def headers(self, renew: bool) -> Headers:
        """The Authorization of the moment."""
        asked = time.monotonic()
        if not renew and not (self._changes and asked - self._read_at > _RENEW_S):
            return self._headers
        async with self._lock:
            if self._read_at < asked:  # nobody else did while this waited
                try:
                    await self._read(renew)
                except AccessError as error:
                    self._read_at = time.monotonic()
                    _log.error("credentials not renewed: %s", error)
        return self._headers

    async def _read(self, fresh: bool) -> Any:
        """Raises: AccessError."""
        try:
            from kubernetes.aio.client import Configuration  # noqa: PLC0415 - slow
        except ImportError:
            raise AccessError("the package kubernetes is not installed: pip install 'pumice[kube]'") from None
        conf = Configuration()
        conf.host, conf.api_key = "", {}
        try:
            self._changes = await self._load(conf, fresh)
            self._trust(conf)
        except AccessError as error:
            raise AccessError(f"{self._whence}: {error}") from None
        except Exception as error:  # whatever the package makes of a file with nonsense in it
            why = clean(" ".join(str(error).split())) or type(error).__name__
            raise AccessError(f"{self._whence}: cannot be used: {why}") from None
        token = conf.api_key.get("BearerToken", "")
        self._headers = {"Authorization": token.strip()} if token else {}
        self._read_at = time.monotonic()
        return conf

    def _trust(self, conf: Any) -> None:
        """The same context for ever, as connections are made with it: a new certificate is put into it."""
        if not str(conf.host or "").startswith("https://"):
            return
        if self._ssl is None:
            self._ssl = ssl.create_default_context(cafile=conf.ssl_ca_cert or None)
            if not conf.verify_ssl:
                self._ssl.check_hostname, self._ssl.verify_mode = False, ssl.CERT_NONE
        if conf.cert_file:
            self._ssl.load_cert_chain(conf.cert_file, conf.key_file or None)
