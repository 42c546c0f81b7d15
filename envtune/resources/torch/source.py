"""What the installed torch's own source files offer: dump interface, hook code, affinity library."""

from __future__ import annotations

import ast
from typing import Iterable, Iterator, Optional

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import NotApplicable
from envtune.host import exists
from envtune.messages import Literal, Message, Text
from envtune.model import Evidence, Reading
from envtune.resources.python.distributions import NONE, locate
from envtune.resources.torch.stack import incomplete, npu_torch, parsed, release, told_version, torch_place

DUMP_UNTIL = (1, 8)  # 003:1593: the dumper is not supported on 1.8.1
HOOK_RELEASE = "1.5"  # 003:3340-3390: the traceback and the lines are those of torch 1.5
AFFINITY = (("torch_npu", "contrib"), ("torch", "contrib/npu/optimized_lib"))


def _before(context: Context, limit: tuple[int, ...]) -> bool:
    numbers = tuple(int(part) for part in release(told_version(context, "torch")).split(".") if part.isdigit())
    return numbers < limit


def _wrong_version(context: Context, wanted: Text) -> NotApplicable:
    version = told_version(context, "torch")
    return NotApplicable(
        Message("torch is {version}; this concerns {wanted}", version=version, wanted=wanted),
        context.facts["torch"].source,
    )


@probe("torch.dumper", formerly="torch_source.dumper")
def dumper(context: Context) -> Iterable[Reading]:
    """Whether torch.utils.dumper, which the 1.5.0 line has for precision debugging, is installed."""
    place = npu_torch(context)
    if not _before(context, DUMP_UNTIL):
        raise _wrong_version(context, Message("torch before 1.8"))
    path = f"{place}/utils/dumper.py"
    has = exists(context.host, path)
    words = Message("installed") if has else Message("not there")
    evidence = Evidence(path, path if has else "not there")
    yield Reading("torch.utils.dumper", has, evidence, words, Message("installed"))


@probe("torch.hook", formerly="torch_source.hook")
def hook(context: Context) -> Iterable[Reading]:
    """`bare` where the search for a tensor in a result may raise StopIteration, else `guarded` or `changed`."""
    place = torch_place(context)
    user = next((name for name in ("mmdet", "mmcv") if locate(context, name)), None)
    if user is None:
        source = place.rpartition("/")[0]
        raise NotApplicable(
            Message("mmcv is {NONE} and mmdet is {NONE} in this Python", NONE=NONE),
            source,
        )
    if not release(told_version(context, "torch")).startswith(HOOK_RELEASE + "."):
        raise _wrong_version(context, Message("torch {HOOK_RELEASE}", HOOK_RELEASE=HOOK_RELEASE))
    path = f"{place}/nn/modules/module.py"
    text = context.host.read(path)
    state, line = hook_state(parsed(text, path))
    shown = {
        "bare": Message("line {line}: next(...) outside any try", line=line),
        "guarded": Message("line {line}: inside a try", line=line),
        "changed": Message("no such code"),
    }[state]
    raw = text.splitlines()[line - 1].strip() if line else ""
    yield Reading(
        "torch.nn.Module",
        state,
        Evidence(path, raw),
        shown,
        Message("guarded against StopIteration"),
    )


def hook_state(tree: ast.Module) -> tuple[str, int]:
    """(bare, guarded or changed, its line) of the loop in Module that takes `next(...)` of a result's values."""
    for owner in tree.body:
        if isinstance(owner, ast.ClassDef) and owner.name == "Module":
            for line, guarded in _next_calls(owner, False, False):
                return ("guarded" if guarded else "bare"), line
    return "changed", 0


def _next_calls(node: ast.AST, in_loop: bool, guarded: bool) -> Iterator[tuple[int, bool]]:
    """Lines with next() on a generator within a while loop, and whether a try surrounds them."""
    for child in ast.iter_child_nodes(node):
        if in_loop and _is_next(child):
            yield child.lineno, guarded  # type: ignore[attr-defined]
        catches = isinstance(node, ast.Try) and child in node.body and bool(node.handlers)
        yield from _next_calls(child, in_loop or isinstance(child, ast.While), guarded or catches)


def _is_next(node: ast.AST) -> bool:
    """`next(... for ...)`, without a default."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "next":
        return False
    return len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp)


@probe("torch.affinity", formerly="torch_source.affinity")
def affinity(context: Context) -> Iterable[Reading]:
    """Where the affinity library of the installed torch lies; empty without one."""
    place = npu_torch(context)
    found: Optional[str] = None
    for package, inside in AFFINITY:
        home = locate(context, package)
        if found is None and home is not None and exists(context.host, f"{home}/{inside}/__init__.py"):
            found = f"{home}/{inside}"
    plugin = locate(context, "torch_npu")
    if found is None and plugin is not None and not exists(context.host, f"{plugin}/contrib"):
        raise incomplete(f"{plugin}/contrib")
    name = found.split("/site-packages/")[-1].replace("/", ".") if found else ""
    shown = Literal(name) if found else Message("none")
    yield Reading("affinity library", found or "", Evidence(found or place, found or "not there"), shown)
