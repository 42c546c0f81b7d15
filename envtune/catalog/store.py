"""From files to rows as fast as possible: the compiled file of a wheel, a cache elsewhere, YAML only if it changed.

The compiled form is one JSON document with one kind per line, so that a run parses only the kind it needs. A cache
holds the same form and what it was compiled from: a stamp of every file (catalog files and the code that validated
them) and the hash of their content. A different stamp alone does not invalidate it: if the content is the same (a fresh
checkout), the cache is kept. In a checkout an overlay is compiled on top of the cached rows of the shipped layer.
"""

from __future__ import annotations

import json
import os
import time
from functools import cached_property
from pathlib import Path
from typing import Any, Iterator, Mapping, Optional, Sequence, Tuple

from envtune import version
from envtune.catalog import cache, layers
from envtune.errors import UsageError
from envtune.messages import Bilingual, Message, Text
from envtune.records import NamedTuple

KINDS = ("checks", "faq", "playbooks", "families", "codes")
# What every run needs comes first: a line is found by searching for its name.
LINES = ("warnings", "registry", "checks", "families", "words", "playbooks", "codes", "faq", "literals")
# What a check says to whoever asks for details, or when it fails: half of its row.
LONG_WORDS = ("rationale", "remedy", "falsepositives")
RACY = 2_000_000_000  # ns: a file this young may change again within one tick of its time stamp
MAX_OPENED = 8  # catalogs that a process keeps
Rows = Mapping[str, Sequence[Mapping[str, Any]]]
_Contents = Sequence[Tuple[layers.Source, bytes]]


class Compiled:
    """The compiled form; `rows` parses one kind. `notes` are for the user, on stderr."""

    def __init__(self, text: bytes, notes: Sequence[Text] = ()) -> None:
        self._text = text
        self.notes = (*notes, *(Bilingual(row["en"], row["zh"]) for row in self._line("warnings")))

    def rows(self, kind: str) -> Sequence[Mapping[str, Any]]:
        """Return the entries of a kind, sorted by id."""
        rows: Sequence[Mapping[str, Any]] = self._line(kind)
        if kind == "checks":
            return [{**row, **self.words[row["id"]]} for row in rows]
        return rows

    @property
    def short_checks(self) -> Sequence[Mapping[str, Any]]:
        """Return the checks with, in place of each of LONG_WORDS that they have, how many texts it is."""
        rows: Sequence[Mapping[str, Any]] = self._line("checks")
        return rows

    @cached_property
    def words(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the LONG_WORDS of each check, by its id."""
        found: Mapping[str, Mapping[str, Any]] = self._line("words")
        return found

    @property
    def literals(self) -> Sequence[Tuple[str, bool, Any]]:
        """What the expressions of the FAQ's signatures require, for signatures/literals.py."""
        rows: Sequence[Tuple[str, bool, Any]] = self._line("literals")
        return rows

    @cached_property
    def registry(self) -> Mapping[str, Mapping[str, str]]:
        """Where the probes, facts and actions are defined."""
        index: Mapping[str, Mapping[str, str]] = self._line("registry")
        return index

    def _line(self, name: str) -> Any:
        mark = b'\n"%b": ' % name.encode("ascii")
        start = self._text.find(mark)
        if start < 0:
            raise KeyError(name)
        start += len(mark)
        return json.loads(self._text[start : self._text.index(b"\n", start)].rstrip(b","))


def dump(rows: Rows) -> bytes:
    """Return the compiled form of rows, with the locations of the code they name."""
    from envtune.context.registry import make_index

    words = {row["id"]: {name: row[name] for name in LONG_WORDS if row.get(name)} for row in rows["checks"]}
    short = [{**row, **{name: _count(text) for name, text in words[row["id"]].items()}} for row in rows["checks"]]
    parts = {**rows, "checks": short, "words": words, "literals": _literals(rows["faq"]), "registry": make_index()}
    lines = [f'"{name}": {json.dumps(parts[name], ensure_ascii=False, separators=(",", ":"))}' for name in LINES]
    head = f'{{"format": {cache.FORMAT}, "envtune": "{version.__version__}",'
    return ("\n".join([head, ",\n".join(lines), "}"]) + "\n").encode("utf-8")


def _literals(rows: Sequence[Mapping[str, Any]]) -> Sequence[Tuple[str, bool, Any]]:
    """Return what every expression of these FAQ entries requires."""
    from envtune.catalog.entries import faq_from
    from envtune.catalog.signatures.literals import as_rows

    signatures = [signature for row in rows for signature in faq_from(row).signatures]
    expressions = [(signature.regex, signature.multiline) for signature in signatures]
    expressions += [(regex, False) for one in signatures for regex in (*one.requires, *one.unless)]
    return as_rows(dict.fromkeys(expressions))


def _count(text: Any) -> int:
    return len(text) if isinstance(text, list) else 1


def compile_tree(directory: str) -> bytes:
    """Return the compiled form of the catalog below a source tree, as a wheel carries it, or raise CatalogError."""
    from envtune.catalog.compile import compile_rows

    files = layers.sources(layers.Layer(os.path.abspath(directory), own=True))
    return dump(compile_rows([(file, layers.content(file)) for file in files], {}))


def open_catalogue(extra: Sequence[Path] = ()) -> Compiled:
    """Return the catalog that this process uses: the shipped one, the site's, and the named directories."""
    over = layers.overlays(extra)
    notes = _trusts_its_own()
    shipped = shipped_catalogue()
    if shipped is not None and not over:
        return Compiled(shipped, notes)
    own = () if shipped is not None else (_checkout(),)
    files = [source for layer in (*own, *over) for source in layers.sources(layer)]
    _refuse_empty(over, files)
    layers.check_trust(files, over)
    code = layers.code_files()
    stamp = "\n".join(file.stamp for file in (*files, *code))
    if stamp in _opened and not notes:
        return _opened[stamp]
    caches, problem = _caches((*own, *over))
    if problem is not None:
        notes += (Message("the cache is not used: {problem}", problem=problem),)
    compiled = Compiled(_through_cache(caches, files, code, shipped), notes)
    if not notes and not _is_racy((*files, *code)):
        if len(_opened) >= MAX_OPENED:
            _opened.clear()
        _opened[stamp] = compiled
    return compiled


_opened: dict[str, Compiled] = {}  # by the stamp of its files: what a process opens repeatedly


class _Caches(NamedTuple):
    """The user's cache file, None where it cannot be used, and the files to look into."""

    where: Optional[str]
    paths: Sequence[str]

    def found(self) -> Iterator[cache.Cached]:
        """Read one cache after the other: the first one is nearly always right, and each is a megabyte."""
        for path in self.paths:
            cached = cache.read(path)
            if cached is not None:
                yield cached


def _caches(stack: Sequence[layers.Layer]) -> tuple[_Caches, Optional[Text]]:
    """Return the caches of these layers, and why the user's is not used."""
    key = "\n".join(layer.directory for layer in stack)
    where = cache.cache_file(key)
    problem = None if where is None else layers.why_untrusted(where)
    if problem is not None:
        where = None
    made = [cache.cache_file(key, layer.directory) for layer in stack if layer.own]
    paths = [where, *(path for path in made if path is not None and layers.why_untrusted(path) is None)]
    return _Caches(where, [path for path in paths if path is not None]), problem


def _through_cache(
    caches: _Caches, files: Sequence[layers.Source], code: Sequence[layers.Source], shipped: Optional[bytes]
) -> bytes:
    """Return the compiled form from the user's cache, from a prepared one, or from the files."""
    stamp = "\n".join(file.stamp for file in (*files, *code))
    for number, found in enumerate(caches.found()):
        if found.stamp == stamp:
            if number and caches.where is not None:  # the next run reads one file, not two
                cache.write(caches.where, found)
            return found.text
    contents, validated_by = ([(file, layers.content(file)) for file in some] for some in (files, code))
    digest = _digest([*contents, *validated_by])
    text = next((found.text for found in caches.found() if found.content == digest), None)
    if text is None:
        text = _compile(contents, validated_by, shipped)
    _write(caches, digest, [*files, *code], text)
    return text


def _compile(contents: _Contents, code: _Contents, shipped: Optional[bytes]) -> bytes:
    """Compile what is not compiled yet: an overlay needs only the rows of the layer below it."""
    from envtune.catalog.compile import compile_rows

    own = [(file, content) for file, content in contents if file.layer.own]
    if own and len(own) < len(contents):
        shipped = _own_layer(own, code)
        contents = [(file, content) for file, content in contents if not file.layer.own]
    lower = {} if shipped is None else {kind: Compiled(shipped).rows(kind) for kind in KINDS}
    return dump(compile_rows(contents, lower))


def _own_layer(contents: _Contents, code: _Contents) -> bytes:
    """Return the compiled form of a checkout, from its cache if that was compiled from exactly this content.

    Stamps are not enough here: what is compiled over it is cached by the content that was read.
    """
    caches, _ = _caches([contents[0][0].layer])
    digest = _digest([*contents, *code])
    text = next((found.text for found in caches.found() if found.content == digest), None)
    if text is None:
        text = _compile(contents, code, None)
        _write(caches, digest, [file for file, _ in (*contents, *code)], text)
    return text


def _write(caches: _Caches, digest: str, files: Sequence[layers.Source], text: bytes) -> None:
    if caches.where is not None:
        stamp = "" if _is_racy(files) else "\n".join(file.stamp for file in files)
        cache.write(caches.where, cache.Cached(stamp, digest, text))


def _is_racy(files: Sequence[layers.Source]) -> bool:
    """Return whether one of the files may still change without a new stamp."""
    return max((file.changed for file in files), default=0) > time.time_ns() - RACY


def _digest(contents: _Contents) -> str:
    import hashlib

    total = hashlib.sha256()
    for source, content in contents:
        name = source.path.encode("utf-8", "surrogateescape")
        total.update(b"%d %b %d " % (len(name), name, len(content)) + content)
    return total.hexdigest()


def shipped_catalogue() -> Optional[bytes]:
    """Return the compiled file of a wheel or zipapp, None in a checkout."""
    loader = getattr(version, "__loader__", None)
    try:
        content: bytes = loader.get_data(layers.COMPILED)  # type: ignore[union-attr]
    except (OSError, AttributeError):
        return None
    return content


def _checkout() -> layers.Layer:
    root = str(layers.data_root())
    if not os.path.isdir(os.path.join(root, "checks")):
        raise layers.refused(
            os.path.join(root, "checks"),
            Message("the catalog is missing; reinstall envtune"),
        )
    return layers.Layer(root, own=True)


def _refuse_empty(over: Sequence[layers.Layer], files: Sequence[layers.Source]) -> None:
    for layer in over:
        if layer.directory != layers.SITE and not any(file.layer is layer for file in files):
            raise UsageError(
                Message("{directory} contains no checks/*/*.yaml and no playbooks/*/*.yaml", directory=layer.directory),
            )


def _trusts_its_own() -> tuple[Text, ...]:
    """Return a note if root runs code or a catalog that somebody else can change."""
    problem = layers.why_untrusted(layers.PACKAGE)
    if problem is None:
        return ()
    return (Message("root runs code or a catalog that another user can change: {problem}", problem=problem),)
