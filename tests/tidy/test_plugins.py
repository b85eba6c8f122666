"""Every built-in plugin is tried: some test or case file names it as a policy file would."""

import ast
import re
from importlib import import_module

from pumice import api
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
        mention = re.compile(rf"name:\s*{re.escape(name)}(?![\w-])|[\"'](?:ours/)?{re.escape(name)}[\"']")
        return any(mention.search(case) for case in cases)

    untried = [f"{name} ({module})" for name, module in plugin_names().items() if not tried(name)]
    assert not untried, repo.listed("write a case under tests/ whose policy names it", untried)


#: What built-in plugins import beside ``pumice.api`` and the modules of their own language, and why. An author writes
#: what newcomers read, so what is listed here is what an author would miss. Shrink, do not grow.
BESIDE_THE_API = {
    "pumice.algorithms.dice": "numbers that look random and follow from names: priced placement breaks ties by them",
    "pumice.algorithms.groups": "arithmetic on arrays",
    "pumice.algorithms.queue_order": "arithmetic on arrays: how KAI compares queues",
    "pumice.algorithms.queue_tree": "arithmetic on arrays: how KAI divides a tree of queues",
    "pumice.algorithms.reclaimable": "arithmetic on arrays: what KAI lets a queue take back",
    "pumice.algorithms.shares": "arithmetic on arrays: dominant shares and water filling",
    "pumice.algorithms.sums": "arithmetic on arrays",
    "pumice.algorithms.zones": "arithmetic on arrays: what a kubelet gives of NUMA zones",
    "pumice.columns.gpus.claimed": "GPUs that pods claim, which are not in what they request",
    "pumice.columns.nodes": "what is being released on nodes",
    "pumice.columns.placement": "a placement that is undone task by task",
    "pumice.columns.tasks": "gates of tasks, for counts of every job at once",
    "pumice.framework.cycle.ports": "the errors of programs beside the scheduler, which only extender asks",
    "pumice.framework.memo": "answers that are kept from one cycle to the next",
    "pumice.kai": "the points of KAI, at which a plugin of both languages answers too",
    "pumice.model.blockers": "findings of their own kind",
    "pumice.model.decisions": "the key under which a bind carries devices",
    "pumice.model.disruption": "disruption budgets, which only pdb reads",
    "pumice.model.workloads.gang": "topology constraints of KAI's gangs",
    "pumice.model.devices.gpu": "which resources are GPUs",
    "pumice.model.devices.numa": "where CPUs are, which only numa-aware reads",
    "pumice.model.plain_words": "how a wrong argument is named",
    "pumice.model.pod": "names of annotations and labels",
    "pumice.model.workloads.podgroup": "names of annotations",
    "pumice.model.resources": "names of resources, which NUMA zones report by name",
    "pumice.model.queue": "the node groups that a queue names",
    "pumice.model.selectors": "whether a label selector matches, for disruption budgets",
    "pumice.model.devices.shared_devices": "cards that pods share",
    "pumice.placing.claims.hooks": "claims of devices as kube-scheduler filters them, in both languages",
    "pumice.placing.claims.offers": "devices that can be claimed",
    "pumice.placing.claims.questions": "claims of devices, as a task asks for them",
    "pumice.placing.claims.resolve": "claims that are made from templates",
    "pumice.placing.derived": "what follows from node objects alone, shared by the plugins of a session",
    "pumice.placing.filters.nodes": "kube-scheduler's filters by node, in both languages",
    "pumice.placing.filters.of_session": "kube-scheduler's filters by other pods, in both languages",
    "pumice.placing.filters.pod_view": "kube-scheduler's filters by other pods, in both languages",
    "pumice.placing.filters.pods": "kube-scheduler's filters by other pods, in both languages",
    "pumice.placing.filters.preferred_terms": "kube-scheduler's scores by other pods, in both languages",
    "pumice.placing.volumes.filters": "kube-scheduler's filters by volumes, in both languages",
}


def imports_of_plugins() -> dict[str, set[str]]:
    """By built-in plugin, the modules of Pumice that its file imports, those of its own language left out."""
    found: dict[str, set[str]] = {}
    for path in repo.files(".py", under="src/pumice"):
        if path.parent.name != "plugins" or path.stem == "__init__":
            continue
        own = f"pumice.{path.parent.parent.name}"
        imports = [node for node in ast.walk(repo.tree(path)) if isinstance(node, ast.Import | ast.ImportFrom)]
        modules = {node.module for node in imports if isinstance(node, ast.ImportFrom) and node.module}
        modules |= {alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
        found[repo.name(path)] = {
            module
            for module in modules
            if module.partition(".")[0] == "pumice" and not f"{module}.".startswith(f"{own}.")
        }
    return found


def test_a_built_in_plugin_imports_what_an_author_may() -> None:
    beyond = [
        f"{plugin}: {module}"
        for plugin, modules in imports_of_plugins().items()
        for module in sorted(modules - {"pumice.api"} - BESIDE_THE_API.keys())
    ]
    assert not beyond, repo.listed("import it from pumice.api, or name it in the table with its reason", beyond)


def test_the_table_names_only_what_plugins_import() -> None:
    used = set().union(*imports_of_plugins().values())
    assert "pumice.api" in used
    unused = sorted(BESIDE_THE_API.keys() - used)
    assert not unused, repo.listed("take it out of the table", unused)


def test_no_name_that_the_api_has_is_taken_from_elsewhere() -> None:
    from_elsewhere = [
        f"{repo.name(path)}: {alias.name} of {node.module}"
        for path in repo.files(".py", under="src/pumice")
        if path.parent.name == "plugins"
        for node in ast.walk(repo.tree(path))
        if isinstance(node, ast.ImportFrom) and node.module in BESIDE_THE_API
        for alias in node.names
        if getattr(api, alias.name, None) is getattr(import_module(node.module), alias.name, alias)
    ]
    assert not from_elsewhere, repo.listed("import it from pumice.api", from_elsewhere)


#: Words of an earlier contract of hooks. What a hook is asked follows from its parameters and ``reads=`` alone.
GIVEN_UP = {
    *("concerns", "Lost", "leave_out", "errors_after", "listens", "ask_again", "job_started", "ballot", "BY_JOB"),
    *("COUNTS_DOWN", "NOBODY_NEW", "says", "restate"),
}


def names_in(tree: ast.AST) -> set[str]:
    """Classes of a module, what it imports, and names of parameters and arguments."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.alias(name=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                found.add(name)
    return found


def test_the_contract_of_hooks_has_no_word_that_was_given_up() -> None:
    folders = ("framework", "volcano/plugins", "kai/plugins", "ours/plugins")
    files = [path for folder in folders for path in repo.files(".py", under=f"src/pumice/{folder}")]
    found = [f"{repo.name(path)}: {name}" for path in files for name in sorted(GIVEN_UP & names_in(repo.tree(path)))]
    assert len(files) > 50
    assert not found, repo.listed("say it by parameters, or by reads=", found)
    assert GIVEN_UP & names_in(ast.parse("@point(concerns='x')\ndef hook(listens): ...")) == {"concerns", "listens"}
