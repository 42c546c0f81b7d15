"""The files of a recorded host: entries by path, links inside the tree, and what the recorder did not read.

What has no entry is `Missing` where the recorder looked (`covered`; everywhere if there is no `covered`) and
`NotRecorded` elsewhere. Nothing here touches a real file system.
"""

from __future__ import annotations

import base64
import fnmatch
import posixpath
import re
from typing import Any, Iterator, Mapping, Optional, Sequence, Union

from envtune.collector.paths import LinkLoop, resolve
from envtune.errors import Denied, HostError, Missing, NotRecorded, TimedOut, Unreadable
from envtune.snapshot.schema import KINDS

Entry = Union[str, bytes, Mapping[str, Any]]
LOCATED_LIMIT = 10_000  # paths whose location is cached
_WILD = re.compile(r"[*?\[]")


class Tree:
    """The recorded tree. `entries` and `covered` are normalized (schema.py)."""

    def __init__(self, entries: Mapping[str, Optional[Entry]], covered: Optional[Sequence[str]]) -> None:
        self._entries = entries
        self._covered = None if covered is None else _Coverage(covered)
        self._known: set[str] = set()
        self._located: dict[tuple[str, bool], str] = {}
        self._children: dict[str, set[str]] = {"/": set()}
        for path, entry in entries.items():
            if entry is not None:
                self._note_parents(path)

    def _note_parents(self, path: str) -> None:
        while path != "/":
            above, _, name = path.rpartition("/")
            parent = above or "/"
            siblings = self._children.get(parent)
            if siblings is not None:
                siblings.add(name)
                return
            self._children[parent] = {name}
            path = parent

    def locate(self, path: str, follow: bool = True) -> str:
        """Return the recorded path for `path`, with links in its directories resolved, and its own if `follow`."""
        found = self._located.get((path, follow))
        if found is None:
            found = self._resolved(path, follow)
            if len(self._located) < LOCATED_LIMIT:
                self._located[path, follow] = found
        return found

    def _resolved(self, path: str, follow: bool) -> str:
        try:
            return resolve(path, self._link, follow, self._known)
        except LinkLoop:
            raise Unreadable(path, "too many levels of symbolic links") from None
        except OSError as error:
            raise Unreadable(path, error.strerror or str(error)) from None

    def _link(self, path: str, _last: bool) -> Optional[str]:
        entry = self._entries.get(path)
        return None if entry is None or isinstance(entry, (str, bytes)) else entry.get("link")

    def entry(self, path: str) -> Entry:
        """Return the entry at exactly `path`; raises the error the recorder got there."""
        entry = self._entries.get(path)
        if entry is None:
            if path in self._entries or path not in self._children:
                raise self._absence(path)
            return {"dir": None}
        if isinstance(entry, Mapping) and "error" in entry and "size" not in entry and "dir" not in entry:
            raise recorded_error(entry["error"], path)
        return entry

    def _absence(self, path: str) -> HostError:
        """Return Missing, NotRecorded, or the error of an unreadable parent directory."""
        if path in self._entries:
            return Missing(path)
        name = path
        while name != "/":
            parent, base = posixpath.split(name)
            if parent in self._entries:
                error = self._said_above(parent, base, path)
                if error is not None:
                    return error
            name = parent
        if self._covered is None or self._covered.holds(path):
            return Missing(path)
        return NotRecorded(path, "the snapshot does not say")

    def _said_above(self, parent: str, base: str, path: str) -> Optional[HostError]:
        """Return what a parent directory says about `path`; `base` is the next name in it toward `path`."""
        above = self._entries[parent]
        if not isinstance(above, Mapping) or not ("dir" in above or "error" in above):
            return Missing(path)  # nothing, or a file, is where a directory would have to be
        if "error" in above:
            return recorded_error(above["error"], path)
        if above.get("dir") is None:
            return None
        if base not in above["dir"]:
            return Missing(path)
        only_name = posixpath.join(parent, base) == path
        return NotRecorded(path, "the snapshot holds only its name") if only_name else None

    def content(self, path: str) -> bytes:
        """Return the content of the regular file at `path`."""
        entry = self.entry(self.locate(path))
        if isinstance(entry, bytes):
            return entry
        if isinstance(entry, str):
            return entry.encode("utf-8")
        if "text" in entry:
            return str(entry["text"]).encode("utf-8")
        if "base64" in entry:
            return base64.b64decode(entry["base64"])
        if "error" in entry:
            raise recorded_error(entry["error"], path)
        if "dir" in entry or any(kind in entry for kind in KINDS):
            raise Unreadable(path, "not a regular file")
        raise NotRecorded(path, "its content was not recorded")

    def names(self, path: str) -> tuple[str, ...]:
        """Return the names in the directory at `path`."""
        where = self.locate(path)
        entry = self.entry(where)
        if not isinstance(entry, Mapping) or "dir" not in entry:
            raise Unreadable(path, "not a directory")
        if "error" in entry:
            raise recorded_error(entry["error"], path)
        known = self._children.get(where, set())
        if entry["dir"] is None and self._covered is not None and not self._looked_in(where):
            raise NotRecorded(path, "its names were not recorded")
        return tuple(sorted(known.union(entry["dir"] or ())))

    def _looked_in(self, folder: str) -> bool:
        return self._covered is not None and self._covered.holds(posixpath.join(folder, _ANY_NAME))

    def matches(self, pattern: str) -> tuple[str, ...]:
        """Return the sorted paths that match a shell pattern; raises NotRecorded if the recorder did not look there."""
        complete = self._covered is None or self._looked_for(pattern)
        return tuple(sorted(self._matches("/", [p for p in pattern.split("/") if p], pattern, complete)))

    def _matches(self, base: str, parts: Sequence[str], pattern: str, complete: bool) -> Iterator[str]:
        if not parts:
            yield base
            return
        head, rest = parts[0], parts[1:]
        if not _WILD.search(head):
            if self._stands(posixpath.join(base, head), bool(rest), pattern, complete):
                yield from self._matches(posixpath.join(base, head), rest, pattern, complete)
            return
        for name in self._fitting(base, head, pattern, complete):
            step = posixpath.join(base, name)
            if not rest or self._stands(step, True, pattern, complete):
                yield from self._matches(step, rest, pattern, complete)

    def _fitting(self, base: str, head: str, pattern: str, complete: bool) -> list[str]:
        try:
            where = self.locate(base)
            entry = self.entry(where)
            if not isinstance(entry, Mapping) or "dir" not in entry:
                return []
            if "error" in entry:
                raise recorded_error(entry["error"], base)
            if entry["dir"] is None and not complete and not self._looked_in(where):
                raise NotRecorded(pattern, "the snapshot does not say")
            names = self._children.get(where, set()).union(entry["dir"] or ())
        except (Missing, Denied, TimedOut, Unreadable):
            return []  # as on a live host: what cannot be listed matches nothing
        fits = re.compile(fnmatch.translate(head)).match
        return [n for n in names if (head.startswith(".") or not n.startswith(".")) and fits(n)]

    def _stands(self, path: str, follow: bool, pattern: str, complete: bool) -> bool:
        try:
            self.entry(self.locate(path, follow))
        except Missing:
            return False
        except NotRecorded:
            if not complete:
                raise NotRecorded(pattern, "the snapshot does not say") from None
            return False
        except (Denied, Unreadable, TimedOut):
            return not follow
        return True

    def _looked_for(self, pattern: str) -> bool:
        instance = re.sub(r"\[!?(.)[^\]]*\]", r"\1", pattern).replace("*", _ANY_NAME).replace("?", "x")
        return self._covered is not None and (pattern in self._covered.patterns or self._covered.holds(instance))


_ANY_NAME = "\x01"  # a name that only a wildcard matches


class _Coverage:
    """The patterns of the covered paths, by segments: a lookup is linear in the length of the path.

    Only at a segment with a wildcard are several patterns tried, each distinct segment once.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self.patterns = frozenset(patterns)
        self._root = _Segments()
        for pattern in self.patterns:
            segments = self._root
            for segment in pattern.strip("/").split("/"):
                segments = segments.below(segment)
            segments.ends = True

    def holds(self, path: str) -> bool:
        """Return whether a pattern covers `path`: segments match one by one, a final `**` is everything below."""
        reached = [self._root]
        for name in path.strip("/").split("/"):
            if any(segments.all_below for segments in reached):
                return True
            reached = [following for segments in reached for following in segments.matching(name)]
        return any(segments.ends or segments.all_below for segments in reached)


class _Segments:
    """What may follow one prefix of the patterns."""

    def __init__(self) -> None:
        self.ends = False  # a pattern ends here
        self.named: dict[str, _Segments] = {}
        self._wild: list[tuple[re.Pattern[str], _Segments]] = []

    @property
    def all_below(self) -> bool:
        """Whether a pattern ends with `**` here."""
        return "**" in self.named and self.named["**"].ends

    def below(self, segment: str) -> _Segments:
        """Return the node after `segment`, adding it."""
        if segment not in self.named:
            self.named[segment] = _Segments()
            if _WILD.search(segment):
                self._wild.append((re.compile(fnmatch.translate(segment)), self.named[segment]))
        return self.named[segment]

    def matching(self, name: str) -> Iterator[_Segments]:
        """Yield the nodes after the segments that match `name`."""
        if name in self.named and not _WILD.search(name):
            yield self.named[name]
        yield from (following for regex, following in self._wild if regex.match(name))


def recorded_error(code: str, path: str) -> HostError:
    """Return the error the recorder got: EACCES, ENOENT, ETIMEDOUT, ... (or denied, missing, timeout)."""
    if code in ("EACCES", "EPERM", "denied"):
        return Denied(path)
    if code in ("ENOENT", "ENOTDIR", "ENODEV", "ENXIO", "missing"):
        return Missing(path)
    if code in ("ETIMEDOUT", "timeout", "ESTALE"):
        return TimedOut(path, "no answer when the snapshot was taken")
    return Unreadable(path, code)
