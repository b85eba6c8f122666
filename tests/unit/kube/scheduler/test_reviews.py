"""Who asks, by a token, and what they may see."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from pumice.kube.api.kinds import NODES, PODS
from pumice.kube.scheduler import reviews
from pumice.kube.scheduler.reviews import NO_S, YES_S, Reviews, token_of
from pumice.runtime.serving.viewers import Scope, Viewer
from tests.unit.kube.reviewing import ReviewServer, reviewing


class Asked:
    def __init__(self, server: ReviewServer, reviews: Reviews, now: list[float]) -> None:
        self.server, self.reviews, self.now = server, reviews, now

    async def viewer(self, token: str) -> Viewer:
        headers = {"Authorization": f"Bearer {token}"}
        return await self.reviews.viewer(make_mocked_request("GET", "/jobs", headers=headers))


@pytest.fixture
async def asked() -> AsyncIterator[Asked]:
    now = [0.0]
    async with reviewing() as (server, client):
        yield Asked(server, Reviews(client, lambda: now[0]), now)


@pytest.mark.parametrize(
    ("user", "scope"),
    [
        ("admin", Scope(None, nodes=True)),
        ("anna", Scope(frozenset({"ns"}), nodes=False)),
        ("guest", Scope(frozenset(), nodes=False)),
    ],
)
async def test_a_user_sees_the_namespaces_whose_pods_they_may_get(asked: Asked, user: str, scope: Scope) -> None:
    assert await (await asked.viewer(f"{user}-token")).scope(["ml", "ns"]) == scope


async def test_a_review_of_access_has_all_that_the_token_review_said_of_the_user(asked: Asked) -> None:
    await (await asked.viewer("admin-token")).scope([])
    about = asked.server.asked[1]
    assert (about["user"], about["uid"], about["groups"]) == ("admin", "admin-uid", ["system:authenticated"])
    assert about["extra"] == {"b": ["1"]}
    kinds = {
        each["resourceAttributes"]["resource"]: each["resourceAttributes"]["verb"] for each in asked.server.asked[1:]
    }
    assert kinds == {PODS.plural: "get", NODES.plural: "get"}


async def test_a_token_that_is_not_accepted_is_refused_and_asked_about_again_later(asked: Asked) -> None:
    for _ in range(3):
        with pytest.raises(web.HTTPUnauthorized) as refused:
            await asked.viewer("stolen")
    assert refused.value.text == "the API server does not accept this token\n"
    assert (
        "Bearer" in refused.value.headers["WWW-Authenticate"] and "Basic" in refused.value.headers["WWW-Authenticate"]
    )
    assert len(asked.server.asked) == 1
    asked.now[0] = NO_S
    with pytest.raises(web.HTTPUnauthorized):
        await asked.viewer("stolen")
    assert len(asked.server.asked) == 2


async def test_answers_hold_for_a_time_and_no_longer(asked: Asked) -> None:
    for _ in range(3):
        await (await asked.viewer("admin-token")).scope(["ns"])
    assert len(asked.server.asked) == 3  # the token, pods and nodes
    asked.now[0] = YES_S
    await (await asked.viewer("admin-token")).scope(["ns"])
    assert len(asked.server.asked) == 6


async def test_tokens_that_are_kept_are_bounded_in_number(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked.reviews._users, "_most", 4)
    for number in range(12):
        with pytest.raises(web.HTTPUnauthorized):
            await asked.viewer(f"guess-{number}")
    assert len(asked.reviews._users) == 4


async def test_reviews_that_wait_are_bounded_in_number(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked.reviews, "_asked", reviews.ASKED_MAX)
    with pytest.raises(web.HTTPServiceUnavailable):
        await asked.viewer("admin-token")
    assert not asked.server.asked


async def test_namespaces_that_are_looked_up_for_one_user_are_bounded(asked: Asked) -> None:
    many = [f"n{number}" for number in range(reviews.NAMESPACES_MAX + 1)]
    with pytest.raises(web.HTTPForbidden, match="Forbidden") as refused:
        await (await asked.viewer("anna-token")).scope(many)
    assert "found jobs in 501 namespaces, wanted at most 500" in (refused.value.text or "")
    assert (await (await asked.viewer("admin-token")).scope(many)).is_all


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (403, "may not create tokenreviews.authentication.k8s.io: see deploy/base/rbac.yaml"),
        (500, "cannot be reviewed"),
    ],
)
async def test_an_api_server_that_does_not_review_lets_no_one_in(asked: Asked, status: int, text: str) -> None:
    asked.server.status = status
    with pytest.raises(web.HTTPServiceUnavailable) as refused:
        await asked.viewer("admin-token")
    assert text in (refused.value.text or "")


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        (f"Basic {b64encode(b'anna:abc:d').decode()}", "abc:d"),
        ("", ""),
        ("Bearer", ""),
        ("Basic !!", ""),
        (f"Basic {b64encode(bytes([255, 58])).decode()}", ""),
        ("Digest abc", ""),
        (f"Bearer {'x' * 20_000}", ""),
    ],
)
def test_a_token_is_a_bearer_token_or_a_password(header: str, token: str) -> None:
    if token:
        assert token_of(header) == token
    else:
        with pytest.raises(web.HTTPUnauthorized):
            token_of(header)
