"""Settings in the format of their reader: bash, fish, systemd, docker's env file, JSON. Pure: data in, text out.

Every value is quoted so that the reader gets exactly that value. Sources: bash(1) and fish's manual on quotes,
systemd.exec(5) (Environment=, UnsetEnvironment=) and systemd.syntax(7), docker's reference of `run --env-file`.
"""

from __future__ import annotations

import json
import re
from typing import Callable, Iterable, Iterator, Mapping

from envtune.collector.redact import redact_text, redact_value
from envtune.messages import Literal, Message, Text, clauses
from envtune.resources.environment.profile import Advice, Setting
from envtune.resources.environment.search_paths import LISTS
from envtune.trust.characters import json_text, replace_unseen, visible, visible_lines

SCHEMA = "envtune.env/1"
_PLAIN = re.compile(r"[A-Za-z0-9_./:,+@%=-]+")


def bash_quoted(text: str) -> str:
    """Return a word that every POSIX shell reads as `text`."""
    if _PLAIN.fullmatch(text):
        return text
    return "'" + text.replace("'", "'\\''") + "'"


def fish_quoted(text: str) -> str:
    """Return a word that fish reads as `text`."""
    if _PLAIN.fullmatch(text) and "%" not in text:
        return text
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def bash_lines(setting: Setting) -> list[str]:
    """Return the shell code for one setting; it is idempotent."""
    if setting.script:
        return [_sourced(setting), *map(_tidied, setting.tidied)]
    if setting.value is None:
        return [f"unset {setting.name}"]
    if setting.prefixes:
        return [_in_front(setting.name, entry) for entry in reversed(setting.prefixes)]
    return [f"export {setting.name}={bash_quoted(setting.value)}"]


def _sourced(setting: Setting) -> str:
    """Return the line that sources a script unless it already was: most scripts would prepend their entries again."""
    path = bash_quoted(setting.script)
    # A vendor's script is not written for `set -e` and `set -u`.
    options = (("*e*u*|*u*e*", "eu"), ("*e*", "e"), ("*u*", "u"))
    ways = "".join(f"{pattern}) set +{letters}; . {path}; set -{letters} ;; " for pattern, letters in options)
    source = f"case $- in {ways}*) . {path} ;; esac"
    if not setting.unless:
        return source
    words = "|".join(f":${{{name}-}}:" for name, _ in setting.unless)
    patterns = '"|"'.join(f"*:{bash_quoted(entry)}:*" for _, entry in setting.unless)
    return f'case "{words}" in {patterns}) ;; *) {source} ;; esac'


def _tidied(name: str) -> str:
    """Return the line that removes empty entries from a search path; they mean the current directory."""
    ends = f"{name}=${{{name}#:}}; {name}=${{{name}%:}}"
    gap = f'case "${{{name}-}}" in *::*) {name}=${{{name}%%::*}}:${{{name}#*::}} ;; :*|*:) {ends} ;; *) break ;; esac'
    return f"while :; do {gap}; done"


def _in_front(name: str, entry: str) -> str:
    """Return the line that prepends a directory to a search path, unless it is already in it."""
    word = bash_quoted(entry)
    add = f"export {name}={word}" + "${" + f"{name}:+:${name}" + "}"
    return f'case ":${{{name}-}}:" in *:{word}:*) ;; *) {add} ;; esac'


def comment(text: str) -> str:
    """Return a reason as a comment: always one line, without secrets."""
    return "# " + visible(redact_text(" ".join(text.split())))


def _about(name: str, said: Text) -> Text:
    return Message("{subject}: {found}", subject=name, found=said)


def _posix_escaped(unseen: str) -> str:
    """Return what ends a quoted word, adds these characters by their bytes, and resumes quoting (printf(1p))."""
    octal = "".join(f"\\{byte:03o}" for byte in unseen.encode("utf-8", "surrogateescape"))
    return f"'\"$(printf '{octal}')\"'"


def _fish_escaped(unseen: str) -> str:
    """Return the same in the syntax of fish (its manual, "Escaping Characters")."""
    return "'" + "".join(f"\\X{byte:02x}" for byte in unseen.encode("utf-8", "surrogateescape")) + "'"


def bash(advice: Advice, lang: str) -> Iterator[str]:
    """Yield lines for `eval` or `source`, in bash, zsh and POSIX shells."""
    yield from _notes(advice, lang)
    for setting in advice.settings:
        yield comment(setting.reason.to(lang))
        yield from (replace_unseen(line, _posix_escaped) for line in bash_lines(setting))


def fish(advice: Advice, lang: str) -> Iterator[str]:
    """Yield lines for `| source` in fish. Search paths that fish keeps as lists are set as lists."""
    yield from _notes(advice, lang)
    for setting in advice.settings:
        yield comment(setting.reason.to(lang))
        if setting.value is None:
            yield f"set -e {setting.name}"
        elif setting.name.endswith("PATH"):
            words = " ".join(fish_quoted(entry) for entry in setting.value.split(":"))
            yield replace_unseen(f"set -gx --path {setting.name} {words}", _fish_escaped)
        else:
            yield replace_unseen(f"set -gx {setting.name} {fish_quoted(setting.value)}", _fish_escaped)


def systemd(advice: Advice, lang: str) -> Iterator[str]:
    """Yield a drop-in for the unit that starts the job: /etc/systemd/system/<unit>.service.d/envtune.conf."""
    yield from _notes(advice, lang)
    yield "[Service]"
    for setting in advice.settings:
        yield comment(setting.reason.to(lang))
        if setting.value is None:
            yield f"UnsetEnvironment={setting.name}"
        else:
            yield f"Environment={systemd_quoted(f'{setting.name}={setting.value}')}"


def systemd_quoted(text: str) -> str:
    """Return an assignment as systemd reads it: C escapes within double quotes, specifiers doubled."""
    quoted = []
    for letter in text.replace("%", "%%"):
        if letter in '\\"':
            quoted.append("\\" + letter)
        else:
            quoted.append(visible(letter))  # in a form that systemd reads, too
    return '"' + "".join(quoted) + '"'


_NO_UNSET = Message("an env file cannot unset; not set in a container unless its image or another option sets it")
_UNSEEN = Message("the value contains invisible characters or non-text bytes, which an env file cannot quote")
_NO_LINES = Message("the value has several lines, which an env file cannot contain")


def _for_the_image(setting: Setting) -> Message:
    """Return how to add the entries of a search path to an image; an env file cannot extend it."""
    name = setting.name
    if not setting.prefixes:
        return Message("an env file would replace the image's value with this host's; the image sets its own")
    entries = ":".join(setting.prefixes)
    return Message(
        "an env file would replace the image's value with this host's; in the Dockerfile: {line}",
        line=f'ENV {name}="{entries}${{{name}:+:${name}}}"',
    )


def docker(advice: Advice, lang: str) -> Iterator[str]:
    """Yield lines for `docker run --env-file`: the rest of a line is the value, unquoted, and nothing can be unset."""
    yield from _notes(advice, lang)
    for setting in advice.settings:
        yield comment(setting.reason.to(lang))
        if setting.value is None:
            yield comment(_about(setting.name, _NO_UNSET).to(lang))
        elif setting.name in LISTS:
            yield comment(_about(setting.name, _for_the_image(setting)).to(lang))
        elif "\n" in setting.value or "\r" in setting.value:
            yield comment(_about(setting.name, _NO_LINES).to(lang))
        elif visible_lines(setting.value) != setting.value:
            yield comment(_about(setting.name, _UNSEEN).to(lang))
        else:
            yield f"{setting.name}={setting.value}"


def _csh_quoted(text: str) -> str:
    """Return a word of csh, where single quotes protect all but a quote, an exclamation mark and a newline."""
    if _PLAIN.fullmatch(text):
        return text
    return "'" + text.replace("'", "'\\''").replace("!", "\\!").replace("\n", "\\\n") + "'"


def typed(settings: Iterable[Setting], language: str) -> Text:
    """Return what to type into a launch file that is not for sh or bash, in its own syntax."""
    word = _TYPED.get(language, _plain_words)
    parts: list[Text] = []
    for setting in settings:
        if setting.value is None and language in _WITHOUT_UNSETTING:
            parts.append(Message("nothing for {name}", name=setting.name))
        else:
            parts.append(Literal(word(setting)))
    return clauses(parts)


def _plain_words(setting: Setting) -> str:
    return f"{setting.name}={setting.value}"


def _csh_words(setting: Setting) -> str:
    if setting.value is None:
        return f"unsetenv {setting.name}"
    return f"setenv {setting.name} {_csh_quoted(setting.value)}"


def _fish_words(setting: Setting) -> str:
    return f"set -e {setting.name}" if setting.value is None else f"set -gx {setting.name} {fish_quoted(setting.value)}"


def _python_words(setting: Setting) -> str:
    if setting.value is None:
        return f"os.environ.pop({json.dumps(setting.name)}, None)"
    return f"os.environ[{json.dumps(setting.name)}] = {json.dumps(setting.value)}"


def _env_entry(setting: Setting) -> str:
    return json.dumps({"name": setting.name, "value": setting.value})  # for a container's `env`; JSON is also YAML


_TYPED: Mapping[str, Callable[[Setting], str]] = {
    "csh": _csh_words,
    "fish": _fish_words,
    "python": _python_words,
    "YAML": lambda setting: f"- {_env_entry(setting)}",
    "JSON": _env_entry,
}
_WITHOUT_UNSETTING = ("YAML", "JSON")


def as_json(advice: Advice, lang: str) -> Iterator[str]:
    """Yield the settings as one JSON document."""
    rows = [
        {"name": s.name, "value": s.value, "reason": redact_text(s.reason.to(lang)), "checks": list(s.checks)}
        for s in advice.settings
    ]
    left = [
        {
            "name": row.name,
            "value": redact_value(row.name, row.value),
            "reason": redact_text(row.reason.to(lang)),
        }
        for row in advice.unchanged
    ]
    unknown = None if advice.unknown_environment is None else advice.unknown_environment.to(lang)
    unchecked = [redact_text(note.to(lang)) for note in advice.unchecked]
    data = {
        "schema": SCHEMA,
        "variables": rows,
        "left": left,
        "environment_unknown": unknown,
        "unchecked": unchecked,
    }
    yield json_text(data, 2)


def _notes(advice: Advice, lang: str) -> Iterator[str]:
    """Yield what is left alone, and what was unknown, as comments."""
    if advice.unknown_environment is not None:
        unknown = Message(
            "the job's variables are unknown ({reason}): this is the whole profile, not the difference",
            reason=advice.unknown_environment,
        )
        yield comment(unknown.to(lang))
    for row in advice.unchanged:
        yield comment(_about(f"{row.name}={row.value}", row.reason).to(lang))
    for note in advice.unchecked:
        yield comment(note.to(lang))


FORMATS: Mapping[str, Callable[[Advice, str], Iterator[str]]] = {
    "bash": bash,
    "fish": fish,
    "json": as_json,
    "systemd": systemd,
    "docker": docker,
}
SOURCES_SCRIPTS = ("bash",)  # the others get the script's settings one by one


def render(advice: Advice, format_: str, lang: str) -> str:
    """Return the settings in one form, with newlines; empty if there are none."""
    return "".join(line + "\n" for line in FORMATS[format_](advice, lang))
