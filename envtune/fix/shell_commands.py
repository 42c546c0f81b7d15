"""A change as shell commands: a line per operation to read, or lines that do it when typed by root. Pure."""

from __future__ import annotations

import base64
from shlex import quote
from typing import Any, Iterator, Mapping, Sequence

from envtune.messages import Literal, Message, Text
from envtune.model import Change

LARGEST = 4000  # bytes of a file that are printed; longer ones are only in the plan


def commands(change: Change) -> Iterator[Text]:
    """Yield what the operations of a change do, to look at: a line each, for replaced packages all lines."""
    for operation in change.operations:
        kind = operation["op"]
        if kind == "run":
            yield Literal(_words(operation["argv"]))
        elif kind == "swap":
            yield from map(Literal, _swap_lines(operation, []))
        elif kind == "signal":
            yield Literal(f"kill {operation['pid']}")
        else:
            yield _file_text(operation)


def shell_lines(change: Change) -> Iterator[str]:
    """Lines that do the same when typed into a shell with the necessary rights."""
    for operation in change.operations:
        kind = operation["op"]
        env = [f"{name}={value}" for name, value in sorted(operation.get("env", {}).items()) if name != "PATH"]
        start = ["env", *env] if env else []
        if kind == "run":
            yield _words([*start, *operation["argv"]])
        elif kind == "swap":
            yield from _swap_lines(operation, start)
        elif kind == "file" and operation["content"] is not None:
            yield from _written(operation)
        elif kind == "file":
            yield f"rm {quote(operation['path'])}"
        else:
            yield f"kill {operation['pid']}"


def _words(argv: Sequence[str]) -> str:
    return " ".join(map(quote, argv))


def _file_text(operation: Mapping[str, Any]) -> Text:
    path = quote(operation["path"])
    if operation["content"] is None:
        return Literal(f"rm {path}")
    if _is_knob(operation):
        return Literal(_knob_line(operation))
    return Message("write {path} ({size} B)", path=path, size=len(base64.b64decode(operation["content"])))


def _knob_line(operation: Mapping[str, Any]) -> str:
    value = base64.b64decode(operation["content"]).decode("utf-8", "replace").strip()
    return f"echo {quote(value)} > {quote(operation['path'])}"


def _is_knob(operation: Mapping[str, Any]) -> bool:
    return str(operation["path"]).startswith(("/sys/", "/proc/"))


def _swap_lines(operation: Mapping[str, Any], start: Sequence[str]) -> Iterator[str]:
    lines = (*operation.get("prepare", ()), *operation["steps"], *operation["verify"])
    if any("{work}" in word for argv in lines for word in (*start, *argv)):
        yield "work=$(mktemp -d)"
    for number, argv in enumerate(lines):
        if number == len(operation.get("prepare", ())) and operation.get("wheels"):
            yield _pinned(operation["wheels"])
        yield _in_work([*start, *argv])


def _in_work(words: Sequence[str]) -> str:
    return " ".join('"$work"'.join(quote(part) if part else "" for part in word.split("{work}")) for word in words)


def _pinned(wheels: Sequence[str]) -> str:
    """Return the line that lists the wheels with their hashes, like the executor (operations/wheels.py)."""
    places = " ".join(
        "/".join(part if part == "*.whl" else _in_work([part]) for part in wheel.split("/")) for wheel in wheels
    )
    line = 'echo "file://$wheel --hash=sha256:$(sha256sum "$wheel" | cut -d" " -f1)"'
    return f'for wheel in {places}; do {line}; done > "$work/requirements.txt"'


def _written(operation: Mapping[str, Any]) -> Iterator[str]:
    """Return lines that write a file: an existing one keeps mode and owner, for a new one directories are created."""
    if _is_knob(operation):
        yield _knob_line(operation)
        return
    path, content = quote(operation["path"]), base64.b64decode(operation["content"])
    fresh = f"install -D -m {operation.get('mode', 0o644):o} /dev/stdin {path}"
    target = fresh if operation.get("expect") == "absent" else f"cat > {path}"
    if len(content) > LARGEST:
        yield f"# {path}: {len(content)} bytes, which only the plan holds"
        return
    text = content.decode("utf-8", "replace")
    rows = text.split("\n")[:-1]
    plain = text.encode() == content and text.endswith("\n") and all(row.isprintable() for row in rows)
    if plain and "EOF" not in rows:
        yield f"{target} <<'EOF'"
        yield from rows
        yield "EOF"
    else:
        yield f"echo {operation['content']} | base64 -d | {target if target == fresh else f'cat > {path}'}"
