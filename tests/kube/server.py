"""A real API server on loopback: etcd and kube-apiserver of their own, free ports, stopped by pid."""

from __future__ import annotations

import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.tied import Tie

BUILD = Path(__file__).resolve().parents[2] / "scripts" / "build-kube-assets"
TOKENS = {"admin": "system:masters", "scheduler": "pumice:schedulers", "nobody": ""}
_START_TRIES = 3
_ADMIN = "/O=system:masters/CN=cert-admin"
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class NoAssets(Exception):
    """There are neither binaries nor a Go to build them with."""


def find_assets(*names: str) -> Path:
    """The folder with etcd, kube-apiserver and ``names``; built once where it is not there.

    Raises: NoAssets.
    """
    named = os.environ.get("KUBEBUILDER_ASSETS")
    wanted = ["etcd", "kube-apiserver", *names]
    if named and all(os.access(Path(named) / name, os.X_OK) for name in wanted):
        return Path(named)
    env = {**os.environ, "KUBEBUILDER_ASSETS": ""}
    found = subprocess.run(
        [sys.executable, BUILD, "--only", *wanted], env=env, stdout=subprocess.PIPE, text=True, check=False
    )
    if found.returncode:
        raise NoAssets(f"{BUILD.name} failed with {found.returncode}: see above")
    return Path(found.stdout.splitlines()[-1])


def can_have_assets() -> bool:
    """Whether find_assets has anything to go by."""
    beside = Path(sys.executable).parent / "go"
    return bool(os.environ.get("KUBEBUILDER_ASSETS") or shutil.which("go") or beside.exists())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class ApiServer:
    """etcd and kube-apiserver below one folder; ``stop_api`` and ``start_api`` restart the latter on its old port."""

    def __init__(self, assets: Path, folder: Path, *extra_flags: str) -> None:
        self.assets = assets
        self.folder = folder
        self.extra_flags = extra_flags
        self.port = 0
        self._etcd_port = 0
        self._running: dict[str, tuple[subprocess.Popen[bytes], Tie]] = {}

    # -- what a client needs -------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def ca_file(self) -> Path:
        return self.folder / "ca.crt"

    def token(self, user: str = "admin") -> str:
        return f"{user}-token"

    def ssl_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.ca_file))

    def kubeconfig(self, user: str = "admin", **changes: str) -> Path:
        """A kubeconfig with that user's token; ``changes`` replace server or token."""
        path = self.folder / f"{user}.kubeconfig"
        server, token = changes.get("server", self.url), changes.get("token", self.token(user))
        path.write_text(
            "apiVersion: v1\nkind: Config\ncurrent-context: it\n"
            f"clusters: [{{name: it, cluster: {{server: '{server}', certificate-authority: '{self.ca_file}'}}}}]\n"
            f"users: [{{name: it, user: {{token: '{token}'}}}}]\n"
            "contexts: [{name: it, context: {cluster: it, user: it}}]\n"
        )
        return path

    def expired_certificate(self, folder: Path) -> tuple[Path, Path]:
        """An administrator's certificate that ended in 2020, and its key."""
        config, key, request, made = (folder / name for name in ("ca.cnf", "old.key", "old.csr", "old.crt"))
        config.write_text(
            f"[ca]\ndefault_ca=it\n[it]\nnew_certs_dir={folder}\ndatabase={folder}/index\ndefault_md=sha256\n"
            f"certificate={self.ca_file}\nprivate_key={self.folder}/ca.key\npolicy=any\nrand_serial=yes\n"
            "[any]\norganizationName=supplied\ncommonName=supplied\n"
        )
        (folder / "index").touch()
        _openssl("req", "-new", *_NEW_KEY, "-keyout", key, "-out", request, "-subj", _ADMIN)
        dates = ("-startdate", "20200101000000Z", "-enddate", "20200102000000Z")
        _openssl("ca", "-batch", "-notext", "-config", config, "-in", request, "-out", made, *dates)
        return made, key

    def pid(self, name: str) -> int:
        process, _ = self._running[name]
        return process.pid

    # -- life ----------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write_keys()
        for attempt in range(_START_TRIES):  # another process may take a free port first
            self.port, self._etcd_port = free_port(), free_port()
            self._start_etcd()
            try:
                self.start_api()
                return
            except RuntimeError:
                self.stop()
                shutil.rmtree(self.folder / "etcd", ignore_errors=True)
                if attempt == _START_TRIES - 1:
                    raise

    def stop(self) -> None:
        for name in ("kube-apiserver", "etcd"):
            self._stop(name, grace_s=1.0)

    def start_api(self) -> None:
        f = self.folder
        self._run(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--tls-cert-file={f}/server.crt",
            f"--tls-private-key-file={f}/server.key",
            f"--client-ca-file={f}/ca.crt",
            f"--token-auth-file={f}/tokens.csv",
            "--service-account-issuer=https://pumice.invalid",
            f"--service-account-key-file={f}/sa.key",
            f"--service-account-signing-key-file={f}/sa.key",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
            "--allow-privileged",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount",
            "--shutdown-delay-duration=0s",
            *self.extra_flags,
        )
        self._wait_ready(120.0)

    def stop_api(self, kill: bool = False) -> None:
        """Stop the API server alone; with ``kill`` it gets no time to say goodbye."""
        self._stop("kube-apiserver", grace_s=0.0 if kill else 1.0)

    def compact(self) -> None:
        """Make etcd forget every older revision, so that old resource versions answer 410 where they are read."""
        url = f"http://127.0.0.1:{self._etcd_port}/v3/kv/"
        got = json.loads(_post(url + "range", {"key": "AA==", "limit": 1}))
        _post(url + "compaction", {"revision": got["header"]["revision"], "physical": True})

    # -- pieces --------------------------------------------------------------------------------------------------------

    def _start_etcd(self) -> None:
        url = f"http://127.0.0.1:{self._etcd_port}"
        self._run(
            "etcd",
            f"--data-dir={self.folder}/etcd",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            "--listen-peer-urls=http://127.0.0.1:0",
            "--unsafe-no-fsync",
            "--log-level=error",
        )

    def _run(self, name: str, *flags: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [self.assets / name, *flags], stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )
        self._running[name] = process, Tie(process)

    def _stop(self, name: str, grace_s: float) -> None:
        if name not in self._running:
            return
        process, tie = self._running.pop(name)
        tie.cut()
        if grace_s:
            process.terminate()
            try:
                process.wait(grace_s)
            except subprocess.TimeoutExpired:
                process.kill()
        else:
            process.kill()
        process.wait()

    def _wait_ready(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        request = urllib.request.Request(self.url + "/readyz", headers={"Authorization": f"Bearer {self.token()}"})
        while not self._answers(request):
            if time.monotonic() > deadline:
                raise RuntimeError(f"kube-apiserver not ready in {seconds} s: {self._last_words('kube-apiserver')}")
            for name, (process, _) in self._running.items():
                with suppress(subprocess.TimeoutExpired):
                    code = process.wait(0.05)
                    raise RuntimeError(f"{name} ended with {code}: {self._last_words(name)}")

    def _answers(self, request: urllib.request.Request) -> bool:
        try:
            with urllib.request.urlopen(request, context=self.ssl_context(), timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _last_words(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")[-1500:]

    def _write_keys(self) -> None:
        f = self.folder
        usage = ("-addext", "keyUsage=critical,keyCertSign,digitalSignature")
        _openssl("req", "-x509", *_NEW_KEY, "-days", "30", *_files(f, "ca"), "-subj", "/CN=test-ca", *usage)
        names = "subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc"
        self._sign("server", "/CN=kube-apiserver", names)
        self._sign("client", _ADMIN, "extendedKeyUsage=clientAuth")
        _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f / "sa.key")
        lines = (f'{self.token(user)},{user},{user}-uid,"{groups}"' for user, groups in TOKENS.items())
        (f / "tokens.csv").write_text("\n".join(lines) + "\n")

    def _sign(self, name: str, subject: str, extension: str) -> None:
        by = ("-CA", self.ca_file, "-CAkey", self.folder / "ca.key")
        constraints = ("-addext", "basicConstraints=critical,CA:FALSE", "-addext", extension)
        files = _files(self.folder, name)
        _openssl("req", "-x509", *_NEW_KEY, "-days", "30", *files, "-subj", subject, *by, *constraints)


def _files(folder: Path, name: str) -> tuple[str | Path, ...]:
    return "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt"


def _openssl(*args: str | Path) -> None:
    subprocess.run(["openssl", *args], check=True, capture_output=True)


def _post(url: str, body: dict[str, object]) -> bytes:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        found: bytes = answer.read()
        return found


@contextmanager
def running(assets: Path, folder: Path, *extra_flags: str) -> Iterator[ApiServer]:
    server = ApiServer(assets, folder, *extra_flags)
    server.start()
    try:
        yield server
    finally:
        server.stop()
