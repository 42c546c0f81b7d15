"""What image libraries other than Pillow need: torchvision its PILLOW_VERSION, a model its OpenCV."""

from __future__ import annotations

import ast
import re
from typing import Iterable, Iterator, Optional

from envtune.collector.python.distributions import module_head
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import Missing, NotApplicable, Undetermined
from envtune.messages import Literal, Message, Text
from envtune.model import Evidence, Reading
from envtune.resources.images.pillow import BROKEN, Imported, imported_pillow
from envtune.resources.python.distributions import Distribution, absent, every, locate

# The four distributions that all install the package cv2 (PyPI, opencv-python's README: "never install more than one").
OPENCV = ("opencv-python", "opencv-python-headless", "opencv-contrib-python", "opencv-contrib-python-headless")


@probe("images.pillow_version", formerly="imaging.pillow_version")
def pillow_version(context: Context) -> Iterable[Reading]:
    """Whether torchvision can be imported with the installed Pillow, which may lack PILLOW_VERSION."""
    place = locate(context, "torchvision")
    if place is None:
        raise absent(context, "torchvision")
    path = f"{place}/transforms/functional.py"
    head = module_head(context.host.read(path))
    imported = pillow_version_import(head, path)
    if imported is None:
        yield _reading(True, path, "", Message("torchvision does not import PILLOW_VERSION"))
        return
    line, guarded = imported
    if guarded:
        yield _reading(True, path, line, Message("the import of PILLOW_VERSION is guarded"))
        return
    pillow = _pillow(context)
    has, source = _offers(context, pillow)
    name = pillow.words() if pillow is not None else "PIL"
    text = f"{path}: {line}\n{source}"
    if has:
        yield _reading(True, path, text, Message("{name} has PILLOW_VERSION", name=name))
    else:
        yield _reading(False, path, text, Message("imports PILLOW_VERSION, which {name} lacks", name=name))


def _reading(value: bool, path: str, text: str, shown: Text) -> Reading:
    wanted = Message("an import of torchvision that succeeds")
    return Reading("torchvision", value, Evidence(path, text), shown, wanted)


def _pillow(context: Context) -> Optional[Imported]:
    try:
        return imported_pillow(context)
    except NotApplicable:
        return None


def _offers(context: Context, pillow: Optional[Imported]) -> tuple[bool, str]:
    """Return whether `from PIL import PILLOW_VERSION` works, and the file that shows it."""
    place = locate(context, "PIL")
    if pillow is None or pillow.kind == BROKEN or place is None:
        return False, "PIL"
    path = f"{place}/__init__.py"
    return offers_pillow_version(context.host.read(path)), f"{path} ({pillow.version})"


def offers_pillow_version(text: str) -> bool:
    """Return whether PIL/__init__.py defines PILLOW_VERSION: a name (to 6.2.2) or in `__getattr__` (7.1.0 to 8.4.0)."""
    return bool(
        re.search(r"^[^#\n]*\bPILLOW_VERSION\s*=[^=]", text, re.M)
        or re.search(r"^[^#\n]*==\s*['\"]PILLOW_VERSION['\"]", text, re.M)
    )


def pillow_version_import(head: str, path: str) -> Optional[tuple[str, bool]]:
    """Return (the import line, whether a try catches its failure) of PILLOW_VERSION; None if it is not imported."""
    found = _found_imports(head, path)
    if not found:
        return None
    bare = [node for node, guarded in found if not guarded]
    node = bare[0] if bare else found[0][0]
    return head.splitlines()[node.lineno - 1].strip(), not bare


def bare_import(head: str, path: str) -> Optional[ast.ImportFrom]:
    """Return the import of PILLOW_VERSION that is not inside a try; None if there is none."""
    return next((node for node, guarded in _found_imports(head, path) if not guarded), None)


def _found_imports(head: str, path: str) -> list[tuple[ast.ImportFrom, bool]]:
    if "PILLOW_VERSION" not in head:
        return []
    try:
        tree = ast.parse(head)
    except (SyntaxError, ValueError) as error:
        raise Undetermined(Message("{path} is not a Python source: {error}", path=path, error=error), path) from None
    return list(_imports(tree.body, guarded=False))


def _imports(body: Iterable[ast.stmt], guarded: bool) -> Iterator[tuple[ast.ImportFrom, bool]]:
    for node in body:
        if isinstance(node, ast.ImportFrom) and any(alias.name == "PILLOW_VERSION" for alias in node.names):
            yield node, guarded
        elif isinstance(node, ast.Try):
            yield from _imports(node.body, guarded or any(_catches(handler) for handler in node.handlers))
            for handler in node.handlers:
                yield from _imports(handler.body, guarded)
        elif isinstance(node, (ast.If, ast.With)):
            yield from _imports(node.body, guarded)
            yield from _imports(getattr(node, "orelse", []), guarded)


def _catches(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler catches ImportError."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {kind.id for kind in kinds if isinstance(kind, ast.Name)}
    return handler.type is None or bool(names & {"ImportError", "Exception", "BaseException"})


@probe("images.opencv_version", formerly="imaging.opencv_version")
def opencv_version(context: Context) -> Iterable[Reading]:
    """Version of OpenCV in the job's Python; not applicable if OpenCV is not installed."""
    place, rows = _opencv(context)
    if place is not None:
        try:
            text = context.host.read(f"{place}/version.py")
        except Missing:
            text = ""
        found = re.search(r"^opencv_version\s*=\s*['\"]([^'\"]+)", text, re.M)
        if found:
            yield Reading("cv2", found[1], Evidence(f"{place}/version.py", found[0]))
            return
    if len(rows) == 1:
        yield Reading("cv2", rows[0].version, Evidence(rows[0].metadata, rows[0].name))
        return
    where = str(place or rows[0].entry)
    raise Undetermined(Message("{where} does not show its version", where=where), where)


@probe("images.opencv_count", formerly="imaging.opencv_count")
def opencv_count(context: Context) -> Iterable[Reading]:
    """Number of OpenCV packages in each directory; several overwrite each other's cv2."""
    place, rows = _opencv(context)
    if not rows:
        yield Reading("cv2", 1, Evidence(str(place), str(place)), Message("built from source"))
    for entry in dict.fromkeys(row.entry for row in rows):
        here = [row for row in rows if row.entry == entry]
        listed = " + ".join(f"{row.name} {row.version}" for row in here)
        names = {row.name for row in here}
        evidence = Evidence(entry, "\n".join(row.metadata for row in here))
        yield Reading("cv2", len(names), evidence, Literal(listed), Message("one OpenCV package"))


def _opencv(context: Context) -> tuple[Optional[str], tuple[Distribution, ...]]:
    rows = tuple(row for name in OPENCV for row in every(context, name))
    place = locate(context, "cv2")
    if place is None and not rows:
        raise absent(context, "cv2")
    return place, rows
