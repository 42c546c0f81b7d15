"""The shape of the code, so that it stays: who imports whom, who touches the machine, and how long a module may be."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path
from typing import Iterator

import pytest
from helpers.examples import ROOT

PACKAGE = ROOT / "envtune"
MODULES = sorted(path for path in PACKAGE.rglob("*.py"))

# A layer may import the layers below it. `host` reads with the collector's functions, `snapshot*` is a host; `shell`
# reads launch scripts for `launch*`. The first word of a module's name says where it belongs.
LAYERS = (
    ("model", "errors", "messages", "ranges", "ranges_numbers", "intervals", "collector", "executor"),
    ("shell", "schema"),
    ("host", "snapshot"),
    ("job",),
    ("context", "expect"),
    ("resources",),
    ("catalog",),
    ("audit", "diagnose", "fix", "report", "run"),
    ("cli",),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
TRAVELLERS = ("collector", "executor")  # sent to a host as one file
TOUCHES_THE_MACHINE = {"os", "subprocess", "socket", "psutil", "shutil", "glob", "pathlib", "io", "tempfile", "ctypes"}
ADDRESS_ARITHMETIC = {"inet_pton", "inet_ntop", "AF_INET", "AF_INET6"}  # of socket: text and numbers, no machine

# Longer than a module should be, and why that is right.
LONG = {
    "collector": "it travels to a host as one file",
    "executor": "it travels to a host as one file",
}
LIMIT = 350
TEXT = (".py", ".yaml", ".md", ".toml", ".txt", "")


def name_of(path: Path) -> str:
    """`envtune/resources/cpufreq.py` as `resources.cpufreq`."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def rank_of(name: str) -> int:
    """The layer of a module by the first word of its name."""
    assert name in RANK, f"{name} is in no layer"
    return RANK[name]


def imported(path: Path) -> Iterator[tuple[str, int, bool]]:
    """(module, line, only for type checking) of every import, also those inside functions."""
    tree = ast.parse(path.read_text("utf-8"))
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno, id(node) in typing_only
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            yield node.module or "", node.lineno, id(node) in typing_only
            if node.module == "envtune":
                for alias in node.names:
                    yield f"envtune.{alias.name}", node.lineno, id(node) in typing_only


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_go_down(path: Path) -> None:
    own = name_of(path).split(".")[0]
    if own in ("__init__", "__main__"):
        return  # the version; the way into the command line
    for module, line, typing_only in imported(path):
        parts = module.split(".")
        if parts[0] != "envtune" or len(parts) == 1 or parts[1].startswith("_") or typing_only:
            continue
        assert rank_of(parts[1]) <= rank_of(own), f"{path.name}:{line}: {own} imports {module}, which is above it"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_only_the_command_line_imports_typer(path: Path) -> None:
    if not name_of(path).startswith("cli"):
        assert not [(m, line) for m, line, _ in imported(path) if m.split(".")[0] in ("typer", "click", "rich")]


@pytest.mark.parametrize("path", sorted((PACKAGE / "resources").rglob("*.py")), ids=name_of)
def test_resources_read_through_the_host(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    found = [(m, line) for m, line, _ in imported(path) if m.split(".")[0] in TOUCHES_THE_MACHINE - {"socket"}]
    assert not found, f"{found}: read through context.host"
    used = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and ast.unparse(n.value) == "socket"}
    assert used <= ADDRESS_ARITHMETIC, f"socket.{used - ADDRESS_ARITHMETIC}: read through context.host"
    calls = [n.lineno for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func) in ("open", "eval")]
    assert not calls, f"{path.name}: line {calls}: read through context.host"


@pytest.mark.parametrize("name", TRAVELLERS)
def test_what_travels_needs_nothing_but_python_3_6(name: str) -> None:
    path = PACKAGE / f"{name}.py"
    ast.parse(path.read_text("utf-8"), feature_version=(3, 6))
    own = [(module, line) for module, line, _ in imported(path) if module.split(".")[0] == "envtune"]
    assert not own, f"{own}: it runs where envtune is not installed"
    others = {module.split(".")[0] for module, _, _ in imported(path)} & {"yaml", "psutil", "distro", "packaging"}
    assert not others


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_is_one_room(path: Path) -> None:
    name, lines = name_of(path), len(path.read_text("utf-8").splitlines())
    if name in LONG:
        assert lines > LIMIT, f"{name} is short again: take it off the list"
    else:
        assert lines <= LIMIT, f"{name} has {lines} lines"


def test_the_engine_does_not_import_what_is_slow() -> None:
    """Imports at the top of a module that every `check` pays for (measured: psutil 37 ms, yaml 35, distro 35)."""
    slow = {
        "psutil",
        "yaml",
        "distro",
        "packaging",
        "rich",
        "asyncio",
        "logging",
        "argparse",
        "urllib",
        "http",
        "email",
    }
    for path in MODULES:
        tree = ast.parse(path.read_text("utf-8"))
        tops = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
        names = {alias.name for node in tops if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module or "" for node in tops if isinstance(node, ast.ImportFrom)}
        heavy = {name.split(".")[0] for name in names} & slow
        allowed = {"yaml"} if name_of(path) in ("catalog.yaml", "catalog.yaml_scalars") else set()
        assert heavy <= allowed, f"{name_of(path)} imports {heavy - allowed} on every run"


def tracked() -> Iterator[Path]:
    """Every text file of the project, without what tools leave behind."""
    skipped = re.compile(r"\.git|\.venv.*|\.cache|dist|build|__pycache__|\.[a-z]+_cache|\.hypothesis")
    for base, folders, names in os.walk(ROOT):
        folders[:] = [folder for folder in folders if not skipped.fullmatch(folder)]
        yield from (path for path in (Path(base, name) for name in names) if path.suffix in TEXT and path.is_file())


def test_no_file_names_a_place_that_exists_on_one_machine_only() -> None:
    places = ["/work" + "/", ".." + "/shared", "." + "library", "/opt/pypi" + "-more"]
    for path in tracked():
        text = path.read_text("utf-8", "replace")
        assert not [place for place in places if place in text], path
