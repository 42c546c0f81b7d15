"""What the containers of Kubernetes objects get: pods, jobs, deployments; Volcano, Kubeflow and Ascend jobs.

Whatever kind an object has, its pods are the mappings with a list of `containers`. Init containers start no job.
Source: Kubernetes API v1 (EnvVar, EnvFromSource, Container.command), batch.volcano.sh/v1alpha1.
"""

from __future__ import annotations

import re
import shlex
from typing import Iterator, Mapping, NamedTuple, Optional, Sequence

from envtune.messages import Message, Text
from envtune.scan.kubernetes.yaml import Node, YamlError, documents
from envtune.scan.model import Jobs, Problem
from envtune.scan.script import NoFiles, Start, joined_jobs, script_jobs
from envtune.shell.expansion import Value

SHELLS = re.compile(r"(?:.*/)?(?:sh|bash|dash|ash|ksh|zsh)")
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_.-][\w.-]*)\)")
_TEMPLATE = re.compile(r"\{\{-?\s*(?:\.|\$|include|template|if|range|with|end|toYaml|define)")


class _Given(NamedTuple):
    """The variables of a container, as far as its object tells."""

    values: dict[str, Value]
    places: dict[str, str]


ConfigMaps = Mapping[str, Node]  # name -> its data


def pod_jobs(path: str, text: str) -> Jobs:
    """Return the jobs of every document of a file."""
    found: list[Node] = []
    problem: Optional[Problem] = None
    try:
        found.extend(documents(text))
    except YamlError as error:
        template = _TEMPLATE.search(text)
        reason = Message("a template: render it, and scan the result") if template is not None else error.reason
        problem = Problem(path, error.line, reason)
    objects = [one for document in found for one in _objects(document)]
    maps = {one.word("metadata", "name"): data for one in objects for data in [_map_data(one)] if data is not None}
    parts = [part for one in objects for part in _of_object(path, one, maps)]
    return joined_jobs([*parts, Jobs((), () if problem is None else (problem,))])


def _map_data(one: Node) -> Optional[Node]:
    """Return the data of a ConfigMap; None for every other object."""
    return one.get("data") if one.word("kind") == "ConfigMap" else None


def _objects(document: Node) -> Iterator[Node]:
    """Yield the objects of a document; those of a List one by one."""
    if document.word("kind").endswith("List") and document.entries("items"):
        yield from document.entries("items")
    elif document.kind == "mapping":
        yield document


def _of_object(path: str, one: Node, maps: ConfigMaps) -> Iterator[Jobs]:
    label = f"{one.word('kind') or 'object'}/{one.word('metadata', 'name')}"
    data = _map_data(one)
    if data is not None:
        yield from _scripts(path, label, data)
        return
    for node in one.walk():
        for container in node.entries("containers") if node.kind == "mapping" else ():
            if container.kind == "mapping":
                yield _of_container(path, f"{label} {container.word('name')}".strip(), container, maps)


def _scripts(path: str, label: str, data: Node) -> Iterator[Jobs]:
    """Yield the jobs of the scripts in a ConfigMap."""
    for key, value in data.pairs:
        named = key.text.endswith((".sh", ".bash")) or value.text.startswith("#!")
        if value.kind == "scalar" and named and not re.match(r"#!.*(?:python|perl|node)", value.text):
            yield text_jobs(path, f"{label} {key.text}", value, value.text, Start())


def text_jobs(path: str, name: str, node: Node, text: str, start: Start) -> Jobs:
    """Return the jobs of a script in a scalar; a block scalar has the lines of the file."""
    if node.first_line:
        return script_jobs(path, "\n" * (node.first_line - 1) + text, NoFiles(), start, name, cwd="/")
    return script_jobs(path, text, NoFiles(), start, name, node.line, "/")


def _of_container(path: str, name: str, container: Node, maps: ConfigMaps) -> Jobs:
    given = _variables(path, container, maps)
    start = Start(given.values, given.places)
    words = [word for key in ("command", "args") for word in container.entries(key) if word.kind == "scalar"]
    if not words:
        return script_jobs(path, "", NoFiles(), start, name, container.line, "/")
    script = shell_text(words)
    if script is not None:
        return text_jobs(path, name, script, _for_a_shell(script.text, given.values), start)
    line = shlex.join(_filled(word.text, given.values) for word in words)
    return script_jobs(path, line, NoFiles(), start, name, words[0].line, "/")


def shell_text(words: Sequence[Node]) -> Optional[Node]:
    """Return the script of `bash -c script`; None for every other command."""
    if SHELLS.fullmatch(words[0].text) is None:
        return None
    for at, word in enumerate(words[1:-1], 1):
        if re.fullmatch(r"-[a-z]*c", word.text):
            return words[at + 1]
        if not word.text.startswith(("-", "+")):
            return None
    return None


def _variables(path: str, container: Node, maps: ConfigMaps) -> _Given:
    """Return what `envFrom` and `env` set; for a Secret and the like even the names are unknown."""
    given = _Given({}, {})
    for source in container.entries("envFrom"):
        data = maps.get(source.word("configMapRef", "name"))
        for key, listed in data.pairs if data is not None else ():
            if listed.kind == "scalar":
                name = source.word("prefix") + key.text
                given.values[name], given.places[name] = listed.text, f"{path}:{listed.line}"
    for row in container.entries("env"):
        name_node = row.scalar("name")
        if name_node is None:
            continue
        value = row.scalar("value")
        place = f"{path}:{(value or name_node).line}"
        given.values[name_node.text] = _value(row, maps, given.values, place)
        given.places[name_node.text] = place
    return given


def _value(row: Node, maps: ConfigMaps, before: Mapping[str, Value], place: str) -> Value:
    value, source = row.scalar("value"), row.get("valueFrom")
    if value is not None or source is None:
        return _with_references("" if value is None else value.text, before, place)
    chosen = source.get("configMapKeyRef")
    data = maps.get(chosen.word("name")) if chosen is not None else None
    listed = data.scalar(chosen.word("key")) if data is not None and chosen is not None else None
    if listed is not None:
        return listed.text
    kind = source.pairs[0][0].text if source.pairs else "valueFrom"
    return Message("it comes from {kind} ({place})", kind=kind, place=place)


def _with_references(text: str, known: Mapping[str, Value], place: str) -> Value:
    """Replace `$(NAME)` of earlier variables; others are unchanged, and `$$` is `$`."""
    for reference in _REFERENCE.finditer(text):
        value = known.get(reference[1] or "")
        if isinstance(value, Text):
            return Message("{reference} is unknown: {reason}", reference=reference[0], reason=value)
    return _filled(text, known)


def _filled(text: str, known: Mapping[str, Value]) -> str:
    def replaced(reference: re.Match[str]) -> str:
        if reference[0] == "$$":
            return "$"
        value = known.get(reference[1])
        return value if isinstance(value, str) else reference[0]

    return _REFERENCE.sub(replaced, text)


def _for_a_shell(text: str, known: Mapping[str, Value]) -> str:
    """Replace `$(NAME)` of variables of the container by `${NAME}`, which means the same in a shell."""

    def replaced(reference: re.Match[str]) -> str:
        if reference[0] == "$$":
            return reference[0]
        return f"${{{reference[1]}}}" if reference[1] in known else reference[0]

    return _REFERENCE.sub(replaced, text)
