"""While a pair of keys is made, the event loop does other things."""

from __future__ import annotations

import asyncio
import threading
from typing import cast

import pytest

from pumice.kube.api.client import Client
from pumice.kube.controllers.kinds import JOBS
from pumice.kube.controllers.loop import ControlLoop, ControlSettings
from pumice.kube.controllers.ssh_keys import PreparedKeys
from pumice.kube.controllers.view import Task
from pumice.runtime.controllers.job_ssh import Keys, NewKeys, NoKeys
from pumice.runtime.controllers.writes import Create, Emit
from tests.unit.runtime.controllers.job_world import NOW, World

KEYS = Keys("private", "public")
#: Long enough on any machine, and never waited for unless the event loop is blocked.
PATIENCE_S = 20.0


async def test_the_event_loop_runs_meanwhile() -> None:
    goes_on = threading.Event()

    def make() -> Keys:
        assert goes_on.wait(PATIENCE_S), "the event loop waited for the keys"
        return KEYS

    async def other() -> None:
        goes_on.set()

    found, _ = await asyncio.gather(PreparedKeys(make).with_keys(lambda new_keys: new_keys()), other())
    assert found == KEYS


async def test_each_pair_is_used_once() -> None:
    made: list[Keys] = []

    def make() -> Keys:
        made.append(Keys(f"private {len(made)}", "public"))
        return made[-1]

    keys = PreparedKeys(make)
    found = await asyncio.gather(*(keys.with_keys(lambda new_keys: new_keys().private) for _ in range(5)))
    assert sorted(found) == [f"private {i}" for i in range(5)]


async def test_why_there_are_none_is_passed_on_and_the_next_asks_again() -> None:
    answers: list[Keys | NoKeys] = [KEYS, NoKeys("no openssl")]

    def make() -> Keys:
        answer = answers.pop()
        if isinstance(answer, NoKeys):
            raise answer
        return answer

    keys = PreparedKeys(make)
    with pytest.raises(NoKeys, match="no openssl"):
        await keys.with_keys(lambda new_keys: new_keys())
    assert await keys.with_keys(lambda new_keys: new_keys()) == KEYS


def no_keys() -> Keys:
    raise NoKeys("no openssl")


@pytest.mark.parametrize(("make", "made"), [(lambda: KEYS, {"Secret"}), (no_keys, set())])
async def test_a_job_with_ssh_has_keys_that_a_thread_made(make: NewKeys, made: set[str]) -> None:
    world, threads = World(plugins={"ssh": []}), list[int]()

    def in_thread() -> Keys:
        threads.append(threading.get_ident())
        return make()

    loop = ControlLoop(cast(Client, None), ControlSettings(controllers=("job",)), lambda: NOW)
    loop._ssh_keys = PreparedKeys(in_thread)
    loop.view.put(JOBS, world.job)
    writes = await loop._wanted(Task("job", "ns/j"), ())
    assert {each.obj["kind"] for each in writes if isinstance(each, Create)} & {"Secret"} == made
    assert any(isinstance(each, Emit) and "no openssl" in each.message for each in writes) == (not made)
    assert threads and threading.get_ident() not in threads
