"""The command line of slurm-prolog without typer: it is started before every job, on every node of it.

What is not understood here is left to typer, with its messages; a test compares both.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Mapping, Optional, Sequence

from envtune.records import NamedTuple

_SEVERITIES = ("info", "low", "medium", "high", "critical", "none")


class Words(NamedTuple):
    """What the options say; the defaults are those of the command (slurm_prolog.py)."""

    max_age: float = 1800.0
    stale: str = "start"
    fail_on: str = ""
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    policy: Optional[str] = None
    profile: Optional[str] = None
    catalog: tuple[str, ...] = ()
    timeout: float = 10.0
    node: str = ""
    scontrol: str = "scontrol"
    state: Optional[str] = None
    dry_run: bool = False


def parse(words: Sequence[str]) -> Optional[Words]:
    """Return what the words after `hook slurm-prolog` say; None where typer has to answer."""
    found: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        option, equals, value = word.partition("=")
        if word == "--dry-run":
            found["dry_run"] = True
            continue
        read = _OPTIONS.get(option)
        if read is None:
            return None
        try:
            read(found, option[2:].replace("-", "_"), value if equals else next(rest))
        except (ValueError, StopIteration):
            return None
    return Words()._replace(**found)


def run(words: Words) -> int:
    """Return the exit status of the prolog."""
    import os

    from envtune.executor.state import state_directory
    from envtune.hook.node import Settings, prolog
    from envtune.hook.records import Choice

    state = os.path.abspath(words.state) if words.state else os.path.join(state_directory(), "scheduler")
    settings = Settings(
        state,
        words.timeout,
        words.fail_on,
        Choice(words.select, words.ignore),
        words.node,
        words.scontrol,
        words.dry_run,
        words.max_age,
        words.stale,
    )
    return prolog(settings, partial(_check, words))


def _check(words: Words, say: Callable[..., None]) -> None:
    from envtune.cli.hook.judging import Question, judge

    question = Question(words.select, words.ignore, (), words.policy, words.profile, words.catalog, words.fail_on)
    judge(question, say)


def _text(found: dict[str, Any], name: str, value: str) -> None:
    found[name] = value


def _texts(found: dict[str, Any], name: str, value: str) -> None:
    before = found.get(name, ())
    found[name] = (*before, *(part for part in value.split(",") if part))


def _another(found: dict[str, Any], name: str, value: str) -> None:
    found[name] = (*found.get(name, ()), value)


def _number(least: float, most: float) -> Callable[[dict[str, Any], str, str], None]:
    def read(found: dict[str, Any], name: str, value: str) -> None:
        number = float(value)
        if not least <= number <= most:
            raise ValueError(value)
        found[name] = number

    return read


def _word(choices: Sequence[str]) -> Callable[[dict[str, Any], str, str], None]:
    def read(found: dict[str, Any], name: str, value: str) -> None:
        if value not in choices:
            raise ValueError(value)
        found[name] = value

    return read


_OPTIONS: Mapping[str, Callable[[dict[str, Any], str, str], None]] = {
    "--max-age": _number(1, float("inf")),
    "--timeout": _number(1, 300),
    "--stale": _word(("start", "check")),
    "--fail-on": _word(_SEVERITIES),
    "--select": _texts,
    "--ignore": _texts,
    "--catalog": _another,
    **dict.fromkeys(("--policy", "--profile", "--node", "--scontrol", "--state"), _text),
}
