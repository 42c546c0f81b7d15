"""What the installed torch's own source files provide: dump interface, hook code, affinity library."""

from __future__ import annotations

import ast
from typing import Iterable, Iterator

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import NotApplicable
from envtune.host import exists
from envtune.messages import Literal, Message, Text
from envtune.model import Evidence, Reading
from envtune.resources.python.distributions import locate
from envtune.resources.torch.stack import (
    incomplete_plugin,
    npu_torch_directory,
    parse_source,
    release,
    release_numbers,
    torch_directory,
    version_fact,
)

DUMP_UNTIL = (1, 8)  # 003:1593: the dumper is not supported on 1.8.1
HOOK_RELEASE = "1.5"  # 003:3340-3390: the traceback and the lines are those of torch 1.5
AFFINITY = (("torch_npu", "contrib"), ("torch", "contrib/npu/optimized_lib"))


def _wrong_version(context: Context, concerned: Text) -> NotApplicable:
    version = version_fact(context, "torch")
    return NotApplicable(
        Message("torch is {version}; this applies to {concerned}", version=version, concerned=concerned),
        context.facts["torch"].source,
    )


@probe("torch.dumper", formerly="torch_source.dumper")
def dumper(context: Context) -> Iterable[Reading]:
    """Whether torch 1.5 includes the dump interface for precision debugging (torch.utils.dumper)."""
    directory = npu_torch_directory(context)
    if release_numbers(version_fact(context, "torch")) >= DUMP_UNTIL:
        raise _wrong_version(context, Message("torch before 1.8"))
    path = f"{directory}/utils/dumper.py"
    has_dumper = exists(context.host, path)
    shown = Message("installed") if has_dumper else Message("does not exist")
    evidence = Evidence(path, path if has_dumper else "does not exist")
    yield Reading("torch.utils.dumper", has_dumper, evidence, shown, Message("installed"))


@probe("torch.hook", formerly="torch_source.hook")
def hook(context: Context) -> Iterable[Reading]:
    """Backward hook of torch 1.5: `bare` (may raise StopIteration), `guarded` or `changed`."""
    directory = torch_directory(context)
    if not any(locate(context, name) for name in ("mmdet", "mmcv")):
        raise NotApplicable(Message("neither mmcv nor mmdet is installed in this Python"), directory.rpartition("/")[0])
    if not release(version_fact(context, "torch")).startswith(HOOK_RELEASE + "."):
        raise _wrong_version(context, Literal(f"torch {HOOK_RELEASE}"))
    path = f"{directory}/nn/modules/module.py"
    text = context.host.read(path)
    state, line = hook_state(parse_source(text, path))
    shown = {
        "bare": Message("line {line}: next(...) outside any try", line=line),
        "guarded": Message("line {line}: inside a try", line=line),
        "changed": Message("no such code"),
    }[state]
    raw = text.splitlines()[line - 1].strip() if line else ""
    yield Reading("torch.nn.Module", state, Evidence(path, raw), shown, Message("guarded against StopIteration"))


def hook_state(tree: ast.Module) -> tuple[str, int]:
    """Return bare, guarded or changed, and the line, for the loop in Module that calls `next(...)` on a result."""
    for owner in tree.body:
        if isinstance(owner, ast.ClassDef) and owner.name == "Module":
            for line, guarded in _next_calls(owner, False, False):
                return ("guarded" if guarded else "bare"), line
    return "changed", 0


def _next_calls(node: ast.AST, in_loop: bool, guarded: bool) -> Iterator[tuple[int, bool]]:
    """Yield the lines with next() on a generator inside a while loop, and whether a try surrounds them."""
    for child in ast.iter_child_nodes(node):
        if in_loop and _is_next(child):
            yield child.lineno, guarded  # type: ignore[attr-defined]
        catches = isinstance(node, ast.Try) and child in node.body and bool(node.handlers)
        yield from _next_calls(child, in_loop or isinstance(child, ast.While), guarded or catches)


def _is_next(node: ast.AST) -> bool:
    """Return whether the node is `next(... for ...)` without a default."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "next":
        return False
    return len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp)


@probe("torch.affinity", formerly="torch_source.affinity")
def affinity(context: Context) -> Iterable[Reading]:
    """Path of torch's affinity library; empty if torch has none."""
    torch = npu_torch_directory(context)
    library = next((path for path in _affinity_paths(context) if exists(context.host, f"{path}/__init__.py")), None)
    plugin = locate(context, "torch_npu")
    if library is None and plugin is not None and not exists(context.host, f"{plugin}/contrib"):
        raise incomplete_plugin(f"{plugin}/contrib")
    name = library.split("/site-packages/")[-1].replace("/", ".") if library else ""
    shown = Literal(name) if library else Message("none")
    yield Reading("affinity library", library or "", Evidence(library or torch, library or "does not exist"), shown)


def _affinity_paths(context: Context) -> Iterator[str]:
    for package, inside in AFFINITY:
        directory = locate(context, package)
        if directory is not None:
            yield f"{directory}/{inside}"
