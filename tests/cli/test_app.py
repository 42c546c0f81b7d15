"""The program as a whole: help and usage errors in both languages, and how it ends when something goes wrong."""

from __future__ import annotations

import errno
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.program import completed, program
from helpers.rows import sampled

from envtune.report.layout import display_width

GOLDEN = Path(__file__).parent / "golden"
CHINESE = re.compile("[\u4e00-\u9fff]")
BOTH = ("en", "zh")


def envtune(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run `envtune WORDS` on a terminal of 80 columns that is none."""
    env = {**os.environ, "LC_ALL": "C.UTF-8", "COLUMNS": "80", **environ}
    env.pop("ENVTUNE_STATE", None)
    return completed(*words, env=env)


def words_of(text: str) -> list[str]:
    """The words of a help text; typer's versions break lines differently."""
    return text.replace("\\[", "[").split()


# ---------------------------------------------------------------------- help


@pytest.mark.parametrize("lang", BOTH)
@pytest.mark.parametrize("verb", sampled(["fix", "check", ""], 3))
def test_help(verb: str, lang: str, pytestconfig: pytest.Config) -> None:
    done = envtune(*([verb] if verb else []), "--help", "--lang", lang)
    path = GOLDEN / f"help{'-' if verb else ''}{verb}.{lang}.txt"
    if pytestconfig.getoption("--update-golden"):
        path.write_text(done.stdout, "utf-8")
    assert (done.returncode, done.stderr) == (0, "")
    assert words_of(done.stdout) == words_of(path.read_text("utf-8"))


@pytest.mark.parametrize("lang", BOTH)
@pytest.mark.parametrize("verb", ["", "diagnose"])
def test_no_help_is_cut_on_a_narrow_terminal(verb: str, lang: str) -> None:
    page = envtune(*([verb] if verb else []), "--help", "--lang", lang, COLUMNS="60").stdout
    assert "..." not in page.replace("torchrun ...", "").replace("]...", "")
    assert [line for line in page.splitlines() if display_width(line) > 60] == []


@pytest.mark.parametrize("words", sampled(["--help --lang=zh", "--lang zh --help", "--lang=zh -h"], 3))
def test_the_language_may_stand_anywhere(words: str) -> None:
    assert words_of(envtune(*words.split()).stdout) == words_of((GOLDEN / "help.zh.txt").read_text("utf-8"))


def test_the_language_follows_the_locale() -> None:
    done = envtune("--help", LC_ALL="", LANG="zh_CN.UTF-8")
    assert words_of(done.stdout) == words_of((GOLDEN / "help.zh.txt").read_text("utf-8"))


@pytest.mark.slow
def test_the_help_of_every_verb_is_translated() -> None:
    """Every line that is not an example has Chinese in it, or names options only."""
    verbs = re.findall(r"^  ([\w-]+)  ", (GOLDEN / "help.zh.txt").read_text("utf-8"), re.MULTILINE)
    assert len(verbs) >= 11
    for verb in verbs:
        done = envtune(verb, "--help", "--lang", "zh")
        example = re.compile(r"\s+(\S*envtune|torchrun|mpirun|srun|eval|\[|-)")
        lines = [line for line in done.stdout.splitlines() if re.search("[a-z]{3}", line)]
        english = [line for line in lines if not CHINESE.search(line) and not example.match(line)]
        assert english == [], verb


# ---------------------------------------------------------------------- usage errors

USAGE = {
    ("check", "--selct", "CPU"): ("No such option: --selct", "没有选项 --selct"),
    ("explain",): ("Missing argument 'ID'.", "缺少参数 'ID'。"),
    ("history", "more"): ("Got unexpected extra argument", "多余的参数（more）"),
    ("chekc",): ("No such command 'chekc'. Did you mean 'check'?", "没有命令 'chekc'。是否想输入 'check'？"),
    ("check", "--pid", "x"): ("'x' is not a valid int", "'--pid' 的取值无效：'x' 不是有效的整数。"),
    ("check", "--select"): ("Option '--select' requires an argument.", "选项 '--select' 需要一个取值。"),
    ("undo", "--force=1"): ("Option '--force' does not take a value.", "选项 '--force' 不接受取值。"),
    ("fix", "--wait", "-1"): ("-1.0 is not in the range >= 0.", "-1.0 不在范围 >= 0 内。"),
}


@pytest.mark.parametrize(
    "words", [words if words == ("explain",) else pytest.param(words, marks=pytest.mark.slow) for words in USAGE]
)
@pytest.mark.parametrize("lang", sampled(["zh", "en"], 2))
def test_usage_errors(words: tuple[str, ...], lang: str) -> None:
    place = (*words[:1], "--lang", lang, *words[1:]) if words[0] != "chekc" else ("--lang", lang, *words)
    done = envtune(*place)
    assert (done.returncode, done.stdout) == (2, "")
    *usage, error = done.stderr.splitlines()
    assert error.startswith("envtune: ") and USAGE[words][lang == "zh"] in error
    if usage:  # typer leaves it out where its parser finds the error
        first, second = ("Usage: envtune", "Try '") if lang == "en" else ("用法：envtune", "帮助：'")
        assert usage[0].startswith(first) and usage[1].startswith(second)
    assert bool(CHINESE.search(done.stderr)) == (lang == "zh")


def test_a_language_that_is_none() -> None:
    assert envtune("list", "faq", "--lang", "de").stderr == "envtune: --lang must be en or zh, not 'de'\n"
    assert envtune("--lang", "de", "list", "faq").stderr == "envtune: --lang must be en or zh, not 'de'\n"


def test_one_option_before_the_verb() -> None:
    assert CHINESE.search(envtune("--lang", "zh", "list", "faq").stdout)


# ---------------------------------------------------------------------- how it ends


@pytest.mark.parametrize("lang", sampled(BOTH, 2))
def test_a_defect_of_envtune_has_a_status_of_its_own(lang: str, tmp_path: Path) -> None:
    code = (
        "import sys; sys.argv = ['envtune', 'list', 'faq', '--lang', sys.argv[1]]\n"
        "from envtune.cli import list_, main\n"
        "def broken(*_):\n    raise UnboundLocalError('no device')\n"
        "list_.table = broken\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, lang],
        capture_output=True,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        check=False,
    )
    assert (done.returncode, done.stdout) == (70, "")
    (path,) = tmp_path.glob("envtune-crash-*/*")
    assert str(path) in done.stderr and "UnboundLocalError" in done.stderr and "Traceback" not in done.stderr
    assert "Traceback" in path.read_text() and "no device" in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert ("internal error" in done.stderr) == (lang == "en")


# what may go wrong in a verb, and where
DEFECTS = {
    "a key": lambda: {}["x"],
    "the end of a stream": lambda: raises(EOFError("ended before the end-of-stream marker")),
    "a pipe of a child": lambda: raises(BrokenPipeError(errno.EPIPE, "Broken pipe")),
    "depth": lambda: raises(RecursionError("maximum recursion depth exceeded")),
    "a text as exit status": lambda: raises(SystemExit("no")),
}


def raises(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("defect", DEFECTS)
def test_no_defect_ends_as_if_something_had_been_found(defect: str, tmp_path: Path) -> None:
    def broken() -> None:
        from envtune.cli import list_

        list_.table = lambda *_: DEFECTS[defect]()  # type: ignore[assignment]

    ended = program("list", "checks", before=broken, variables={"TMPDIR": str(tmp_path)})
    assert ended.status == 70 and b"Traceback" not in ended.err


@pytest.mark.parametrize("part", ["the file", "the message"])
def test_a_defect_that_cannot_be_reported_in_full_is_still_one(part: str, tmp_path: Path) -> None:
    """The disk is full, or the message's own module is broken: one line, and the status."""

    def broken() -> None:
        from envtune import cli
        from envtune.cli import list_

        list_.table = lambda *_: DEFECTS["a key"]()  # type: ignore[assignment]
        if part == "the file":
            cli._write_details = lambda _: raises(OSError(errno.ENOSPC, "full"))  # type: ignore[assignment]
        else:
            cli._describe = lambda _: raises(ImportError("envtune.messages"))  # type: ignore[assignment]

    ended = program("list", "checks", before=broken, variables={"TMPDIR": str(tmp_path)})
    assert ended.status == 70 and ended.err.count(b"\n") == 1 and b"internal error" in ended.err
    assert (b"test_app.py:" in ended.err) == (part == "the file")


@pytest.mark.slow
@pytest.mark.parametrize("number", sampled([signal.SIGINT, signal.SIGTERM, signal.SIGHUP], 3))
def test_a_command_that_hangs_ends_with_envtune(number: signal.Signals, tmp_path: Path) -> None:
    """A driver that hangs and an impatient user would collect them: each has a session of its own."""
    code = (
        "import signal, sys; sys.argv = ['envtune', 'check', '--select', 'TST001']\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"  # tests under nohup ignore it
        "from envtune.cli import main\nfrom envtune.catalog import Catalogue\nfrom envtune.model import *\n"
        "from envtune.messages import Literal\nfrom envtune.context.registry import probe\n"
        "@probe('test.hang')\n"
        "def hang(context):\n"
        f"    context.host.run(['/bin/sh', '-c', 'echo $$ > {tmp_path}/pid; sleep 600; true'], timeout=600)\n"
        "word = Literal('hang')\n"
        "check = Check('TST001', 'hang', word, 'stable', Severity.LOW, word, 'guide', 'test.hang', {}, {'eq': 1})\n"
        "check = check._replace(deadline=600)\n"
        "Catalogue.checks = property(lambda self: (check,))\nmain()"
    )
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", code], env=env, stderr=subprocess.PIPE, text=True) as child:
        pid = _number_in(tmp_path / "pid")
        child.send_signal(number)
        _, errors = child.communicate(timeout=30)
    assert child.returncode == (130 if number == signal.SIGINT else -number), errors
    assert "Traceback" not in errors
    end = time.monotonic() + 10
    while _is_running(pid):
        assert time.monotonic() < end, "the command lives on"
        time.sleep(0.05)


def _number_in(path: Path) -> int:
    end = time.monotonic() + 30
    while not (path.exists() and path.read_text().strip()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return int(path.read_text())


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
