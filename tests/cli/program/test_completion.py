"""Completion in real shells: what the Tab key offers in bash, zsh and fish, whatever the program is called."""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
from helpers.examples import ROOT
from helpers.program import program
from helpers.rows import sampled

from envtune.cli import env, options
from envtune.cli.app import VERBS, app  # noqa: F401 (typer builds the program once, for all tests)
from envtune.cli.program.completion import SCRIPTS
from envtune.resources.environment.render import FORMATS

BASH = r"""
eval "$("$0" completion bash)"
line=$1; read -ra COMP_WORDS <<< "${line//=/ = }"; [[ $line == *' ' ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
compopt() { echo "compopt $*"; }  # it works in a completion only
$(complete -p "${COMP_WORDS[0]##*/}" | sed -E 's/.*-F ([^ ]+) .*/\1/')
printf '%s\n' "${COMPREPLY[@]}"
"""
FISH = 'source (status dirname)/envtune.fish; complete -C "$argv[1]"'


def started(folder: Path, name: str) -> Path:
    """The program under a name of its own."""
    path = folder / name
    path.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\nfrom envtune.cli import main\nmain()\n"
    )
    path.chmod(0o755)
    return path


def answered(*words: str, shell: str = "bash", state: str = "/nonexistent") -> list[str]:
    """The lines that envtune prints for a shell, in this process's copy."""
    ended = program(*words, variables={"_ENVTUNE_COMPLETE": shell, "ENVTUNE_STATE": state})
    assert ended.err == b"", ended.err
    return ended.out.decode().splitlines() if ended.status == 0 else [f"status {ended.status}"]


# ---------------------------------------------------------------------- the answer

ANSWERS = [
    (["chec"], ["check"]),
    (["check", "--select", "CPU00"], "CPU001"),
    (["check", "--select", "CPU001,CPU00"], "CPU001,CPU002"),
    (["check", "--select", "=", "NET00"], "NET001"),  # as bash takes --select=NET00 apart
    (["check", "--select", "cpu"], "CPU"),
    (["check", "--fail-on", ""], ["info", "low", "medium", "high", "critical", "none"]),
    (["fix", "--fail-on", "no"], ["none"]),
    (["fix", "set-bios"], "set-bios-power-policy"),
    (["fix", "--faq", "F0"], "F06"),
    (["explain", "F0"], "F06"),
    (["list", ""], "faq"),
    (["list", "faq", "--format", ""], ["text", "json"]),
    (["diagnose", "-f", "m"], ["markdown"]),
    (["check", "-f", "ju"], ["junit"]),
    (["policy", ""], ["init", "check"]),
    (["new", ""], ["check", "playbook", "faq"]),
    (["fleet", ""], ["audit", "ingest", "fix", "undo", "report", "drift", "host", "since", "golden"]),
    (["fleet", "report", "-f", ""], ["text", "json", "csv", "html"]),
    (["fleet", "audit", "--fan"], ["--fanout"]),
    (["env", "-f", "s"], ["systemd"]),
    (["run", "--profile", ""], ["train", "debug", "none"]),
    (["--lang", ""], ["en", "zh"]),
    (["--color", "a"], ["auto", "always"]),
    (["check", "--color", "n"], ["never"]),
    (["completion", ""], ["bash", "zsh", "fish"]),
    (["check", "--script", ""], ["status 1"]),  # files
    (["diagnose", "tr"], ["status 1"]),
    (["check", "--pid", ""], []),
    (["undo", ""], []),
    (["nosuchverb", ""], None),
]


@pytest.mark.parametrize(("words", "expected"), sampled(ANSWERS, 3), ids=[" ".join(words) for words, _ in ANSWERS])
def test_what_completes_a_line(words: list[str], expected: object) -> None:
    values = [line.split("\t")[0] for line in answered(*words)]
    if isinstance(expected, str):
        assert expected in values and len(values) == len(set(values))
        last = words[-1].rpartition(",")[2].lower()
        assert all(last in value.lower() for value in values)
    elif expected is not None:
        assert values == expected


def test_the_formats_of_env_are_those_it_can_write() -> None:
    assert tuple(FORMATS) == env.FORMATS


def test_descriptions_are_in_the_language_of_the_line() -> None:
    english, chinese = (answered("--lang", lang, "chec", shell="fish") for lang in options.LANGUAGES)
    assert english == ["check\tCheck whether this host is ready for training."] and "本机" in chinese[0]


def test_fish_gets_the_option_before_the_value() -> None:
    assert "--select=CPU001\tgovernor-not-performance" in answered("check", "--select=CPU0", shell="fish")


def test_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        from envtune.catalog import compile, store

        compile.compile_rows = store.open_catalogue = None  # type: ignore[assignment]

    ended = program("explain", "CPU001", before=refuse, variables={"_ENVTUNE_COMPLETE": "bash"})
    assert ended.status == 0 and ended.out == b"CPU001\tgovernor-not-performance\n"


# ---------------------------------------------------------------------- real shells


def needs(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


LINES = [("check --select CPU001,CPU00", "CPU001,CPU002"), ("explain F0", "F06"), ("diagn", "diagnose")]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["envtune", "envtune.pyz"])
@pytest.mark.parametrize(("typed", "expected"), [*LINES, ("check --select=NET00", "NET001")])
def test_bash(typed: str, expected: str, name: str, tmp_path: Path) -> None:
    path = started(tmp_path, name)
    argv = [needs("bash"), "--norc", "-c", BASH, str(path), f"{name} {typed}"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert expected in done.stdout.split(), done.stderr


@pytest.mark.slow
def test_bash_completes_files_where_an_option_takes_one(tmp_path: Path) -> None:
    argv = [needs("bash"), "--norc", "-c", BASH, str(started(tmp_path, "envtune")), "envtune check --script "]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["compopt", "-o", "default"], done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["envtune", "envtune.pyz"])
@pytest.mark.parametrize(("typed", "expected"), [*LINES, ("check --select=NET00", "--select=NET001")])
def test_fish(typed: str, expected: str, name: str, tmp_path: Path) -> None:
    shell, path = needs("fish"), started(tmp_path, name)
    (tmp_path / "tr.sh").touch()
    script = f"{path} completion fish | source; cd {tmp_path}; complete -C '{name} {typed}'"
    environ = {**os.environ, "HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        [shell, "--no-config", "-c", script], capture_output=True, text=True, env=environ, timeout=60, check=False
    )
    assert expected in [line.split("\t")[0] for line in done.stdout.splitlines()], done.stderr


@pytest.mark.slow
def test_fish_completes_files_where_an_option_takes_one(tmp_path: Path) -> None:
    shell, path = needs("fish"), started(tmp_path, "envtune")
    (tmp_path / "train.sh").touch()
    script = f"{path} completion fish | source; cd {tmp_path}; complete -C 'envtune check --script tr'"
    environ = {**os.environ, "HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        [shell, "--no-config", "-c", script], capture_output=True, text=True, env=environ, timeout=60, check=False
    )
    assert done.stdout.split()[:1] == ["train.sh"], done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("check --select CPU001,CPU008\t", "check --select CPU001,CPU008"),
        ("explain governor\t", "explain governor"),
        ("diagn\t", "diagnose"),
        ("check --select=PROC00\t", "PROC001"),
        ("check --script trai\t", "train.sh"),
    ],
)
@pytest.mark.parametrize("name", ["envtune", "envtune.pyz"])
def test_zsh(typed: str, expected: str, name: str, tmp_path: Path) -> None:
    """On a terminal: nothing else than a line editor calls a completion of zsh."""
    shell, path = needs("zsh"), started(tmp_path, name)
    (tmp_path / "train.sh").touch()
    (tmp_path / ".zshrc").write_text(
        f"PS1='> '; autoload -Uz compinit; compinit -u -d {tmp_path}/dump\n"
        f"source <({path} completion zsh); cd {tmp_path}\n"
    )
    shown = typed_in(shell, f"{name} {typed}", tmp_path, expected)
    assert expected in shown


def typed_in(shell: str, keys: str, home: Path, until: str) -> str:
    """What a terminal shows after these keys, within ten seconds."""
    environ = {"HOME": str(home), "ZDOTDIR": str(home), "PATH": f"{home}:{os.environ['PATH']}", "TERM": "dumb"}
    environ.update(LC_ALL="C.UTF-8", COLUMNS="200")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pid, terminal = pty.fork()
    if pid == 0:
        os.execve(shell, [shell, "-i"], environ)
    shown, pressed, end = "", False, time.monotonic() + 30
    try:
        while time.monotonic() < end:
            if select.select([terminal], [], [], 0.3)[0]:
                shown += os.read(terminal, 65536).decode("utf-8", "replace")
            elif pressed and until in shown.rpartition("> ")[2]:
                break
            if not pressed and "> " in shown:
                pressed, shown = True, "> "
                os.write(terminal, keys.encode())
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)
    return shown


@pytest.mark.slow
@pytest.mark.parametrize("shell", sorted(SCRIPTS))
def test_installed(shell: str, tmp_path: Path) -> None:
    """Once, and no second line in a start-up file."""
    path = started(tmp_path, "envtune")
    environ = {**os.environ, "HOME": str(tmp_path)}
    environ.pop("XDG_CONFIG_HOME", None)
    for _ in range(2):
        done = subprocess.run(
            [str(path), "completion", shell, "--install"], capture_output=True, text=True, env=environ, check=False
        )
        assert done.returncode == 0 and str(tmp_path) in done.stdout, done.stderr
    place = {
        "bash": ".bash_completions/envtune.sh",
        "zsh": ".zfunc/_envtune",
        "fish": ".config/fish/completions/envtune.fish",
    }
    assert f"_ENVTUNE_COMPLETE={shell} {path}" in (tmp_path / place[shell]).read_text()
    for name in (".bashrc", ".zshrc"):
        if (tmp_path / name).exists():
            assert (tmp_path / name).read_text().count("\n") == 1
