"""Write a package as one file that needs nothing but Python 3.6: the collector and the executor, to send to hosts.

Modules follow each other in the order of their imports, relative imports are dropped, and each import of the standard
library appears once, at the top. Whatever would change its meaning in a single file (a name defined twice, an alias, an
import cycle) is refused. What a package imports from the packages in COMPANIONS is included. `scripts/assemble.py` is
the command-line interface; a wheel and the .pyz contain the files it writes.
"""

from __future__ import annotations

import ast
import builtins
import pkgutil
import textwrap
from pathlib import Path
from typing import Iterable, Iterator, Mapping, NamedTuple, Union

from envtune import version

OLDEST = (3, 6)
WIDTH = 120
MAIN = "__main__"
COMPANIONS = ("trust",)  # packages next to the assembled one
# Before anything else is imported: Python puts the program's own directory, or the current one for a program from
# standard input, in front of its library, and a `:` at either end of PYTHONPATH also means the current one. Only `-I`
# keeps a sitecustomize from there from running before this line.
PROLOGUE = """
import sys

if __name__ == "__main__":
    sys.path[:] = [p for p in sys.path if p.startswith((sys.base_prefix + "/lib", sys.base_exec_prefix + "/lib"))]
"""
START = "#!/usr/bin/python3 -I\n"  # not from PATH; `env -S` is missing before coreutils 8.30 (CentOS 7, Ubuntu 18.04)
_RULE = "# " + "-" * 100
_SCOPES = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)


class AssemblyError(ValueError):
    """The package cannot be one file; the message names the place and the reason."""


class Import(NamedTuple):
    """What a name is bound to by `import module as name` or `from module import member as name`."""

    module: str
    member: str = ""


class Module(NamedTuple):
    """One module of the package. `name` is relative to it: `sources.cann`; empty for its `__init__`."""

    name: str
    path: Path
    docstring: str  # as in the source
    code: str  # without docstring and imports
    imports: Mapping[str, Import]  # of the standard library
    needs: Mapping[str, tuple[str, ...]]  # module of the package -> the names imported from it
    definitions: Mapping[str, int]  # name -> line


def shipped(name: str) -> str:
    """Return the package `envtune.<name>` as one file: the one in a wheel or zipapp, or assembled from a checkout."""
    try:
        data = pkgutil.get_data("envtune", f"_data/{name}.py")
    except OSError:
        data = None
    return assemble(Path(version.__file__).with_name(name)) if data is None else data.decode("utf-8")


def assemble(package: Path) -> str:
    """Return a package as one file; raises AssemblyError, OSError, SyntaxError."""
    paths = {_name(package, path): path for path in sorted(package.rglob("*.py"))}
    own = set(paths)
    for name in COMPANIONS:
        if name not in paths:
            companion = package.with_name(name)
            paths.update((_name(package.parent, path), path) for path in sorted(companion.rglob("*.py")))
    modules = {name: _module(package, name, path, set(paths)) for name, path in paths.items()}
    if MAIN not in modules:
        raise AssemblyError(f"{package}: no {MAIN}.py")
    ordered = _ordered(modules, own)
    imports = _merged_imports(ordered)
    _check_names(ordered, imports)
    if any(bound.module == "__future__" for bound in imports.values()):
        raise AssemblyError(f"{package}: imports from __future__ would have to precede the first lines")
    parts = [START, modules[MAIN].docstring, "\n", PROLOGUE, *_import_lines(imports)]
    parts += [f"\n{_RULE} {module.name}\n\n\n{module.code}" for module in ordered if module.code]
    text = "".join(parts)
    ast.parse(text, f"{package.name}.py", feature_version=OLDEST)
    return text


def _name(package: Path, path: Path) -> str:
    parts = path.relative_to(package).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _module(package: Path, name: str, path: Path, names: set[str]) -> Module:
    """Read one module; `names` are those of all modules of the package."""
    text = path.read_text("utf-8")
    tree = ast.parse(text, str(path))
    imports: dict[str, Import] = {}
    needs: dict[str, tuple[str, ...]] = {}
    definitions: dict[str, int] = {}
    dropped: list[ast.stmt] = tree.body[:1] if ast.get_docstring(tree) is not None else []
    docstring = ast.get_source_segment(text, dropped[0]) if dropped else ""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.level:
            target = _target(package, path, node, names)
            needs[target] = (*needs.get(target, ()), *(alias.name for alias in node.names))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            imports.update(_bound_by(path, node))
        else:
            _refuse(name, path, node)
            definitions.update(_defined_by(node))
            continue
        dropped.append(node)
    return Module(name, path, docstring or "", _without(text, dropped), imports, needs, definitions)


def _target(package: Path, path: Path, node: ast.ImportFrom, names: set[str]) -> str:
    """Return the module of the package that a relative import refers to."""
    where, inside = f"{path}:{node.lineno}", package in path.parents
    parts = path.relative_to(package if inside else package.parent).parts
    if any(alias.asname is not None or alias.name == "*" for alias in node.names):
        raise AssemblyError(f"{where}: in one file there is no second name: import each name as it is defined")
    target = ".".join([*parts[: -node.level], *([node.module] if node.module else [])])
    neighbour = inside and node.level == len(parts) + 1 and target.partition(".")[0] in COMPANIONS
    if (node.level > len(parts) and not neighbour) or target not in names:
        raise AssemblyError(f"{where}: {package.name} has no such module")
    for alias in node.names:
        if f"{target}.{alias.name}".lstrip(".") in names:
            raise AssemblyError(f"{where}: in one file there is no module {alias.name}: import names from it")
    return target


def _bound_by(path: Path, node: Union[ast.Import, ast.ImportFrom]) -> Iterator[tuple[str, Import]]:
    """Yield the names that an import of the standard library binds."""
    for alias in node.names:
        module = alias.name if isinstance(node, ast.Import) else node.module or ""
        if module.partition(".")[0] == "envtune":
            raise AssemblyError(f"{path}:{node.lineno}: the file runs where envtune is not installed")
        if alias.name == "*" or (isinstance(node, ast.Import) and "." in alias.name and alias.asname is None):
            raise AssemblyError(f"{path}:{node.lineno}: write `from ... import name`")
        yield alias.asname or alias.name, Import(module, alias.name if isinstance(node, ast.ImportFrom) else "")


def _refuse(name: str, path: Path, node: ast.stmt) -> None:
    """Raise AssemblyError for a statement that would behave differently in one file."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.ImportFrom) and inner.level:
            raise AssemblyError(f"{path}:{inner.lineno}: a relative import belongs to the top of the module")
    if name != MAIN and isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
        raise AssemblyError(f"{path}:{node.lineno}: only {MAIN}.py may ask whether it is the program")


def _defined_by(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield (name, line) for what a top-level statement of a module binds, including inside `if` and `try`."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name, node.lineno
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id, node.lineno
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from ((alias.asname or alias.name.partition(".")[0], node.lineno) for alias in node.names)
    elif not isinstance(node, _SCOPES):
        for child in ast.iter_child_nodes(node):
            yield from _defined_by(child)


def _without(text: str, dropped: Iterable[ast.stmt]) -> str:
    """Return the text without these statements and without the line that names the interpreter."""
    lines = text.splitlines(keepends=True)
    for node in dropped:
        for number in range(node.lineno - 1, node.end_lineno or node.lineno):
            lines[number] = ""
    if lines and lines[0].startswith("#!"):
        lines[0] = ""
    code = "".join(lines).strip("\n")
    return code + "\n" if code else ""


def _ordered(modules: Mapping[str, Module], own: set[str]) -> list[Module]:
    """Return the package's `own` modules and their dependencies, each after those it imports, the program last."""
    ordered: dict[str, Module] = {}

    def add(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            raise AssemblyError(
                "modules import each other in a circle: " + " -> ".join((*path[path.index(name) :], name))
            )
        if name not in ordered:
            for needed in sorted(modules[name].needs):
                add(needed, (*path, name))
            ordered[name] = modules[name]

    for name in sorted(own, key=lambda name: (name == MAIN, name)):
        add(name, ())
    return list(ordered.values())


def _merged_imports(modules: Iterable[Module]) -> dict[str, Import]:
    """Return every import of the standard library by the name it binds."""
    imports: dict[str, Import] = {}
    for module in modules:
        for name, bound in module.imports.items():
            if imports.setdefault(name, bound) != bound:
                raise AssemblyError(f"{module.path}: {name} is another import elsewhere in the package")
    return imports


def _check_names(modules: Iterable[Module], imports: Mapping[str, Import]) -> None:
    """Refuse a name that does not exist, that two modules define, or that would shadow an import or builtin."""
    owners: dict[str, Module] = {}
    by_name = {module.name: module for module in modules}
    for module in modules:
        for needed, names in module.needs.items():
            missing = set(names) - set(by_name[needed].definitions) - set(by_name[needed].imports)
            if missing:
                raise AssemblyError(f"{module.path}: {by_name[needed].path} does not define {min(missing)}")
        for name, line in module.definitions.items():
            where, owner = f"{module.path}:{line}", owners.setdefault(name, module)
            if owner is not module:
                raise AssemblyError(f"{where}: {name} is defined in {owner.path}, too")
            if name in imports:
                raise AssemblyError(f"{where}: {name} is the name of an import, too")
            if hasattr(builtins, name):
                raise AssemblyError(f"{where}: {name} would hide the builtin from the other modules")


def _import_lines(imports: Mapping[str, Import]) -> Iterator[str]:
    """Yield the import statements, one per module."""
    whole: list[str] = []
    members: dict[str, list[str]] = {}
    for name, bound in sorted(imports.items()):
        target = bound.member or bound.module
        words = target if target == name else f"{target} as {name}"
        (members.setdefault(bound.module, []) if bound.member else whole).append(words)
    yield "\n" + "".join(f"import {words}\n" for words in sorted(whole))
    for module, names in sorted(members.items()):
        line = f"from {module} import {', '.join(names)}\n"
        if len(line) > WIDTH:
            block = textwrap.fill(", ".join(names) + ",", WIDTH, initial_indent="    ", subsequent_indent="    ")
            line = f"from {module} import (\n{block}\n)\n"
        yield line
