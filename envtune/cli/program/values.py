"""The values that the parameters of the command line have, for completion: ids, formats, levels, runs.

Ids come from the compiled catalog of a wheel, else from the names of the files: nothing is compiled for them.
"""

from __future__ import annotations

import importlib
import os
import re
from pathlib import Path
from typing import Any, Iterator, Mapping, NamedTuple, Optional, Sequence

SHELLS = ("bash", "zsh", "fish")
_FAMILY_OF = re.compile(r"[A-Z]+(?=\d)")
# What takes no file and has values that nobody can list.
_FREE = frozenset(("change", "fixes", "help", "id_", "keep", "name", "older_than", "owner", "peer", "pid", "probe"))
_FREE |= {"schema", "since", "step", "tag", "until", "wait", "within"}
_FREE |= {"nodes", "group", "limit", "partition", "job", "user", "ssh_options", "fanout", "timeout", "connect_timeout"}
_FREE |= {"date", "soak", "fix_timeout", "drain_minutes", "run", "gateways"}
_FREE |= {"max_age", "node"}
_LISTS = frozenset(("select", "ignore", "faq", "words", "ids"))  # values may be joined by commas


class Value(NamedTuple):
    """One word that is offered; the attributes are those that click asks for."""

    value: str
    help: str = ""
    type: str = "plain"


class FilesWanted(Exception):
    """The word is a path: the shell completes it."""


class Known:
    """What was typed so far, and the values of every parameter that has a known set of them."""

    def __init__(self, lang: str, typed: Sequence[str], verbs: Mapping[str, str]) -> None:
        self._lang, self._typed, self._verbs = lang, typed, verbs

    def add_verbs(self, verbs: Mapping[str, str]) -> None:
        """Take the verbs of a verb that has verbs of its own."""
        self._verbs = {**self._verbs, **verbs}

    def offer(self, command: Any) -> None:
        """Have the parameters of a command offer their values."""
        for parameter in command.params:
            parameter.shell_complete = _Offer(self, command.name or "", parameter)

    def values(self, verb: str, name: str) -> Optional[Iterator[Value]]:
        """Yield the values of a parameter; None where it takes what nobody can list, but no file."""
        source = getattr(self, f"_of_{name}", None)
        if source is not None:
            values: Iterator[Value] = source(verb)
            return values
        return iter(()) if name in _FREE else None

    # ------------------------------------------------------------------ one per parameter

    def _of_select(self, verb: str) -> Iterator[Value]:
        entries = [*self._entries("checks")]
        families = dict.fromkeys(match[0] for entry in entries for match in [_FAMILY_OF.match(entry.value)] if match)
        yield from (Value(family, self._family(family)) for family in families)
        yield from entries

    _of_ignore = _of_ids = _of_select

    def _of_words(self, verb: str) -> Iterator[Value]:
        if verb == "undo":
            yield from self._of_run(verb)
        else:
            yield from self._of_select(verb)
            yield from self._entries("playbooks")

    def _of_entry_id(self, verb: str) -> Iterator[Value]:
        for kind in ("checks", "faq", "playbooks"):
            yield from self._entries(kind)

    def _of_faq(self, verb: str) -> Iterator[Value]:
        yield from self._entries("faq")

    def _of_kind(self, verb: str) -> Iterator[Value]:
        module = importlib.import_module(f"envtune.cli.{self._verbs[verb]}")  # `list` and `new`
        yield from map(Value, module.KINDS)

    def _of_format_(self, verb: str) -> Iterator[Value]:
        from envtune.cli import options

        module = importlib.import_module(f"envtune.cli.{self._verbs[verb]}")
        yield from map(Value, getattr(module, "FORMATS", options.FORMATS))

    def _of_action(self, verb: str) -> Iterator[Value]:  # of `policy`
        yield from map(Value, ("init", "check"))

    def _of_lang(self, verb: str) -> Iterator[Value]:
        from envtune.messages import LANGUAGES

        yield from map(Value, LANGUAGES)

    def _of_color(self, verb: str) -> Iterator[Value]:
        yield from map(Value, ("auto", "always", "never"))

    def _of_probe_name(self, verb: str) -> Iterator[Value]:
        from envtune.bench.measure import NAMES

        yield from map(Value, NAMES)

    def _of_severity(self, verb: str) -> Iterator[Value]:
        from envtune.model import Severity

        yield from (Value(severity.value) for severity in Severity)

    def _of_fail_on(self, verb: str) -> Iterator[Value]:
        yield from self._of_severity(verb)
        yield Value("none")

    def _of_profile(self, verb: str) -> Iterator[Value]:
        if verb in ("env", "run"):  # elsewhere it is one of the site's policy
            yield from map(Value, importlib.import_module("envtune.cli.env").PROFILES)

    def _of_run(self, verb: str) -> Iterator[Value]:
        from envtune.cli.history import _STATUS
        from envtune.executor.history import recorded_runs
        from envtune.executor.state import state_directory

        for run in reversed(recorded_runs(state_directory())):
            if verb != "resume" or run.in_progress:
                text = _STATUS.get(run.status)
                yield Value(run.name, "" if text is None else text.to(self._lang))

    _of_finish = _of_run

    def _of_install_completion(self, verb: str) -> Iterator[Value]:
        yield from map(Value, SHELLS)

    _of_show_completion = _of_shell = _of_install_completion

    # ------------------------------------------------------------------ the catalog

    def _family(self, prefix: str) -> str:
        from envtune.catalog.families import family_title

        title = family_title(prefix)
        return "" if title is None else title.to(self._lang)

    def _entries(self, kind: str) -> Iterator[Value]:
        """Yield the entries of a kind: the shipped ones, the site's, and those of --catalog."""
        from envtune.catalog import layers
        from envtune.catalog.store import Compiled, shipped_catalogue

        over = [Path(after) for word, after in zip(self._typed, self._typed[1:]) if word == "--catalog"]
        stack = [*layers.overlays([path for path in over if path.is_dir()])]
        found: dict[str, str] = {}
        compiled = shipped_catalogue()
        if compiled is None:
            stack.insert(0, layers.Layer(str(layers.data_root()), own=True))
        else:
            for row in Compiled(compiled).rows(kind):
                title = row["title"]
                found[row["id"]] = title.get(self._lang, "") if isinstance(title, Mapping) else str(title)
        for layer in stack:
            for source in layers.sources(layer):
                if source.kind == kind:
                    id_, name = _id_and_name(source.path, kind)
                    found.setdefault(id_, name)
        yield from (Value(id_, title) for id_, title in sorted(found.items()))


def _id_and_name(path: str, kind: str) -> tuple[str, str]:
    """Return what the name of a catalog file says: of CPU001-some-name.yaml both, of a playbook's its id."""
    stem = os.path.basename(path)[: -len(".yaml")]
    if kind == "playbooks":
        return stem, ""
    id_, _, name = stem.partition("-")
    return id_, name


class _Offer:
    """Stands in for `shell_complete` of one parameter."""

    def __init__(self, asked: Known, verb: str, parameter: Any) -> None:
        self._asked, self._verb, self._parameter = asked, verb, parameter

    def __call__(self, context: Any, incomplete: str) -> list[Any]:
        name = self._parameter.name
        values = self._asked.values(self._verb, name)
        if values is None:
            raise FilesWanted
        before, comma, last = incomplete.rpartition(",") if name in _LISTS else ("", "", incomplete)
        start = before + comma
        taken = {*before.split(",")}
        low = last.lower()
        return [
            Value(f"{start}{one.value}", one.help)
            for one in values
            if one.value.lower().startswith(low) and one.value not in taken
        ]
