"""Tests are where a reader looks for them: a unit file of its own name for each module of the core."""

from pathlib import Path

from tests.tidy import repo

ROOMS = ("framework", "placing", "volcano")
#: Where tests of a module are that has no file of its own. Shrink, do not grow.
ELSEWHERE = {
    "framework/cycle/ports.py": "tests/unit/runtime/serving/test_extenders.py",
    "volcano/actions/allocate.py": "tests/conformance",
    "volcano/actions/gangreclaim.py": "tests/unit/volcano/actions/test_gangpreempt.py",
    "volcano/eviction/context.py": "tests/unit/volcano/eviction/gangs/test_victim_sets.py",
    "volcano/queues/reserved_room.py": "tests/unit/volcano/queues/test_gates.py",
    "volcano/topology/numa.py": "tests/unit/volcano/plugins/test_numa_aware.py",
    "volcano/plugins/predicates.py": "tests/unit/volcano/plugins/test_predicates_pods.py",
    "volcano/table.py": "tests/properties/test_contract.py",
}


def modules() -> dict[str, Path]:
    """``room/…/name.py`` -> its file."""
    sources = (path for room in ROOMS for path in repo.files(".py", under=f"src/pumice/{room}"))
    return {path.relative_to(repo.SRC).as_posix(): path for path in sources if path.stem != "__init__"}


def place(module: str) -> str:
    """The file of its tests: the folders under tests/unit mirror those under src/pumice."""
    folder, _, name = module.rpartition("/")
    return f"tests/unit/{folder}/test_{name}"


def test_every_module_of_the_core_has_a_unit_file() -> None:
    there = {repo.name(path) for path in repo.files(".py", under="tests/unit")}
    without = [name for name in modules() if name not in ELSEWHERE and place(name) not in there]
    assert not without, repo.listed("write a test of its name under tests/unit", without)


def test_the_table_names_what_is_there_and_nothing_that_has_a_file() -> None:
    there = {repo.name(path) for path in repo.files(".py", under="tests/unit")}
    stale = [
        name
        for name, elsewhere in ELSEWHERE.items()
        if name not in modules() or not (repo.ROOT / elsewhere).exists() or place(name) in there
    ]
    assert not stale, repo.listed("take it out of the table", stale)
