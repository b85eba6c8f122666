"""What may be committed: nothing that is true on one machine only, and requirements that name no index."""

import re
import tomllib

from tests.tidy import repo

# Spelt in pieces, so that this file keeps its own rule.
MACHINE_PATH = re.compile(r"(?<![\w.~$}])/(?:work|root|Users|home/[a-z]\w*)" + "/")
HOSTS = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("proxy", "golang", "org"),
        ("sum", "golang", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("crates", "io"),
        ("repo", "maven", "apache", "org"),
        ("repo1", "maven", "org"),
        ("deb", "debian", "org"),
        ("security", "debian", "org"),
    )
)


def test_no_machine_paths() -> None:
    found = [
        f"{repo.name(path)}:{number}: {line.strip()[:100]}"
        for path in repo.files()
        for number, line in enumerate(repo.text(path).splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]
    assert not found, repo.listed("name it from the root of the repository, or by ../shared", found)


def test_no_registry_hosts() -> None:
    found = [
        f"{repo.name(path)}: {host}" for path in repo.files() for host in HOSTS if host in repo.text(path).casefold()
    ]
    assert not found, repo.listed(
        "a package is named by its name; where it comes from is the machine's business", found
    )


def test_no_lock_with_addresses() -> None:
    found = [repo.name(p) for p in repo.files(".lock")]
    assert not found, repo.listed("a lock file records addresses; make lock writes requirements that do not", found)


def canonical(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement.strip())[0].lower())  # type: ignore[index]


def pinned(file: str) -> set[str]:
    """Names pinned in a requirements file; every line of it is a pin with hashes, a comment or blank."""
    logical = repo.text(repo.ROOT / file).replace("\\\n", " ").splitlines()
    lines = [line for line in logical if line.strip() and not line.lstrip().startswith("#")]
    loose = [line[:80] for line in lines if not re.match(r"[\w.-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line)]
    assert not loose, repo.listed(f"{file}: run make lock", loose)
    return {canonical(line) for line in lines}


def test_requirements_pin_what_pyproject_asks_for() -> None:
    project = tomllib.loads(repo.text(repo.ROOT / "pyproject.toml"))["project"]
    runtime = {canonical(r) for r in project["dependencies"]}
    develop = {canonical(r) for r in project["optional-dependencies"]["dev"]}
    assert runtime <= pinned("requirements.txt"), "run make lock"
    assert runtime | develop <= pinned("requirements-dev.txt"), "run make lock"
