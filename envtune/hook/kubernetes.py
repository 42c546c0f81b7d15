"""A verdict for Kubernetes: the message of an init container, the condition of a node, the answer of a plugin."""

from __future__ import annotations

import json
import time
from typing import Any, Mapping, Optional

from envtune.hook.records import Verdict
from envtune.records import NamedTuple

CONDITION = "AscendTrainingProblem"  # True is a problem, as with all conditions of the node-problem-detector
_REASONS = {"False": "EnvtuneReady", "True": "EnvtuneCheckFailed", "Unknown": "EnvtuneNotChecked"}
_PLUGIN = {"False": 0, "True": 1, "Unknown": 2}  # ok, nonok, unknown
PLUGIN_LENGTH = 80  # max_output_length of a custom plugin, unless its configuration says more
MESSAGE_LENGTH = 4096  # of a container's termination message


class Answer(NamedTuple):
    """What is reported about the host: `status` of the condition, and one line."""

    status: str
    message: str

    @property
    def plugin_status(self) -> int:
        """The exit status of a custom plugin of the node-problem-detector."""
        return _PLUGIN[self.status]

    @property
    def plugin_line(self) -> str:
        """The message, cut to what is read of a custom plugin's output."""
        return shortened(self.message, PLUGIN_LENGTH)


def answer(verdict: Optional[Verdict], threshold: str, fault: str = "") -> Answer:
    """Return the answer for a verdict; without one, why there is none."""
    if verdict is None:
        return Answer("Unknown", f"unknown: {fault}")
    problems = verdict.problems(threshold)
    if problems:
        return Answer("True", f"{len(problems)} failed: {', '.join(problems)}")
    if not verdict.complete:
        return Answer("Unknown", f"unknown: {fault or 'not all checks were run in time'}")
    if not verdict.npu:
        return Answer("Unknown", "no Ascend NPU, driver or CANN found")
    if not verdict.is_decided:
        return Answer("Unknown", "unknown: no check applies here")
    unknown = sum(one.outcome in ("unknown", "error") for one in verdict.outcomes.values())
    return Answer("False", "no problems" + (f"; {unknown} checks unknown" if unknown else ""))


def condition(answered: Answer, before: Any, now: float) -> Mapping[str, str]:
    """Return the NodeCondition of the core/v1 API; the transition time is kept if the status is the same."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    same = isinstance(before, dict) and before.get("status") == answered.status
    changed = before.get("lastTransitionTime") if same else stamp
    return {
        "type": CONDITION,
        "status": answered.status,
        "reason": _REASONS[answered.status],
        "message": shortened(answered.message, 1024),
        "lastHeartbeatTime": stamp,
        "lastTransitionTime": changed if isinstance(changed, str) else stamp,
    }


def condition_text(data: Mapping[str, str]) -> str:
    """Return the condition as a file: one member per line, so that a shell script can read it without a JSON parser."""
    return json.dumps(data, indent=1, ensure_ascii=True) + "\n"


def shortened(text: str, most: int) -> str:
    """Return at most that many characters of a text, with dots if it was cut."""
    return text if len(text) <= most else text[: most - 3] + "..."
