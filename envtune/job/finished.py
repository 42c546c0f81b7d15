"""The environment of a finished job, as noted by its profiler: profiler_metadata.json of torch_npu.

The profiler notes a few variables by name, with an empty string for one that is not set (torch_npu/profiler,
collect_env_vars: `os.environ.get(name, "")`). Every other variable of that job is unknown.
"""

from __future__ import annotations

from typing import Optional

from envtune.host.json import parse_json
from envtune.job.target import JobEnvironment
from envtune.messages import Message, Text

KEY = "ENV_VARIABLES"


def is_json(text: str) -> bool:
    """Return whether an env file is a JSON document: no line `KEY=VALUE` begins with a brace."""
    return text.lstrip("\ufeff \t\r\n").startswith("{")


def finished_environment(path: str, text: str) -> JobEnvironment:
    """Return the variables noted by the profiler of a finished job; nothing else is known about that job."""
    noted = _noted(text)
    if noted is None:
        reason = Message("{path} is JSON but not a profiler_metadata.json: it has no {key}", path=path, key=KEY)
        return JobEnvironment(None, path, reason)
    known = {name: value for name, value in noted.items() if value}
    return JobEnvironment(
        known,
        Message("a finished job ({path})", path=path),
        unknown_by_default=_not_noted(path),
        places=dict.fromkeys(known, path),
        unset=frozenset(noted) - frozenset(known),
        finished=True,
    )


def _noted(text: str) -> Optional[dict[str, str]]:
    try:
        document = parse_json(text.lstrip("\ufeff"))
    except ValueError:
        return None
    noted = document.get(KEY) if isinstance(document, dict) else None
    if not isinstance(noted, dict):
        return None
    return {name: value for name, value in noted.items() if isinstance(value, str)}


def _not_noted(path: str) -> Text:
    return Message("the profiler did not record it in {path}", path=path)
