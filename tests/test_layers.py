"""The shape of the code, so that it stays: who imports whom, who touches the machine, how large a module may be."""

from __future__ import annotations

import ast
import os
import re
from functools import cache
from pathlib import Path
from typing import Iterable, Iterator, Mapping, Sequence

import pytest
from helpers.examples import ROOT

PACKAGE = ROOT / "envtune"
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
# Lowest first: a package imports from those before it only. What is named here are packages and single modules.
LAYERS = (
    ("records",),
    ("messages", "version", "ranges", "trust"),
    ("model", "errors", "intervals", "assemble", "commandline"),
    ("collector", "executor", "schema", "shell", "firewall", "ranks"),
    ("host",),
    ("snapshot", "job"),
    ("context", "expect"),
    ("resources",),
    ("catalog",),
    ("policy",),
    ("audit",),
    ("fix", "diagnose", "compare", "profile", "scan"),
    ("observe", "bench"),
    ("fleet",),
    ("report", "run", "site"),
    ("hook",),
    ("api",),
    ("cli",),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
# Packages of `resources` form layers of their own.
TRAVELLERS = ("collector", "executor", "trust")  # sent to a host as one file; the last one as a part of the others
TOUCHES_THE_MACHINE = {"os", "subprocess", "socket", "psutil", "shutil", "glob", "pathlib", "io", "tempfile", "ctypes"}
ADDRESS_ARITHMETIC = {"inet_pton", "inet_ntop", "AF_INET", "AF_INET6"}  # of socket: text and numbers, no machine
SLOW = {"psutil", "yaml", "distro", "packaging", "rich", "asyncio", "logging", "argparse", "urllib", "http", "email"}
MODULE_LINES = 500
FUNCTION_LINES = 40
FOLDER_FILES = 16  # with its __init__.py
ROOT_FILES = 12
# Longer than a function should be, and why that is right.
LONG_FUNCTIONS: Mapping[str, str] = {
    "envtune.cli.check.command": "a line for each of its 20 options",
    "envtune.cli.fix.command": "a line for each of its 29 options",
    "envtune.profile.readers.kernels._read": "the loop over a table of gigabytes: a call in it costs seconds",
    "envtune.cli.verbs.bench.command": "a line for each of its 15 options",
    "envtune.cli.fleet.audit.command": "a line for each of its 25 options",
    "envtune.cli.fleet.fix.command": "a line for each of its 29 options",
}
COMPLEX_FUNCTIONS = ("envtune.profile.readers.kernels._read",)
TEXT = (".py", ".yaml", ".md", ".toml", ".txt", "")


@cache
def tree_of(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text("utf-8"))


@cache
def nodes_of(name: str) -> Sequence[ast.AST]:
    return tuple(ast.walk(tree_of(name)))


@pytest.fixture(autouse=True, scope="module")
def _trees_are_forgotten() -> Iterator[None]:
    """They take 140 MB, which each fork of the tests after these would have to map as well."""
    yield
    nodes_of.cache_clear()
    tree_of.cache_clear()


@cache
def imports(name: str) -> Sequence[tuple[str, int]]:
    """(module, line) of every import, also those inside functions and for type checkers only."""
    return tuple(_imports(name))


def _imports(name: str) -> Iterator[tuple[str, int]]:
    package = name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]
    for node in nodes_of(name):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield (full if full in MODULES else base), node.lineno


@cache
def own_imports(name: str) -> Mapping[str, int]:
    """Module of envtune -> line of its import."""
    return {module: line for module, line in imports(name) if module in MODULES and module != name}


def package_of(module: str) -> str:
    """`envtune.resources.cpu.boot` as `resources`; the public functions of `envtune` itself as `api`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "api"


def cycles(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """The nodes of cycles, and those between cycles: what is left when nodes that reach no other one are taken away."""
    left = {node: set(others) & set(graph) for node, others in graph.items()}
    while ends := [node for node, others in left.items() if not others & set(left)]:
        for node in ends:
            del left[node]
    return sorted(left)


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert cycles({name: own_imports(name) for name in MODULES}) == []


def test_packages_import_what_is_below_them() -> None:
    wrong = []
    for name in MODULES:
        own = package_of(name)
        if own == "__main__":
            continue
        assert own in RANK, f"{own} is in no layer"
        for module, line in own_imports(name).items():
            other = package_of(module)
            if module == "envtune":  # its version
                continue
            if other != own and RANK[other] >= RANK[own]:
                wrong.append(f"{name}:{line} imports {module}")
    assert not wrong


def test_the_documentation_shows_these_layers() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    block = page.partition("<!-- layers -->\n")[2].partition("<!-- /layers -->")[0]
    rows = tuple(tuple(re.findall(r"`([a-z]+)`", line)) for line in block.splitlines() if line.startswith("| "))
    assert tuple(row for row in rows if row) == LAYERS


def test_packages_of_resources_form_layers() -> None:
    graph: dict[str, set[str]] = {}
    for name in MODULES:
        if name.startswith("envtune.resources."):
            own = name.split(".")[2]
            others = {m.split(".")[2] for m in own_imports(name) if m.startswith("envtune.resources.")}
            graph.setdefault(own, set()).update(others - {own})
    assert cycles(graph) == []


def test_only_the_command_line_imports_typer() -> None:
    wrong = [
        f"{name}:{line}"
        for name in MODULES
        if package_of(name) != "cli"
        for module, line in imports(name)
        if module.split(".")[0] in ("typer", "click", "rich")
    ]
    assert not wrong


STARTS_PROGRAMS = re.compile(
    r"\b(subprocess\.(Popen|run|call|check_\w+|getoutput|getstatusoutput)|os\.(system|popen|exec\w+|spawn\w+|posix_spawn\w*)|pty\.spawn)\("
)


def test_programs_are_started_in_one_place() -> None:
    """All but the user's own command of `envtune run`, which gets the user's own PATH and environment."""
    starting = {name for name, path in MODULES.items() if STARTS_PROGRAMS.search(path.read_text("utf-8"))}
    assert starting == {"envtune.trust.start", "envtune.run.process"}
    wanted = {"Popen", "run", "call", "check_call", "check_output"}
    for name in MODULES:
        nodes = [n for n in nodes_of(name) if isinstance(n, ast.ImportFrom) and n.module in ("subprocess", "os")]
        assert not {alias.name for node in nodes for alias in node.names} & (wanted | {"system", "execv", "execve"}), (
            name
        )


def is_name(node: ast.AST, *names: str) -> bool:
    return isinstance(node, ast.Name) and node.id in names


@pytest.mark.parametrize("package", ["resources", "firewall"])
def test_resources_read_through_the_host(package: str) -> None:
    for name in MODULES:
        if package_of(name) != package:
            continue
        found = [(m, line) for m, line in imports(name) if m.split(".")[0] in TOUCHES_THE_MACHINE - {"socket"}]
        assert not found, f"{name}: {found}: read through context.host"
        nodes = nodes_of(name)
        used = {n.attr for n in nodes if isinstance(n, ast.Attribute) and is_name(n.value, "socket")}
        assert used <= ADDRESS_ARITHMETIC, f"{name}: socket.{used - ADDRESS_ARITHMETIC}: read through context.host"
        calls = [n.lineno for n in nodes if isinstance(n, ast.Call) and is_name(n.func, "open", "eval")]
        assert not calls, f"{name}: line {calls}: read through context.host"


def test_resources_name_no_check() -> None:
    """Which checks a change fixes is found by judging again, not by a list in the code."""
    paths = (ROOT / "checks").glob("*/*.yaml")
    checks = {path.name.partition("-")[0] for path in paths if path.parent.name not in ("faq", "codes", "examples")}
    pattern = re.compile(rf"\b({'|'.join(sorted(checks))})\b")
    named = {
        f"{name}: {pattern.findall(path.read_text('utf-8'))}"
        for name, path in MODULES.items()
        if package_of(name) == "resources" and pattern.search(path.read_text("utf-8"))
    }
    assert not named


@pytest.mark.parametrize("package", TRAVELLERS)
def test_what_travels_needs_nothing_but_python_3_6(package: str) -> None:
    for name, path in MODULES.items():
        if package_of(name) != package:
            continue
        ast.parse(path.read_text("utf-8"), feature_version=(3, 6))
        others = [m for m in own_imports(name) if package_of(m) not in (package, "trust")]
        assert not others, f"{name} imports {others}: it runs where envtune is not installed"
        assert not {m.split(".")[0] for m, _ in imports(name)} & {
            "yaml",
            "psutil",
            "distro",
            "packaging",
            "typing_extensions",
        }


def lines_of(node: ast.AST) -> int:
    """The lines of a function without those of its docstring."""
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    docstring = ast.get_docstring(node, clean=False)
    return (node.end_lineno or node.lineno) - node.lineno + 1 - (docstring or "").count("\n")


def test_modules_stay_small() -> None:
    lines = {name: len(path.read_text("utf-8").splitlines()) for name, path in MODULES.items()}
    assert [f"{name}: {n} lines" for name, n in lines.items() if n > MODULE_LINES] == []


def test_functions_stay_small() -> None:
    """Those that are longer have a reason; one that has become shorter needs it no more."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    long = {
        f"{name}.{node.name}": lines_of(node)
        for name in MODULES
        for node in nodes_of(name)
        if isinstance(node, functions) and lines_of(node) > FUNCTION_LINES
    }
    assert {name: lines for name, lines in long.items() if name not in LONG_FUNCTIONS} == {}
    assert set(LONG_FUNCTIONS) - set(long) == set()


def test_functions_are_no_more_complex_than_eight_unless_for_a_reason() -> None:
    """ruff measures it (`make lint`); here is what it is told."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    assert "max-complexity = 8\n" in text and '"C90"' in text.partition("select = [")[2].partition("]")[0]
    assert "C90" not in text.partition("[tool.ruff.lint.per-file-ignores]")[2]
    lines = [line for path in MODULES.values() for line in path.read_text("utf-8").splitlines() if "C901" in line]
    assert [line for line in lines if not re.search(r"# noqa: C901 \(\w.*\)$", line)] == []
    assert len(lines) == len(COMPLEX_FUNCTIONS), f"one for each of {COMPLEX_FUNCTIONS}"


def test_folders_stay_small() -> None:
    files: dict[Path, int] = {}
    for path in MODULES.values():
        files[path.parent] = files.get(path.parent, 0) + 1
    limits = {folder: ROOT_FILES if folder == PACKAGE else FOLDER_FILES for folder in files}
    assert [f"{folder.relative_to(ROOT)}: {n}" for folder, n in files.items() if n > limits[folder]] == []


def test_the_engine_does_not_import_what_is_slow() -> None:
    """Imports at the top of a module that every `check` pays for (measured: psutil 37 ms, yaml 35, distro 35)."""
    for name in MODULES:
        tops = [node for node in tree_of(name).body if isinstance(node, (ast.Import, ast.ImportFrom))]
        names = {alias.name for node in tops if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module or "" for node in tops if isinstance(node, ast.ImportFrom) and not node.level}
        heavy = {module.split(".")[0] for module in names} & SLOW
        assert heavy <= ({"yaml"} if name == "envtune.catalog.yaml" else set()), f"{name} imports {heavy} on every run"


# Words that a reader would have to learn here first. The word on the right says what is meant.
PRIVATE_WORDS: Mapping[str, str] = {
    "scene": "context",
    "told": "known, stated, reported",
    "untold": "unknown",
    "witness": "sentinel, host",
    "settle": "reconcile",
    "settled": "reconcile",
    "census": "inventory",
    "cure": "fix",
    "cures": "fixes",
    "cured": "fixed",
    "loosened": "relaxed",
    "shapes": "templates",
    "outline": "template",
    "dull": "common",
    "blamed": "reported",
    "grave": "needs_consent",
    "blind": "unknown",
    "blurred": "unknown",
    "doubted": "uncertain",
    "complaint": "diagnostic",
    "complaints": "diagnostics",
    "spoiled": "reported",
    "held": "withheld",
    "rival": "other owner",
    "handed": "inherited",
    "dress": "apply metadata",
    "theirs": "the owner's name",
    "ours": "own",
    "stuck": "failed",
    "somebody": "interactive",
    "beside": "next to; a path",
    "aside": "detached, copied",
}


def identifiers(name: str) -> Iterator[str]:
    for node in nodes_of(name):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def test_identifiers_use_the_words_of_the_field() -> None:
    split = re.compile(r"_+|(?<=[a-z])(?=[A-Z])")
    wrong = sorted(
        {
            f"{name}: {identifier} ({PRIVATE_WORDS[word.lower()]})"
            for name in MODULES
            for identifier in identifiers(name)
            for word in split.split(identifier)
            if word.lower() in PRIVATE_WORDS
        }
    )
    assert not wrong, "\n".join(wrong)


def tracked() -> Iterator[Path]:
    """Every text file of the project, without what tools leave behind."""
    skipped = re.compile(r"\.git|\.venv.*|\.cache|dist|build|__pycache__|\.[a-z]+_cache|\.hypothesis")
    for base, folders, names in os.walk(ROOT):
        folders[:] = [folder for folder in folders if not skipped.fullmatch(folder)]
        paths = (Path(base, name) for name in names if not skipped.fullmatch(name))  # .git of a worktree is a file
        yield from (path for path in paths if path.suffix in TEXT and path.is_file())


def test_no_file_names_a_place_that_exists_on_one_machine_only() -> None:
    places = ["/work" + "/", ".." + "/shared", "." + "library", "/opt/pypi" + "-more"]
    for path in tracked():
        text = path.read_text("utf-8", "replace")
        assert not [place for place in places if place in text], path


def test_the_code_holds_no_chinese() -> None:
    """It is in the gettext catalog, where translators look for it."""
    chinese = re.compile("[\u3001-\u9fff\uff01-\uff5e]")
    assert [name for name, path in MODULES.items() if chinese.search(path.read_text("utf-8"))] == []
