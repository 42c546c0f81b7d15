"""The environment from a launch file that is not for sh or bash: csh, fish, Python, YAML, JSON.

Such a file is not executed. Variables set once, unconditionally, to a literal are known; others that it mentions are
unknown. A script passes on the rest of its environment; a description of a container does not.
"""

from __future__ import annotations

import re
from typing import Mapping

from envtune.job.target import JobEnvironment, alone, layered
from envtune.messages import Message, Text

_WORD = r"(?:'(?P<a>[^'\n]*)'|\"(?P<b>[^\"$`\\\n]*)\"|(?P<c>[\w./:,+@%-]*))"
_NAME = r"(?P<name>[A-Za-z_]\w*)"
_LITERALS: Mapping[str, re.Pattern[str]] = {
    "csh": re.compile(rf"(?m)^setenv[ \t]+{_NAME}[ \t]+{_WORD}[ \t]*(?:;|#|$)"),
    "fish": re.compile(rf"(?m)^set[ \t]+(?:-\w*x\w*|--export)[ \t]+{_NAME}[ \t]+{_WORD}[ \t]*(?:;|#|$)"),
    "python": re.compile(rf"(?m)^os\.environ\[['\"]{_NAME}['\"]\][ \t]*=[ \t]*(?=['\"]){_WORD}[ \t]*(?:;|#|$)"),
    "YAML": re.compile(
        rf"(?m)^[ \t]*-[ \t]+name:[ \t]*['\"]?{_NAME}['\"]?[ \t]*\n[ \t]*value:[ \t]*{_WORD}[ \t]*(?:#.*)?$"
    ),
    "JSON": re.compile(rf"\"name\"\s*:\s*\"{_NAME}\"\s*,\s*\"value\"\s*:\s*(?=\"){_WORD}"),
}
_MAPPED = {  # NAME: value
    "YAML": re.compile(rf"(?m)^[ \t]+(?=[A-Z]){_NAME}:[ \t]+{_WORD}[ \t]*(?:#.*)?$"),
    "JSON": re.compile(rf"\"(?=[A-Z]){_NAME}\"\s*:\s*(?=\"){_WORD}"),
}
_INHERITING = ("csh", "fish", "python")


def foreign_environment(path: str, text: str, language: str, base: JobEnvironment) -> JobEnvironment:
    """Return the job's variables if it is started by a file in a language other than sh and bash."""
    reason = not_for_a_shell(path, language)
    if language not in _LITERALS:
        return JobEnvironment(None, path, reason)
    literal = dict(_literals(text, language))
    mentioned: dict[str, int] = {}
    for word in re.findall(r"[A-Za-z_]\w*", text):
        mentioned[word] = mentioned.get(word, 0) + 1
    own = {name: value for name, (value, _) in literal.items() if mentioned[name] == 1}
    places = {name: f"{path}:{line}" for name, (_, line) in literal.items() if name in own}
    inherits = language in _INHERITING
    known = {n: v for n, v in (base.variables or {}).items() if inherits and n not in mentioned}
    unknown = {**(base.unknown if inherits else {}), **{name: reason for name in mentioned if name not in own}}
    inherited = base.reason if base.variables is None else base.unknown_by_default
    default = inherited if inherits else None  # a container's variables are judged alone, like a script's under sudo
    return JobEnvironment(
        {**known, **own}, layered(path, base.source) if inherits else alone(path), None, False, unknown, default, places
    )


def _literals(text: str, language: str) -> list[tuple[str, tuple[str, int]]]:
    found = []
    for pattern in (_LITERALS[language], *([_MAPPED[language]] if language in _MAPPED else [])):
        for row in pattern.finditer(text):
            value = next((row[group] for group in "abc" if row[group] is not None), "")
            found.append((row["name"], (value, text.count("\n", 0, row.start()) + 1)))
    return found


def not_for_a_shell(path: str, language: str) -> Text:
    """Report that a file is not a script for sh or bash."""
    return Message("{path} is not a script for sh or bash ({language})", path=path, language=language)
