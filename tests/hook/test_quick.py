"""The prolog's own reading of its command line is that of typer, and imports little."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, Sequence

import pytest
import typer
from helpers.examples import ROOT
from typer.testing import CliRunner

from envtune.cli.hook import quick, slurm_prolog

LINES: Sequence[Sequence[str]] = (
    (),
    ("--dry-run",),
    ("--max-age", "60", "--stale", "check"),
    ("--max-age=1e3", "--stale=start", "--timeout", "2.5"),
    ("--select", "NET,CPU001", "--select", "CANN", "--ignore", "ENV,"),
    ("--policy", "/p.yaml", "--profile", "night", "--catalog", "/a", "--catalog=/b,c"),
    ("--node", "node7", "--scontrol=/opt/slurm/bin/scontrol", "--state", "/var/lib/x"),
    ("--fail-on", "none"),
    ("--node", ""),
)
LEFT_TO_TYPER: Sequence[Sequence[str]] = (
    ("--help",),
    ("-h",),
    ("-s", "NET"),
    ("--max-age",),
    ("--max-age", "soon"),
    ("--max-age", "0"),
    ("--timeout", "nan"),
    ("--timeout", "1000"),
    ("--stale", "refuse"),
    ("--fail-on", "severe"),
    ("--no-such-option",),
    ("NET003",),
    ("--lang", "zh"),
)


@pytest.mark.parametrize("words", LINES, ids=" ".join)
def test_both_read_the_same(words: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    monkeypatch.setattr(quick, "run", lambda found: read.append(found) or 0)
    app = typer.Typer()
    app.command()(slurm_prolog.command)
    done = CliRunner().invoke(app, [*words])
    assert done.exit_code == 0, done.output
    assert quick.parse(words) == read[0]


@pytest.mark.parametrize("words", LEFT_TO_TYPER, ids=" ".join)
def test_what_is_left_to_typer(words: Sequence[str]) -> None:
    assert quick.parse(words) is None


def test_every_option_is_read() -> None:
    command = typer.main.get_command(_app())
    options = {name for parameter in command.params for name in parameter.opts if name.startswith("--")}
    assert options - {"--lang", "--help"} == {*quick._OPTIONS, "--dry-run"}


def _app() -> typer.Typer:
    app = typer.Typer(add_completion=False)
    app.command()(slurm_prolog.command)
    return app


def test_a_prolog_imports_little() -> None:
    program = (
        "import sys; sys.argv = ['envtune', 'hook', 'slurm-prolog', '--state', '/nowhere']\n"
        "import envtune.cli as cli\n"
        "try: cli.main()\n"
        "finally: print(' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    heavy = {
        "typer",
        "click",
        "yaml",
        "asyncio",
        "envtune.model",
        "envtune.catalog",
        "envtune.audit",
        "envtune.collector",
    }
    assert heavy & set(done.stdout.split()) == set()
