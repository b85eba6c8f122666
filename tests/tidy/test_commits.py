"""What may be committed: nothing that is true on one machine only, requirements that name no index, subjects of one
form."""

import re
import shutil
import subprocess
import tomllib

import pytest

from tests.tidy import repo

#: The rule about subjects holds for what came after this commit.
SUBJECTS_SINCE = "5c0e101"
SUBJECT_MAX = 72
#: ``area: imperative``. The verb is the plain form: no past tense, no third person, no participle, no capital.
SUBJECT = re.compile(r"[a-z][a-z0-9_/.-]*(?:, [a-z][a-z0-9_/.-]*)*: (?P<verb>[a-z][\w'-]*)\b.*[^.]")
#: Subjects that were committed before the rule was checked.
BEFORE_THE_CHECK = {
    "deps: install servers' packages as extras, drop rich and four unused extras",
    "tests: the map names ours/gpuplacement, a name of policy files",
    "tests: a workload trace keeps its name",
}
_NO_VERBS = {"a", "an", "the", "this", "that", "these", "some", "all", "no", "more", "new", "it", "we", "what", "there"}

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


def wrong_subject(subject: str) -> str | None:
    """What is wrong with the subject of a commit. Merges and reverts keep git's form."""
    if subject.startswith(("Merge ", "Revert ")):
        return None
    if len(subject) > SUBJECT_MAX:
        return f"{len(subject)} characters, at most {SUBJECT_MAX}"
    found = SUBJECT.fullmatch(subject)
    if found is None:
        return "not of the form `area: imperative`, without a full stop"
    verb = found["verb"]
    if verb in _NO_VERBS or (verb.endswith(("ed", "ing")) and verb not in {"embed", "feed", "need", "seed", "bring"}):
        return f"{verb!r} is no imperative"
    return None


def test_subjects_of_commits_are_area_and_imperative() -> None:
    git = shutil.which("git")
    if git is None or not (repo.ROOT / ".git").exists():
        pytest.skip("no git history here: subjects of commits are not checked")
    known = subprocess.run(
        [git, "cat-file", "-e", f"{SUBJECTS_SINCE}^{{commit}}"], cwd=repo.ROOT, capture_output=True, check=False
    )
    if known.returncode != 0:
        pytest.skip(f"the history ends after {SUBJECTS_SINCE} (a shallow clone?): subjects of commits are not checked")
    command = [git, "log", "--format=%h %s", f"{SUBJECTS_SINCE}..HEAD"]
    log = subprocess.run(command, cwd=repo.ROOT, check=True, capture_output=True, text=True).stdout
    subjects = [line.partition(" ") for line in log.splitlines()]
    found = [
        f"{commit} {subject}: {what}"
        for commit, _, subject in subjects
        if subject not in BEFORE_THE_CHECK and (what := wrong_subject(subject))
    ]
    assert not found, repo.listed("git rebase -i mends a subject before it is pushed", found)


@pytest.mark.parametrize(
    ("subject", "right"),
    [
        ("docs: write the sizing page", True),
        ("volcano/gang: keep a gang's minimum", True),
        ("model, tests: move what only tests call", True),
        ("Figures of today", False),
        ("docs: Write the page", False),
        ("docs: rewriting the page", False),
        ("docs: added the page", False),
        ("docs: the page", False),
        ("docs: write the page.", False),
        ("docs: " + "x" * 80, False),
    ],
)
def test_form_of_a_subject(subject: str, right: bool) -> None:
    assert (wrong_subject(subject) is None) is right
