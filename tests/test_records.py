"""A record is what typing.NamedTuple would make of it."""

from __future__ import annotations

import pickle
import subprocess
import sys
import typing
from typing import Any, Optional

import pytest
from helpers.examples import ROOT

from envtune import records


class Ours(records.NamedTuple):
    """A record."""

    name: str
    size: Optional[int] = None

    @property
    def shown(self) -> str:
        return f"{self.name}: {self.size}"

    def larger(self) -> Ours:
        return self._replace(size=(self.size or 0) + 1)


class Theirs(typing.NamedTuple):
    """A record."""

    name: str
    size: Optional[int] = None


def test_it_has_the_fields_the_defaults_and_the_text_of_its_class() -> None:
    for attribute in ("_fields", "_field_defaults", "__doc__", "__module__"):
        assert getattr(Ours, attribute) == getattr(Theirs, attribute)
    assert typing.get_type_hints(Ours) == typing.get_type_hints(Theirs)
    assert Ours("a") == Theirs("a") == ("a", None) and repr(Ours("a", 1)) == "Ours(name='a', size=1)"


def test_its_methods_are_kept() -> None:
    assert Ours("a", 1).larger().shown == "a: 2"


def test_it_can_be_pickled() -> None:
    again = pickle.loads(pickle.dumps(Ours("a", 1)))
    assert type(again) is Ours and again.shown == "a: 1"


def test_a_field_is_neither_forgotten_nor_made_up() -> None:
    make: Any = Ours
    for arguments in ({}, {"name": "a", "colour": "red"}):
        with pytest.raises(TypeError):
            make(**arguments)


def test_what_check_imports_makes_its_records_here() -> None:
    """ADR 7; what travels to hosts has typing's."""
    program = (
        "import sys, typing; sys.argv = ['envtune', 'check', '--format', 'json']\n"
        "import envtune.cli.options as options, envtune.cli as cli\n"
        "options.exit_now = sys.exit\n"
        "try: cli.main()\n"
        "except SystemExit: pass\n"
        "names = [n for n, m in sys.modules.items() if n.startswith('envtune.')]\n"
        "theirs = [n for n in names if getattr(sys.modules[n], 'NamedTuple', None) is typing.NamedTuple]\n"
        "print(len(names), *theirs, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    count, *theirs = done.stderr.split()
    assert int(count) > 80
    assert [name for name in theirs if not name.startswith(("envtune.trust", "envtune.collector"))] == []
