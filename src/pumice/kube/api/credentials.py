"""Access from a kubeconfig or a pod's service account, as the official Kubernetes library reads them.

Token, token file, client certificate, exec plugin and OIDC. To be imported late: the library takes a third of a second.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from kubernetes.aio.client import Configuration
from kubernetes.aio.config.incluster_config import InClusterConfigLoader
from kubernetes.aio.config.kube_config import KubeConfigLoader, load_kube_config

from pumice.kube.api.access import Access, Headers
from pumice.kube.api.errors import AccessError, clean
from pumice.runtime.problems.problem import not_utf8

_log = logging.getLogger("pumice.kube")
_LIBRARY_LOG = logging.getLogger("kubernetes.aio.config.kube_config")

_LOAD_S = 60.0  # an exec plugin may ask the user
_REFRESH_S = 60.0  # files change and tokens expire; a token that is still valid costs nothing
_AGAIN_S = 5.0  # many requests may be refused at once, and one renewal serves them all
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_NEVER = datetime(9999, 1, 1, tzinfo=UTC)


async def find_access(
    kubeconfig: str = "", context: str | None = None, environ: Mapping[str, str] = os.environ
) -> Access:
    """Return the access from ``kubeconfig``, ``$KUBECONFIG``, ``~/.kube/config`` or the pod's service account, in this
    order.

    ``context``: of the kubeconfig, or else its current one. Raises: AccessError, which says in one line what is wrong.
    The server is not asked yet: see ``Client.version``.
    """
    home = Path(environ.get("HOME") or Path.home()) / ".kube" / "config"
    named = kubeconfig or environ.get("KUBECONFIG", "")
    if named or home.exists():
        return await kubeconfig_access(named or str(home), context)
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return await in_cluster_access(environ)
    raise AccessError(f"no kubeconfig: none was given, {home} does not exist, and this is not running in a pod")


async def kubeconfig_access(paths: str, context: str | None = None) -> Access:
    """Return the access from one kubeconfig, or from several that are merged, separated by ``os.pathsep``. Raises:
    AccessError."""
    if not any(Path(path).expanduser().exists() for path in paths.split(os.pathsep) if path):
        raise AccessError(f"kubeconfig {clean(paths)}: no such file")
    source = _Kubeconfig(paths, context)
    return await _access(f"kubeconfig {clean(paths)}", source.load)


async def in_cluster_access(environ: Mapping[str, str] = os.environ, mount: Path = _SERVICE_ACCOUNT) -> Access:
    """Return the access from the service account that is mounted into a pod. Raises: AccessError."""

    async def load(anew: bool) -> Configuration:
        configuration = Configuration()
        files = str(mount / "token"), str(mount / "ca.crt")
        InClusterConfigLoader(*files, environ=environ).load_and_set(configuration)
        return configuration

    return await _access("the service account of this pod", load)


class _Kubeconfig:
    """Loads credentials again, from what the library keeps, or with ``anew`` from the files, which may have been
    corrected."""

    def __init__(self, paths: str, context: str | None) -> None:
        self._paths, self._context = paths, context
        self._loader: KubeConfigLoader | None = None

    async def load(self, anew: bool) -> Configuration:
        configuration = Configuration()
        with _complaints() as complaints:
            if anew or self._loader is None:
                self._loader = await load_kube_config(
                    self._paths, self._context, client_configuration=configuration, persist_config=False
                )
                if not hasattr(self._loader, "exec_plugin_expiry"):
                    self._loader.exec_plugin_expiry = _NEVER  # a plugin that states no expiry is run again after a 401
            else:
                await self._loader.load_and_set(configuration)
        if complaints:
            raise AccessError(complaints[0])
        return configuration


@dataclass(slots=True)
class _RenewedCredentials:
    """The present Authorization, loaded again from time to time, and after the server refused it."""

    whence: str
    load: Callable[[bool], Awaitable[Configuration]]
    ssl_context: ssl.SSLContext | None
    held: Headers
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    loaded_at: float = field(default_factory=time.monotonic)

    async def headers(self, renew: bool) -> Headers:
        if renew or (self._age() > _REFRESH_S and not self.lock.locked()):
            async with self.lock:
                if self._age() > (_AGAIN_S if renew else _REFRESH_S):
                    await self._renew(renew)
        return self.held

    def _age(self) -> float:
        return time.monotonic() - self.loaded_at

    async def _renew(self, anew: bool) -> None:
        try:
            found = await _loaded(self.whence, self.load, anew)
            self.held = _headers(self.whence, found)
            if self.ssl_context is not None:
                _show_certificate(self.whence, self.ssl_context, found)
        except AccessError as error:
            _log.warning("%s; going on with the credentials of before", error)
        self.loaded_at = time.monotonic()


async def _access(whence: str, load: Callable[[bool], Awaitable[Configuration]]) -> Access:
    found = await _loaded(whence, load, True)
    if not found.host:
        raise AccessError(f"{whence}: it names no server")
    context = _tls(whence, found)
    renewing = _RenewedCredentials(whence, load, context, _headers(whence, found))
    return Access(
        found.host.rstrip("/"),
        context,
        renewing.headers,
        found.proxy,
        server_name=found.tls_server_name or None,
        whence=whence,
    )


async def _loaded(whence: str, load: Callable[[bool], Awaitable[Configuration]], anew: bool) -> Configuration:
    try:
        return await asyncio.wait_for(load(anew), _LOAD_S)
    except TimeoutError:
        raise AccessError(f"{whence}: no credentials after {_LOAD_S:.0f} s") from None
    except OSError as error:
        why = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
        raise AccessError(f"{whence}: cannot be read: {clean(why)}") from None
    except UnicodeDecodeError as error:
        raise AccessError(f"{whence}: {not_utf8(error)}") from None
    except Exception as error:  # the library may raise anything for an invalid file
        raise AccessError(f"{whence}: {clean(' '.join(str(error).split()) or type(error).__name__)}") from None


def _headers(whence: str, configuration: Configuration) -> Headers:
    token = (configuration.api_key.get("BearerToken") or "").strip()
    if not token.isprintable():
        raise AccessError(f"{whence}: the token has control characters in it")
    return {"Authorization": token} if token else {}


def _tls(whence: str, configuration: Configuration) -> ssl.SSLContext | None:
    if not configuration.host.startswith("https:"):
        return None
    try:
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
    except OSError as error:
        raise AccessError(f"{whence}: certificate authority {configuration.ssl_ca_cert}: {error}") from None
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    _show_certificate(whence, context, configuration)
    return context


def _show_certificate(whence: str, context: ssl.SSLContext, configuration: Configuration) -> None:
    """Set the client certificate of future connections."""
    if not configuration.cert_file:
        return
    try:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    except OSError as error:
        raise AccessError(f"{whence}: client certificate {configuration.cert_file}: {error}") from None


@contextmanager
def _complaints() -> Iterator[list[str]]:
    """Collect what the library logs as errors instead of raising it, such as a failed exec plugin."""
    said: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    was = _LIBRARY_LOG.propagate
    _LIBRARY_LOG.addHandler(handler)
    _LIBRARY_LOG.propagate = False
    try:
        yield said
    finally:
        _LIBRARY_LOG.removeHandler(handler)
        _LIBRARY_LOG.propagate = was
