"""Questions to a scheduler that runs: answered by another process from its newest snapshot."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, closing

import aiohttp
import msgspec
import pytest
from aiohttp import web
from click.testing import CliRunner

import pumice
from pumice.cli.answers.served import words_of
from pumice.cli.live_pages import show_pages
from pumice.cli.main import main
from pumice.cycle import run_cycle
from pumice.kai.table import DEFAULT_PLUGINS
from pumice.kube.api.access import Access
from pumice.kube.api.client import Client
from pumice.kube.scheduler import answer_pages
from pumice.kube.scheduler.answer_pages import WAITING_EACH, WAITING_MAX, AnswerPages
from pumice.kube.scheduler.http import serving
from pumice.kube.scheduler.live import Live
from pumice.kube.scheduler.reload import ConfFile
from pumice.kube.scheduler.settings import Settings
from pumice.model.events import Seen
from pumice.runtime import job_looks
from pumice.runtime.cycle_end import CycleEnd
from pumice.runtime.loop import ListPlanner
from pumice.runtime.policy.languages import builtin_registry
from pumice.runtime.serving.listening import Place
from pumice.runtime.serving.viewers import EVERYTHING, Scope, Viewer
from pumice.runtime.telemetry.metrics import Metrics
from pumice.testing.build import cluster, node, podgroup, pods, queue
from pumice.volcano.table import DEFAULT_CONF


class Viewed(Viewer):
    """A viewer of a name who sees what they see."""

    def __init__(self, name: str, seen: Scope = EVERYTHING) -> None:
        self.name, self.seen = name, seen

    async def scope(self, namespaces: Iterable[str]) -> Scope:
        return self.seen


HERE = Viewer()


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers come in time on a machine that does much else, too."""
    monkeypatch.setattr(answer_pages, "_NICE", 0)
    monkeypatch.setattr(answer_pages, "ANSWER_S", 300.0)


@asynccontextmanager
async def asked(conf: str = DEFAULT_CONF) -> AsyncIterator[tuple[str, AnswerPages]]:
    live = Live(Client(Access("http://127.0.0.1:1")), ConfFile(None, builtin_registry(), conf), Settings(), Metrics())
    live.loop.store = cluster(node("n0", cpu=2), queue(), podgroup("g", 4), pods("g", 4, cpu=1))
    answers = AnswerPages(words_of(()), live)
    with closing(answers):
        async with serving(live, [Place()], answers) as (url,):
            yield url, answers


async def got(url: str, **more: str) -> tuple[int, str]:
    async with aiohttp.request("GET", url, **more) as answer:  # type: ignore[arg-type]
        return answer.status, await answer.text()


@pytest.mark.slow
async def test_questions_are_answered_from_the_newest_snapshot() -> None:
    async with asked() as (url, _):
        status, text = await got(f"{url}/explain?job=ns/g&ways=0")
        assert status == 200 and '"code": "Shortage"' in text and '"schema": "pumice.explain/1"' in text
        status, text = await got(f"{url}/whatif?add-nodes=1xn0&format=text")
        assert status == 200 and "1 job placed" in text
        status, text = await got(f"{url}/next?format=text")
        assert status == 200 and "waits     ns/g  Shortage" in text
        status, text = await got(f"{url}/nodes")
        assert status == 200 and "n0" in text
        status, text = await got(f"{url}/starts")
        assert status == 200 and '"ns/g"' in text and '"why_not": "in 8 of 8 simulations' in text and '"at"' in text
        status, text = await got(f"{url}/explain?job=ns/h")
        assert status == 400 and "did you mean ns/g?" in text


_KAI = f"dialect: kai\ntiers:\n- plugins: [{', '.join(f'{{name: {name}}}' for name in DEFAULT_PLUGINS)}]\n"


@pytest.mark.slow
@pytest.mark.parametrize("conf", [DEFAULT_CONF, _KAI], ids=["volcano", "kai"])
async def test_an_answer_says_for_how_long_each_reason_held_the_job(conf: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_looks, "SHARE", 0.0)  # each cycle is looked at
    async with asked(conf) as (url, answers), AsyncExitStack() as stack:
        assert answers.live is not None
        loop, began = answers.live.loop, time.time() - 5400.0
        take = await show_pages(None, stack, answers)
        for at, gates in ((began, ("example.com/hold",)), (began + 3600.0, ())):
            for each in pods("g", 4, cpu=1, gates=gates):
                loop.store.apply(Seen(each))
            loop.store.apply(Seen(podgroup("g", 4, creation=began, phase="Inqueue")))
            outcome = run_cycle(loop.store.snapshot(at), loop.policy, at, ListPlanner(), memo=loop.memo)
            await asyncio.to_thread(take, CycleEnd(1, outcome, (), ""))
        _, text = await got(f"{url}/explain?job=ns/g&ways=0&format=text")
        assert "waiting 1 h 30 min; seen by the scheduler: 1 h Gated, 30 min Shortage" in text.replace("\n", " ")
        _, text = await got(f"{url}/explain?job=ns/g&ways=0")
        waited = msgspec.json.decode(text)["waited_by_code_s"]
        assert waited["Gated"] == 3600.0 and 1800.0 <= waited["Shortage"] < 3600.0


#: Without the plugin gang, what fits is placed.
MORE = 'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: predicates}]\n'


@pytest.mark.slow
async def test_a_policy_is_tried_on_the_newest_snapshot() -> None:
    async with asked() as (url, answers):
        assert answers.policy_text() == DEFAULT_CONF
        found = await answers.try_policy(MORE)
        assert found["problems"] == [] and [each["placed"] for each in found["cycles"]] == [1]
        assert found["last"]["placed"] == {"ns/g": 2}
        found = await answers.try_policy("actions: nonsense")
        assert "nonsense" in found["problems"][0] and found["cycles"] == []
        assert (await got(f"{url}/policy?conf=/etc/passwd"))[0] == 404, "only pages try policies"


async def test_a_policy_is_tried_only_where_a_scheduler_runs() -> None:
    with closing(AnswerPages(words_of(()))) as answers:
        assert answers.policy_text() == ""
        with pytest.raises(web.HTTPServiceUnavailable):
            await answers.try_policy(MORE)


@pytest.mark.slow
async def test_the_command_line_asks_a_server() -> None:
    async with asked() as (url, _):
        words = ["explain", "g", "--server", url, "--no-ways"]
        result = await asyncio.to_thread(CliRunner().invoke, main, words)
        assert result.exit_code == 0 and "Shortage" in result.stdout and "start " not in result.stdout
        words += ["--starts", "--within", "1h", "--samples", "2"]
        result = await asyncio.to_thread(CliRunner().invoke, main, words)
        assert (
            result.exit_code == 0 and "start  not known: " in result.stdout and "2 simulations of 1 h" in result.stdout
        )
        result = await asyncio.to_thread(CliRunner().invoke, main, ["whatif", "--server", url, "--add-nodes", "1xn0"])
        assert result.exit_code == 1 and "1 job placed" in result.stdout  # something changes
        result = await asyncio.to_thread(CliRunner().invoke, main, ["whatif", "--server", url, "--drain", "zz"])
        assert result.exit_code == 2 and "zz" in result.output


@pytest.mark.slow
async def test_the_library_reads_answers_as_tables() -> None:
    async with asked() as (url, _):
        found = await asyncio.to_thread(pumice.connect, url)
        jobs = await asyncio.to_thread(found.jobs)
        assert (jobs["job"], jobs["code"], jobs["asks.cpu"]) == (["ns/g"], ["Shortage"], [4.0])
        assert (await asyncio.to_thread(found.queues))["limit.cpu"] == [None]  # no limit
        nodes = await asyncio.to_thread(found.nodes)
        assert (nodes["node"], nodes["closed"], nodes["offers.cpu"]) == (["n0"], [None], [2.0])
        explanation = await asyncio.to_thread(found.explain, "g", ways=False)
        assert (explanation.job, explanation.reasons["code"], len(explanation.ways)) == ("ns/g", ["Shortage"], 0)
        assert (await asyncio.to_thread(found.waiting)).reasons["jobs"] == [1]
        with pytest.raises(pumice.InputError, match=r"did you mean ns/g\?"):
            await asyncio.to_thread(found.explain, "ns/h")


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("/explain", "wanted job=NAMESPACE/NAME"),
        ("/explain?jop=x", "found the parameter 'jop'"),
        ("/explain?job=" + "x" * 600, "wanted at most 512"),
        ("/explain?job=ns/g&starts=1&samples=33", "wanted a whole number from 1 to 32"),
        ("/explain?job=ns/g&starts=1&samples=1e1", "wanted a whole number from 1 to 32"),
        ("/explain?job=ns/g&within=1d", "within: wanted starts=1 as well"),
        ("/whatif", "wanted a change"),
        ("/whatif?apply=/etc/passwd", "found the parameter 'apply'"),
        ("/whatif?" + "&".join(["drain=n0"] * 40), "wanted at most 32"),
    ],
)
async def test_a_question_that_cannot_be_asked_takes_no_snapshot(question: str, said: str) -> None:
    async with asked() as (url, answers):
        status, text = await got(url + question)
        assert status == 400 and said in text and answers._folder is None


async def test_few_may_wait_and_only_this_machine_is_answered() -> None:
    async with asked() as (url, answers):
        status, _ = await got(f"{url}/jobs", headers={"Host": "example.com"})  # type: ignore[arg-type]
        assert status == 403
        answers._waiting[""] = WAITING_MAX
        assert (await got(f"{url}/jobs"))[0] == 429


async def test_one_user_may_not_take_all_places_of_those_that_wait() -> None:
    async with asked() as (_, answers):
        answers._waiting["user anna"] = WAITING_EACH
        with pytest.raises(aiohttp.web.HTTPServiceUnavailable) as refused:
            await answers.explain("ns/g", Viewed("user anna"))
        assert "of your questions wait already" in (refused.value.text or "")
        with pytest.raises(aiohttp.web.HTTPServiceUnavailable) as refused:
            await answers.explain("ns/g", Viewed("user ben", Scope(frozenset(), nodes=False)))
        assert "you may not get pods in the namespace ns" in (refused.value.text or "")


def test_no_value_is_read_as_a_flag() -> None:
    words = words_of(())
    assert words("/explain", [("job", "--conf=x")], "S")[-3:] == ["--", "--conf=x", "S"]
    assert "--within=--conf=x" in words("/explain", [("all", "1"), ("starts", "1"), ("within", "--conf=x")], "S")
    assert "--drain=--conf=x" in words("/whatif", [("drain", "--conf=x")], "S")


@pytest.mark.slow
async def test_pages_ask_about_a_job_in_the_same_way() -> None:
    async with asked() as (_, answers):
        found = await answers.explain("ns/g", HERE)
        assert found["job"] == "ns/g" and found["reason"][0]["code"] == "Shortage" and found["ways_out"]
        with pytest.raises(KeyError, match=r"did you mean ns/g\?"):
            await answers.explain("ns/h", HERE)
        answers._waiting[""] = WAITING_MAX
        with pytest.raises(aiohttp.web.HTTPServiceUnavailable):
            await answers.explain("ns/g", HERE)


async def test_without_a_scheduler_there_is_no_answer_yet() -> None:
    async with asked() as (url, answers):
        answers.live = None
        status, text = await got(f"{url}/jobs")
        assert status == 503 and "no scheduler runs yet" in text
