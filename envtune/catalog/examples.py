"""The examples of a check: small fake hosts written inline, and the same form for the recorded hosts of the tests.

An example is a snapshot mapping (docs/snapshot.md) with three conveniences: `like: NAME` (or a list, the later over the
earlier) starts from other hosts, by default the empty `bare` one; `arch:` is short for `uname: {machine: ...}`; a path
may hold a range, `policy{0..3}`. A file that is `null` is absent.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Iterator, Mapping

from envtune.snapshot.host import SnapshotHost

_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")
_MERGED = ("files", "environ", "commands", "uname", "target")

Shared = Callable[[str], Mapping[str, Any]]


def example_host(example: Mapping[str, Any], shared: Shared) -> SnapshotHost:
    """Return the host an example describes; `shared(name)` returns the mapping for `like: name`."""
    return SnapshotHost(example_data(example, shared))


def example_data(example: Mapping[str, Any], shared: Shared) -> dict[str, Any]:
    """Return the snapshot mapping of an example, ranges expanded and everything it is `like` merged in.

    Each host it is like, directly or indirectly, is merged once, the most distant first.
    """
    merged: dict[str, Any] = {}
    for name in _ancestors({"like": "bare", **example}, shared):
        _merge(merged, _own(shared(name)))
    return _merge(merged, _own(example))


def _ancestors(example: Mapping[str, Any], shared: Shared) -> list[str]:
    like = example.get("like")
    found: dict[str, None] = {}
    for name in like if isinstance(like, list) else [like] if like else []:
        found.update(dict.fromkeys([*_ancestors(shared(name), shared), name]))
    return list(found)


def _own(example: Mapping[str, Any]) -> dict[str, Any]:
    own = {key: value for key, value in example.items() if key not in ("expect", "like", "arch", "options")}
    if "arch" in example:
        own["uname"] = {**own.get("uname", {}), "machine": example["arch"]}
    if "files" in own:
        own["files"] = {one: entry for path, entry in own["files"].items() for one in expand_ranges(path)}
    return own


def _merge(under: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Update `under` with `over`, tables of files, variables and commands row by row, and return it."""
    for key, value in over.items():
        under[key] = {**under.get(key, {}), **value} if key in _MERGED and value is not None else value
    return under


def expand_ranges(path: str) -> Iterator[str]:
    """Yield four paths for `policy{0..3}`; other paths unchanged."""
    found = _RANGE.search(path)
    if found is None:
        yield path
        return
    for number in range(int(found[1]), int(found[2]) + 1):
        yield from expand_ranges(path[: found.start()] + str(number) + path[found.end() :])
