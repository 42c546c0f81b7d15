"""What every verb does the same way: options, language, width, color, and the catalog it works with."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Iterator, NoReturn, Optional, Sequence

import typer

from envtune import commandline
from envtune.cli.program.language import language_of_locale
from envtune.messages import LANGUAGES, N_, Message, Text, alternatives, nearest

if TYPE_CHECKING:
    from envtune.catalog import Catalogue
    from envtune.model import Severity
    from envtune.report.output import Output

USAGE = 2
NOT_READ = 3
FILE_WIDTH = 100  # columns of text that goes to a file
INTERRUPTED = 130  # 128 + SIGINT, as a shell says it
FORMATS = ("text", "json")
until_end = ExitStack()  # what a verb has opened and keeps to its end
default_language: Optional[str] = None  # `envtune --lang zh check` names it before the verb
colour_choice = "auto"  # --color

LANG: Any = typer.Option(None, "--lang", metavar="LANG", help=N_("en or zh (default: your locale)."))
COLOR_HELP = N_("auto, always or never (default: auto).")
COLOR: Any = typer.Option(None, "--color", metavar="WHEN", help=COLOR_HELP)
FORMAT: Any = typer.Option("text", "--format", "-f", help=N_("text or json."))
PYTHON: Any = typer.Option(None, "--python", help=N_("The job's Python: a path or a name on PATH."))
PID: Any = typer.Option(None, "--pid", help=N_("A running job: the process id."))
SCRIPT: Any = typer.Option(None, "--script", help=N_("The job's launch script."))
ENV_FILE: Any = typer.Option(None, "--env-file", help=N_("The job's variables, KEY=VALUE lines."))
PEER: Any = typer.Option(None, "--peer", help=N_("Another host of the job: address, network, name."))
HOSTFILE: Any = typer.Option(None, "--hostfile", help=N_("File with the job's hosts, one per line."))
IGNORE: Any = typer.Option(None, "--ignore", "-i", help=N_("Skip these checks."))
TAG: Any = typer.Option(None, "--tag", help=N_("Only checks with this tag."))
SEVERITY: Any = typer.Option("info", "--severity", help=N_("Only checks of this severity or higher."))
FAIL_ON: Any = typer.Option(
    "medium", "--fail-on", help=N_("Exit 1 on findings of this severity or higher; none: always exit 0.")
)
WAIT: Any = typer.Option(0.0, "--wait", min=0.0, help=N_("How long to wait for another run to end."))
POLICY: Any = typer.Option(None, "--policy", metavar="FILE", help=N_("Site policy file; none: use no policy."))
PROFILE: Any = typer.Option(None, "--profile", metavar="NAME", help=N_("A profile of the policy."))
CATALOG: Any = typer.Option(None, "--catalog", help=N_("More entries; the same id replaces a built-in one."))


def language(chosen: Optional[str]) -> str:
    """Return `--lang`, else the locale's language, else English. Raises UsageError."""
    chosen = chosen or default_language
    if chosen is None:
        return language_of_locale()
    require_choice("--lang", chosen, LANGUAGES)
    return chosen


def require_choice(option: str, value: str, choices: Sequence[str]) -> None:
    """Raise UsageError when the value of an option is none of the choices."""
    if value in choices:
        return
    from envtune.errors import UsageError

    message = Message(
        "{option} must be {names}, not '{value}'", option=option, value=value, names=alternatives(choices)
    )
    near = nearest(value, choices)
    if near:
        message = Message("{message}; did you mean {guess}?", message=message, guess=alternatives(near))
    raise UsageError(message)


def format_option(help_text: str) -> Any:
    """Return the option `--format` of a verb that writes several documents of one run."""
    return typer.Option(["text"], "--format", "-f", metavar="FORMAT", help=help_text)


def outputs(values: Sequence[str], formats: Sequence[str]) -> tuple[Output, ...]:
    """Return what `--format` asks for; raises UsageError."""
    from envtune.report.output import Output

    for value in values:
        require_choice("--format", value.partition("=")[0], formats)
    if len(values) == 1 and values[0] in FORMATS:
        return (Output(values[0]),)
    from envtune.report.formats.outputs import parse_outputs

    return parse_outputs(values)


def write(wanted: Sequence[Output], render: Callable[[Output], str], lang: str) -> bool:
    """Write the documents; return whether all could be written, after saying why one could not."""
    if len(wanted) == 1 and wanted[0].path is None:
        from envtune.report.output import print_text

        print_text(wanted[0], render(wanted[0]))
        return True
    from envtune.report.formats.outputs import write_outputs
    from envtune.report.output import stop_waiting

    stop_waiting()  # nothing may be printed that would take the line of progress away
    problems = write_outputs(wanted, render)
    for problem in problems:
        print_error(problem, lang)
    return not problems


def is_plugin(wanted: Sequence[Output]) -> bool:
    """Return whether a monitoring system reads standard output, and takes the exit status by its own rules."""
    return any(output.format == "nagios" and output.path is None for output in wanted)


def severity_named(word: str) -> Severity:
    """Return the severity of `--severity`; raises UsageError."""
    from envtune.model import Severity

    require_choice("--severity", word, [severity.value for severity in Severity])
    return Severity(word)


def threshold_named(word: str) -> Optional[Severity]:
    """Return the severity of `--fail-on`; None for `none`. Raises UsageError."""
    from envtune.model import Severity

    require_choice("--fail-on", word, [*(severity.value for severity in Severity), "none"])
    return None if word == "none" else Severity(word)


def single_snapshot(paths: Optional[Sequence[Path]]) -> Optional[Path]:
    """Return the one recorded host that was named; raises UsageError for several."""
    if paths and len(paths) > 1:
        from envtune.errors import UsageError

        raise UsageError(Message("--snapshot takes one recorded host, but was given {count} times", count=len(paths)))
    return paths[0] if paths else None


def recorded_name(snapshot: Optional[Path]) -> str:
    """Return how a report names the recorded host that it is about; empty where that is this host."""
    return "" if snapshot is None else str(snapshot)


def limit_reading(snapshot: Optional[Path], lang: str, cpu: bool = True) -> None:
    """Go on in a forked process with limits where a recorded host is read, and end as that one ends.

    The CPU is limited only where `cpu` says so. `check` has limits for each check instead (audit/limited.py).
    """
    if snapshot is None or not commandline.is_program:
        return
    import signal
    import threading

    from envtune.audit.limited import CPU, limit_process, why_ended

    passed_on = (signal.SIGTERM, signal.SIGHUP)
    if threading.active_count() > 1:  # a fork would copy locks that nobody gives back
        return
    seconds = CPU if cpu else None
    try:
        child = os.fork()
    except OSError:  # no more processes: it is read here
        return
    if child == 0:
        limit_process(seconds)
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to both
    for number in passed_on:
        signal.signal(number, lambda number, _: os.kill(child, number))
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status):
        raise typer.Exit(os.WEXITSTATUS(status))
    ended_by = os.WTERMSIG(status)
    if ended_by in passed_on:
        signal.signal(ended_by, signal.SIG_DFL)
        os.kill(os.getpid(), ended_by)
    print_error(Message("{path}: {reason}", path=str(snapshot), reason=why_ended(status, seconds)), lang)
    raise typer.Exit(NOT_READ)


def load_catalogue(directories: Optional[Sequence[Path]], lang: str) -> Catalogue:
    """Return the catalog with these directories over it, after printing what the user should know about it."""
    from envtune.catalog import load

    catalogue = load(tuple(directories or ()))
    for note in catalogue.notes:
        print_error(note, lang)
    return catalogue


def choose_colour(context: typer.Context, value: Optional[str]) -> None:
    """Take over --color; raises UsageError for another word than auto, always and never."""
    global colour_choice
    if value is not None:
        require_choice("--color", value, ("auto", "always", "never"))
        colour_choice = value
    if _colour_forced():
        context.color = True  # or typer takes the colors out again where there is no terminal


def _colour_forced() -> bool:
    """Return whether colors are wanted without a terminal, too; NO_COLOR goes before FORCE_COLOR, as in Python."""
    if colour_choice != "auto":
        return colour_choice == "always"
    return os.environ.get("FORCE_COLOR", "0") not in ("", "0") and not os.environ.get("NO_COLOR")


def colour_wanted(error_stream: bool = False) -> bool:
    """Return whether to print colors (on stderr?): as --color says, else on a terminal that can show them.

    Without --color the environment decides: never against NO_COLOR, always with FORCE_COLOR.
    """
    stream = sys.stderr if error_stream else sys.stdout
    if _colour_forced():
        from envtune.report.output import StandardStream

        if isinstance(stream, StandardStream):
            stream.keeps_colours = True
        return True
    if colour_choice == "never" or os.environ.get("NO_COLOR"):
        return False
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def terminal_width() -> int:
    """Return the columns of the terminal, 100 where there is none; wider than 120 does not read better."""
    return min(shutil.get_terminal_size((100, 24)).columns, 120)


def screen(output: Output) -> tuple[int, bool]:
    """Return the columns of a document, and whether it has colors."""
    return (terminal_width(), colour_wanted()) if output.path is None else (FILE_WIDTH, False)


def is_interactive() -> bool:
    """Return whether somebody could answer a question; a script that says undo means it."""
    return sys.stdin is not None and sys.stdin.isatty()


def fail_to_write(place: str, error: OSError, lang: str) -> NoReturn:
    """Say what could not be written, and end with 2."""
    from envtune.errors import system_error_text

    print_error(Message("{place}: not written: {reason}", place=place, reason=system_error_text(error)), lang)
    raise typer.Exit(USAGE)


def exit_now(code: int) -> NoReturn:
    """Exit without waiting for a check that hangs: its thread is stuck in the kernel, its command may still run."""
    from envtune.collector.commands import end_running_commands

    end_running_commands()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def print_json(data: Any, indent: Optional[int] = None) -> None:
    """Print data as a JSON document."""
    from envtune.trust.characters import json_text

    print_document(json_text(data, indent) + "\n")


def print_document(text: str) -> None:
    """Print what is UTF-8 whatever the locale: JSON, a program."""
    from envtune.report.output import write_bytes

    write_bytes(text.encode("utf-8"))


def print_error(message: Text, lang: str) -> None:
    """Print a message to stderr, each of its lines after the name of the program."""
    from envtune.report.layout import shown

    for line in shown(message, lang).splitlines() or [""]:
        typer.echo(f"envtune: {line}", err=True)


# What says which changes are made, and how they are agreed to, is not the same for the one who continues.
_CHOICES = frozenset(
    (
        *("words", "select", "faq", "ignore", "tag", "severity", "plan", "apply", "yes", "yes_confirm", "change"),
        *("finish", "verbose"),
    )
)
# relative to this directory
_FILES = frozenset(("script", "env_file", "hostfile", "wheels", "catalog", "python", "policy"))


def given_options(context: typer.Context) -> list[str]:
    """Return the options that say what is looked at and how, as they were given; paths are made absolute."""
    words: list[str] = []
    for parameter in given_parameters(context):
        if parameter.name not in _CHOICES:
            words += _words(parameter, context.params[parameter.name])
    return words


# of a check, as `envtune fix` takes them, too
_SETTINGS = ("python", "pid", "script", "env_file", "peer", "hostfile", "catalog", "policy", "profile")
_SELECTION = ("select", "ignore", "tag", "severity")


def repeated_options(
    context: typer.Context, settings: Sequence[str] = _SETTINGS
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the options that name the job, the policy and the catalog, and those that chose the checks, as words."""

    def words(names: Sequence[str]) -> tuple[str, ...]:
        given = (parameter for parameter in given_parameters(context) if parameter.name in names)
        return tuple(word for parameter in given for word in _words(parameter, context.params[parameter.name]))

    return words(settings), words(_SELECTION)


def given_parameters(context: typer.Context) -> Iterator[Any]:
    """Yield the options and arguments that were given on the command line."""
    for parameter in context.command.params:
        source, value = context.get_parameter_source(parameter.name or ""), context.params.get(parameter.name or "")
        # click 8.1, the last for Python 3.9, calls no words given ones
        if source is not None and source.name == "COMMANDLINE" and value not in (None, (), []):
            yield parameter


def _words(option: Any, value: Any) -> Iterator[str]:
    name = max(option.opts, key=len)
    for one in value if isinstance(value, (list, tuple)) else (value,):
        text = str(one)
        is_name = (option.name == "python" and "/" not in text) or (option.name == "policy" and text == "none")
        is_file = option.name in _FILES and not is_name
        yield from (name, os.path.abspath(text) if is_file else text)
