"""`images.patch_torchvision`: change a known line of an installed Python file, found by its content.

torchvision before 0.5.0 imports PILLOW_VERSION, which Pillow 7.0 and 9.0 do not have (porting guide 003:1455-1463;
pytorch/vision#1712). The import is wrapped as in the guide, with `except ImportError` instead of its bare `except`. The
value is the guide's "7.0.0": torchvision compares it as text, so Pillow's own "10.0" would count as older than "5" and
silently drop an argument.
"""

from __future__ import annotations

import ast
import base64
import difflib
import re
from typing import Annotated, Iterable, Literal, Optional, Sequence

from envtune.collector.python.distributions import module_head
from envtune.context import Context
from envtune.context.registry import action
from envtune.errors import BEGINNING_ONLY, NotRecorded, Skipped
from envtune.executor.files import digest
from envtune.host import decode
from envtune.messages import N_, Message
from envtune.model import Change, Finding
from envtune.resources.files.change import written_path
from envtune.resources.images.opencv import bare_import
from envtune.resources.python.distributions import locate
from envtune.resources.python.site import needs_root

NAME = "PILLOW_VERSION"

Known = Annotated[
    Literal["torchvision-pillow-version"], N_("Line to patch: the import of PILLOW_VERSION in torchvision.")
]


@action("images.patch_torchvision", formerly="python.patch")
def patch(context: Context, findings: Sequence[Finding], *, known: Known) -> Iterable[Change]:
    """Propose the changed file; raises Skipped if the line is missing or written in an unknown way."""
    place = locate(context, "torchvision")
    if place is None:
        raise Skipped(Message("torchvision is not installed"))
    path = written_path(context.host, f"{place}/transforms/functional.py")
    data = context.host.read_bytes(path)
    text = decode(path, data)
    if not context.host.live and module_head(text) == text:
        raise NotRecorded(path, BEGINNING_ONLY)
    patched = guarded(text, path)
    yield Change(
        finding=findings[0].id,
        subject=findings[0].subject,
        playbook="",
        action="images.patch_torchvision",
        target=path,
        before=_excerpt(text, patched, 0),
        after=_excerpt(text, patched, 1),
        scope="job",
        operations=(
            {
                "op": "file",
                "path": path,
                "expect": digest(data),
                "content": base64.b64encode(patched.encode("utf-8")).decode("ascii"),
            },
        ),
        safety="confirm",
        disruption="none",
        root=needs_root(context.host, path.rpartition("/")[0]),
        note=Message(
            "lost when torchvision is reinstalled; torchvision 0.5.0 and newer need no patch, if the torch"
            " in use allows them"
        ),
    )


def guarded(text: str, path: str) -> str:
    """Return the source with its bare import of PILLOW_VERSION wrapped; raises Skipped if that is not safe."""
    head = module_head(text)
    node = bare_import(head, path)
    if node is None:
        raise Skipped(Message("{path} has no bare import of {NAME}", path=path, NAME=NAME))
    # Lines as counted by the compiler: a lone carriage return ends a line, but a form feed, unlike in splitlines, does
    # not.
    lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    _refuse_company(lines, node, path)
    newline = lines[first][len(lines[first].rstrip("\r\n")) :] or "\n"
    indent = lines[first][: node.col_offset]
    step = "\t" if indent.endswith("\t") else "    "
    wrapped = [step + line.rstrip("\r\n") for line in lines[first : last + 1]]
    block = [f"{indent}try:", *wrapped, f"{indent}except ImportError:", *_without(node, indent + step)]
    result = "".join([*lines[:first], *(line + newline for line in block), *lines[last + 1 :]])
    _must_compile(text, result, path)
    return result


def _refuse_company(lines: Sequence[str], node: ast.ImportFrom, path: str) -> None:
    """Refuse a line that contains more than this statement."""
    before = lines[node.lineno - 1].encode("utf-8")[: node.col_offset]
    after = lines[(node.end_lineno or node.lineno) - 1].encode("utf-8")[node.end_col_offset or 0 :].strip()
    if before.strip() or (after and not after.startswith(b"#")):
        line = lines[node.lineno - 1].strip()
        raise Skipped(Message("{path}: other code shares the line: {line}", path=path, line=line))


def _without(node: ast.ImportFrom, indent: str) -> list[str]:
    """Return the same import without PILLOW_VERSION, and its value under the name the file uses."""
    others = [f"{a.name} as {a.asname}" if a.asname else a.name for a in node.names if a.name != NAME]
    name = next(a.asname or a.name for a in node.names if a.name == NAME)
    imported = [f"{indent}from {node.module} import {', '.join(others)}"] if others else []
    return [*imported, f'{indent}{name} = "7.0.0"  # what torchvision compares with; Pillow 7.0 and 9.0 lack it']


def _must_compile(before: str, after: str, path: str) -> None:
    def compiles(text: str) -> Optional[str]:
        try:
            compile(text, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            return str(error)
        return None

    fault = compiles(after)
    if fault is not None and compiles(before) is None:
        raise Skipped(Message("{path} would not compile: {fault}", path=path, fault=fault))
    if fault is not None:
        raise Skipped(Message("{path} does not compile as it is: {fault}", path=path, fault=fault))


def _excerpt(before: str, after: str, side: int) -> str:
    """Return the changed lines of one side."""
    lines = (before.splitlines(), after.splitlines())
    mark = "-" if side == 0 else "+"
    return "\n".join(row[2:] for row in difflib.ndiff(*lines) if row.startswith(mark + " "))
