"""Settings in the words of what reads them: bash, fish, systemd, docker's env file, JSON. Pure: data in, text out.

Every value is quoted so that the reader gets exactly it. Sources: bash(1) and fish's manual on quotes, systemd.exec(5)
(Environment=, UnsetEnvironment=) and systemd.syntax(7), docker's reference of `run --env-file`.
"""

from __future__ import annotations

import json
import re
from typing import Callable, Iterator, Mapping, Sequence

from envtune.messages import Message
from envtune.resources.environment.profile import Advice, Setting

SCHEMA = "envtune.env/1"
_PLAIN = re.compile(r"[A-Za-z0-9_./:,+@%=-]+")


def bash_quoted(text: str) -> str:
    """A word that every POSIX shell reads as `text`."""
    if _PLAIN.fullmatch(text):
        return text
    return "'" + text.replace("'", "'\\''") + "'"


def fish_quoted(text: str) -> str:
    """A word that fish reads as `text`."""
    if _PLAIN.fullmatch(text) and "%" not in text:
        return text
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def bash_lines(setting: Setting) -> list[str]:
    """What a shell runs for one setting; running it twice changes nothing more."""
    if setting.script:
        return [f". {bash_quoted(setting.script)}"]
    if setting.value is None:
        return [f"unset {setting.name}"]
    if setting.prefixes:
        return [_in_front(setting.name, entry) for entry in reversed(setting.prefixes)]
    return [f"export {setting.name}={bash_quoted(setting.value)}"]


def _in_front(name: str, entry: str) -> str:
    """Put a directory in front of a search path, unless it is in it."""
    word = bash_quoted(entry)
    add = f"export {name}={word}" + "${" + f"{name}:+:${name}" + "}"
    return f'case ":${{{name}-}}:" in *:{word}:*) ;; *) {add} ;; esac'


def comment(text: str) -> str:
    """A reason as a comment: one line, whatever it holds."""
    return "# " + " ".join(text.split())


def bash(advice: Advice, lang: str) -> Iterator[str]:
    """For `eval` or `source`, in bash, zsh and POSIX shells."""
    yield from _notes(advice, lang)
    for setting in advice.settings:
        yield comment(setting.reason.to(lang))
        yield from bash_lines(setting)


def fish(advice: Advice, lang: str) -> Iterator[str]:
    """For `| source` in fish. Search paths that fish keeps as lists are set as lists."""
    yield from _notes(advice, lang)
    for setting in advice.settings:
        yield comment(setting.reason.to(lang))
        if setting.value is None:
            yield f"set -e {setting.name}"
        elif setting.name.endswith("PATH"):
            words = " ".join(fish_quoted(entry) for entry in setting.value.split(":"))
            yield f"set -gx --path {setting.name} {words}"
        else:
            yield f"set -gx {setting.name} {fish_quoted(setting.value)}"


def systemd(advice: Advice, lang: str) -> Iterator[str]:
    """A drop-in for the unit that starts the job: /etc/systemd/system/<unit>.service.d/envtune.conf."""
    yield from _notes(advice, lang)
    yield "[Service]"
    for setting in advice.settings:
        yield comment(setting.reason.to(lang))
        if setting.value is None:
            yield f"UnsetEnvironment={setting.name}"
        else:
            yield f"Environment={systemd_quoted(f'{setting.name}={setting.value}')}"


def systemd_quoted(text: str) -> str:
    """An assignment as systemd reads it: C escapes within double quotes, specifiers doubled."""
    made = []
    for letter in text.replace("%", "%%"):
        if letter in '\\"':
            made.append("\\" + letter)
        elif ord(letter) < 32 or ord(letter) == 127:
            made.append(f"\\x{ord(letter):02x}")
        else:
            made.append(letter)
    return '"' + "".join(made) + '"'


_NO_UNSET = Message("an env file cannot unset; not set in a container unless its image or another option sets it")
_NO_LINES = Message("the value has several lines, which an env file cannot hold")


def docker(advice: Advice, lang: str) -> Iterator[str]:
    """For `docker run --env-file`: the rest of the line is the value, nothing is quoted, nothing can be unset."""
    yield from _notes(advice, lang)
    for setting in advice.settings:
        yield comment(setting.reason.to(lang))
        if setting.value is None:
            yield comment(f"{setting.name}: {_NO_UNSET.to(lang)}")
        elif "\n" in setting.value or "\r" in setting.value:
            yield comment(f"{setting.name}: {_NO_LINES.to(lang)}")
        else:
            yield f"{setting.name}={setting.value}"


def as_json(advice: Advice, lang: str) -> Iterator[str]:
    """The settings as data."""
    rows = [
        {"name": s.name, "value": s.value, "reason": s.reason.to(lang), "checks": list(s.checks)}
        for s in advice.settings
    ]
    left = [{"name": one.name, "value": one.value, "reason": one.reason.to(lang)} for one in advice.left]
    blind = None if advice.blind is None else advice.blind.to(lang)
    data = {"schema": SCHEMA, "variables": rows, "left": left, "environment_unknown": blind}
    yield json.dumps(data, ensure_ascii=False, indent=2)


def _notes(advice: Advice, lang: str) -> Iterator[str]:
    """What is left, and what was not known."""
    if advice.blind is not None:
        blind = Message(
            "the job's variables are not known ({blind}): this is the whole profile, not the difference",
            blind=advice.blind,
        )
        yield comment(blind.to(lang))
    for one in advice.left:
        yield comment(f"{one.name}={one.value}: {one.reason.to(lang)}")


FORMATS: Mapping[str, Callable[[Advice, str], Iterator[str]]] = {
    "bash": bash,
    "fish": fish,
    "json": as_json,
    "systemd": systemd,
    "docker": docker,
}
SOURCES_SCRIPTS = ("bash",)  # the others get what the script sets, one by one


def render(advice: Advice, format_: str, lang: str) -> str:
    """The settings in one form, lines ended; empty when there is nothing to say."""
    return "".join(line + "\n" for line in FORMATS[format_](advice, lang))


def names(settings: Sequence[Setting]) -> tuple[str, ...]:
    """The variables, scripts by their path."""
    return tuple(setting.script or setting.name for setting in settings)
