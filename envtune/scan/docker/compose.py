"""What the services of a Compose file get: `environment` as a list or as a mapping, `entrypoint` and `command`.

A variable without a value is left to the shell that starts the service, and `env_file` is not read.
`$NAME` is replaced by Compose before anything is started, from that shell or from .env; `$$` is a dollar sign.
Source: Compose specification, services (05-services.md) and interpolation (12-interpolation.md).
"""

from __future__ import annotations

import re
import shlex
from typing import Iterator, Mapping, Optional, Sequence

from envtune.messages import Message
from envtune.scan.kubernetes.pods import shell_text, text_jobs
from envtune.scan.kubernetes.yaml import Node, YamlError, documents
from envtune.scan.model import Jobs, Problem
from envtune.scan.script import NoFiles, Start, joined_jobs, script_jobs
from envtune.shell.expansion import Value

_REFERENCE = re.compile(r"\$\$|\$(?:\{([A-Za-z_]\w*)[^}]*\}|([A-Za-z_]\w*))")


def service_jobs(path: str, text: str) -> Jobs:
    """Return the jobs of every service of a file."""
    found: list[Node] = []
    problem: Optional[Problem] = None
    try:
        found.extend(documents(text))
    except YamlError as error:
        problem = Problem(path, error.line, error.reason)
    services = [one.get("services") for one in found if one.kind == "mapping"]
    parts = [
        _of_service(path, f"service {key.text}", service)
        for one in services
        if one is not None
        for key, service in one.all_pairs()
        if service.kind == "mapping"
    ]
    return joined_jobs([*parts, Jobs((), () if problem is None else (problem,))])


def _of_service(path: str, name: str, service: Node) -> Jobs:
    rows = list(_settings(service.get("environment")))
    values: dict[str, Value] = {key: _value(key, text, f"{path}:{line}") for key, text, line in rows}
    start = Start(values, {key: f"{path}:{line}" for key, _, line in rows})
    words = [word for key in ("entrypoint", "command") for word in _words(service.get(key))]
    if not words:
        return script_jobs(path, "", NoFiles(), start, name, service.line, "/")
    script = shell_text(words)
    if script is not None:
        return text_jobs(path, name, script, _of_container(script.text, values), start)
    line = " ".join(_quoted(_of_container(word.text, values)) for word in words)
    return script_jobs(path, line, NoFiles(), start, name, words[0].line, "/")


def _settings(environment: Optional[Node]) -> Iterator[tuple[str, str, int]]:
    """Yield name, value as written, and line of what `environment` sets."""
    if environment is None:
        return
    for item in environment.items:
        name, equals, text = item.text.partition("=")
        if item.kind == "scalar" and equals:
            yield name, text, item.line
    for key, value in environment.all_pairs():
        if value.kind == "scalar" and not value.is_null:
            yield key.text, value.text, value.line


def _value(name: str, text: str, place: str) -> Value:
    """Return a value; what Compose substitutes is unknown."""
    for reference in _REFERENCE.finditer(text):
        if reference[0] != "$$":
            known = Message(
                "{reference} is known only when Compose is started ({place})", reference=reference[0], place=place
            )
            return known
    return text.replace("$$", "$")


def _words(node: Optional[Node]) -> Sequence[Node]:
    """Return the words of `command` or `entrypoint`; Compose splits a text like a shell, without running one."""
    if node is None or node.kind == "list":
        return [word for word in node.items if word.kind == "scalar"] if node is not None else []
    try:
        words = shlex.split(node.text) if node.kind == "scalar" and not node.is_null else []
    except ValueError:
        words = []
    return [Node("scalar", node.line, word) for word in words]


def _of_container(text: str, values: Mapping[str, Value]) -> str:
    """Return the text that the container gets, with placeholder names for what Compose substitutes."""

    def replaced(reference: re.Match[str]) -> str:
        name = reference[1] or reference[2]
        return "$" if name is None else f"${{{name if name not in values else '_compose_' + name}}}"

    return _REFERENCE.sub(replaced, text)


def _quoted(word: str) -> str:
    """Return a word for a shell: literal, except for what Compose substitutes."""
    return f'"{word}"' if "${" in word and not set(word) & set('"`\\') else shlex.quote(word)
