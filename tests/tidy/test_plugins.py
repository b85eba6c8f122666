"""Every built-in plugin is tried: some test or case file names it as a policy file would."""

import ast
import re

from tests.tidy import repo


def plugin_names() -> dict[str, str]:
    """YAML name -> module, from `@plugin("name")`; a module without that decorator goes by its file name."""
    found: dict[str, str] = {}
    for path in repo.files(".py", under="src/pumice"):
        if "plugins" not in path.parts or path.stem.startswith("_"):
            continue
        decorators = (d for node in ast.walk(repo.tree(path)) for d in getattr(node, "decorator_list", []))
        names = [name for d in decorators if (name := declared_name(d))]
        if not names and path.parent.name == "plugins":
            names = [path.stem.replace("_", "-")]
        found |= dict.fromkeys(names, repo.name(path))
    return found


def declared_name(decorator: ast.expr) -> str | None:
    match decorator:
        case ast.Call(func=ast.Name(id="plugin") | ast.Attribute(attr="plugin"), args=[ast.Constant(value=value), *_]):
            return str(value)
    return None


def test_every_plugin_has_a_case() -> None:
    own = {"tidy", "runner", "tables"}  # name plugins, and try none
    cases = [repo.text(p) for p in repo.files(under="tests") if not own & {*p.relative_to(repo.ROOT).parts}]

    def tried(name: str) -> bool:
        mention = re.compile(rf"name:\s*{re.escape(name)}(?![\w-])|[\"']{re.escape(name)}[\"']")
        return any(mention.search(case) for case in cases)

    untried = [f"{name} ({module})" for name, module in plugin_names().items() if not tried(name)]
    assert not untried, repo.listed("write a case under tests/ whose policy names it", untried)
