"""The executor's problems as messages for people, translated by the catalog like all others."""

from __future__ import annotations

from typing import Any, Mapping

from envtune.errors import SYSTEM_ERRORS
from envtune.executor.problems import TEMPLATES, problem_of
from envtune.messages import Literal, Message, Text, clauses

_DIGEST = "sha256:"
_STATES = ("found", "planned", "recorded")  # fields with the state of a subject: a digest, or a word


def problem_message(problem: Mapping[str, Any]) -> Text:
    """Return the message of a problem as stored in journals and results: its code and its fields."""
    code, fields = problem["code"], problem["fields"]
    if code == "errno":
        template = SYSTEM_ERRORS.get(fields["name"])
        return Literal(fields["text"]) if template is None else Message(template)
    return Message(TEMPLATES[code], **{name: _field(name, value) for name, value in fields.items()})


def error_message(error: BaseException) -> Text:
    """Return the message of an error raised by the executor or the system."""
    return problem_message(problem_of(error).to_wire())


def result_message(result: Mapping[str, Any]) -> Text:
    """Return why a change or step failed, from its result."""
    problems = result.get("problems", ())
    if problems and all(problem["code"] in TEMPLATES for problem in problems):
        return clauses(problem_message(problem) for problem in problems)
    # Journals of envtune 0.1 contain only the English sentence, and a newer version may have more codes.
    return Literal(str(result["error"]))


def _field(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return problem_message(value)
    if name in _STATES:
        if value == "absent":
            return Message("absent")
        if isinstance(value, str) and value.startswith(_DIGEST):
            return value[: len(_DIGEST) + 12] + "…"  # short enough to read
    return value
