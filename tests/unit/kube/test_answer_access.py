"""Questions over TLS from beyond this machine: by token, and each user about what they may see."""

from __future__ import annotations

import asyncio
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import aiohttp
import pytest
from msgspec.structs import replace

import pumice
from pumice.apiserver.api.tls import kept_certificate
from pumice.cli.answers.served import words_of
from pumice.kube.api.access import Access
from pumice.kube.api.client import Client
from pumice.kube.scheduler import answer_pages
from pumice.kube.scheduler.answer_pages import AnswerPages
from pumice.kube.scheduler.http import serving
from pumice.kube.scheduler.live import Live
from pumice.kube.scheduler.reload import ConfFile
from pumice.kube.scheduler.reviews import Reviews
from pumice.kube.scheduler.settings import Settings
from pumice.library import asking
from pumice.runtime.serving.listening import Place
from pumice.runtime.telemetry.metrics import Metrics
from pumice.testing.build import cluster, node, podgroup, pods, queue
from pumice.volcano.table import DEFAULT_CONF, volcano_registry
from tests.unit.kube.reviewing import reviewing


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers come in time on a machine that does much else, too."""
    monkeypatch.setattr(answer_pages, "_NICE", 0)
    monkeypatch.setattr(answer_pages, "ANSWER_S", 300.0)


class At:
    def __init__(self, url: str, http: aiohttp.ClientSession, certificate: Path) -> None:
        self.url, self.http, self.certificate = url, http, certificate

    async def got(self, path: str, user: str = "", **headers: str) -> tuple[int, str]:
        given = headers | ({"Authorization": f"Bearer {user}-token"} if user else {})
        async with self.http.get(self.url + path, headers=given) as answer:
            return answer.status, await answer.text()


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[At]:
    """A scheduler with a job in ns, and one in ml that holds all there is, at an address that others reach."""
    if shutil.which("openssl") is None:
        pytest.skip("NO OPENSSL: nothing to make a certificate with")
    files = kept_certificate(tmp_path, ["127.0.0.1"])
    live = Live(
        Client(Access("http://127.0.0.1:1")), ConfFile(None, volcano_registry(), DEFAULT_CONF), Settings(), Metrics()
    )
    holder = [replace(each, namespace="ml", node_name="n0", phase="Running") for each in pods("eval", 2, cpu=1)]
    group = replace(podgroup("eval", 2, phase="Running"), namespace="ml")
    live.loop.store = cluster(node("n0", cpu=2), queue(), podgroup("g", 2), pods("g", 2, cpu=1), group, *holder)
    answers = AnswerPages(words_of(()), live)
    trusting = ssl.create_default_context(cadata=files.trusted.decode())
    async with reviewing() as (_, client), aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting)) as http:
        with closing(answers):
            place = Place("0.0.0.0", 0, files.context())
            async with serving(live, [place], answers, Reviews(client).viewer) as (url,):
                yield At(url, http, files.certificate)


async def test_without_a_token_that_is_accepted_there_is_no_answer(at: At) -> None:
    assert at.url.startswith("https://")
    status, text = await at.got("/jobs")  # also from this machine, because a proxy beside it could send this
    assert status == 401 and text.startswith("wanted a Kubernetes token")
    assert await at.got("/jobs", "stranger") == (401, "the API server does not accept this token\n")
    assert (await at.got("/healthz"))[0] == 200


@pytest.mark.parametrize(
    ("path", "user", "said"),
    [
        ("/explain?job=ml/eval", "anna", "you may not get pods in the namespace ml"),
        ("/explain?job=ns/g", "guest", "you may not get pods in the namespace ns"),
        ("/explain?all=1", "anna", "you may not get pods in all namespaces"),
        ("/whatif?drain=n0", "anna", "you may not get pods in all namespaces"),
        ("/next", "anna", "you may not get pods in all namespaces"),
        ("/nodes", "anna", "you may not get nodes"),
    ],
)
async def test_what_a_user_may_not_see_is_refused_in_one_sentence(at: At, path: str, user: str, said: str) -> None:
    status, text = await at.got(path, user)
    assert status == 403 and said in text and text.count("\n") == 1


@pytest.mark.parametrize(
    ("token", "said"), [("anna-token", "you may not get nodes"), ("", "wanted a Kubernetes token")]
)
async def test_the_library_sends_the_token_of_the_environment(
    at: At, token: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PUMICE_TOKEN", token)
    monkeypatch.setenv("SSL_CERT_FILE", str(at.certificate))
    with pytest.raises(pumice.InputError, match=said):
        await asyncio.to_thread(asking.ask, at.url, "/nodes")
    with pytest.raises(pumice.InputError, match="Remote end closed|disconnected|reset|aborted"):
        await asyncio.to_thread(asking.ask, at.url.replace("https", "http"), "/nodes")  # and sends no token


@pytest.mark.slow
async def test_an_answer_is_of_the_jobs_that_a_user_may_see(at: At) -> None:
    status, text = await at.got("/explain?job=ns/g", "anna")
    assert status == 200 and '"code": "Shortage"' in text and "eval" not in text


def test_the_command_that_answers_is_given_the_namespaces_of_the_user() -> None:
    words, seen = words_of(()), frozenset({"ns", "a"})
    assert "--for-namespaces=a,ns" in words("/explain", [("job", "ns/g")], "S", seen)
    assert "--for-namespaces=a,ns" in words("/jobs", [], "S", seen)
    assert "--for-namespaces=" in words("/jobs", [], "S", frozenset())
    assert not any("--for-namespaces" in word for word in words("/jobs", [], "S"))
