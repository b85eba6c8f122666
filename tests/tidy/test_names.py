"""Public classes and modules are named by nouns. A participle says what happened to a thing, not what the thing is."""

import ast

from tests.tidy import repo

#: Participles that were once used as nouns. Extend the list when another one is found.
PARTICIPLES = {
    *("asked", "chosen", "compared", "counted", "fared", "filled", "found", "given", "handedout", "known", "lost"),
    *("grouped", "measured", "moved", "noted", "observed", "placed", "played", "reached", "refuted", "remembered"),
    *("retried", "said", "shown", "taken", "told"),
    "wanted",
}


def is_participle(name: str) -> bool:
    """Return True if a class or module name is nothing but a participle."""
    return name.replace("_", "").lower() in PARTICIPLES


def test_no_module_is_named_by_a_participle() -> None:
    found = [repo.name(path) for path in repo.files(".py", under="src/pumice") if is_participle(path.stem)]
    assert not found, repo.listed("name the thing that the module is about", found)


def test_no_public_class_is_named_by_a_participle() -> None:
    found = [
        f"{repo.name(path)}:{node.lineno}: {node.name}"
        for path in repo.files(".py", under="src/pumice")
        for node in ast.walk(repo.tree(path))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and is_participle(node.name)
    ]
    assert not found, repo.listed("name the thing that the class is", found)


def test_the_rule_finds_what_it_looks_for() -> None:
    assert is_participle("Told") and is_participle("HandedOut") and is_participle("handed_out")
    assert not is_participle("NotAdmitted") and not is_participle("Explanation")
