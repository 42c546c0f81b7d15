"""Write a policy from a golden host: its facts as golden values, and what fails there as comments."""

from __future__ import annotations

import json
import re
from typing import Iterable, Iterator

from envtune.messages import Joined, Message, Text
from envtune.model import Fact, Outcome, Report
from envtune.policy.forms import SCHEMA
from envtune.ranges import join_subjects

# Facts that hosts of one kind share. Others follow from these, or depend on how envtune was started.
FACTS = (
    *("arch", "os", "os_version", "kernel", "cpus", "npu", "npu_count", "driver", "firmware"),
    *("cann", "python", "torch", "torch_npu"),
)
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*(?: [A-Za-z0-9._+-]+)*")
_WORDS = frozenset(("true", "false", "null", "yes", "no", "on", "off"))


def policy_text(report: Report, lang: str) -> str:
    """Return the policy that this host meets, with comments in `lang`."""
    return "\n".join(_lines(report, lang)) + "\n"


def _lines(report: Report, lang: str) -> Iterator[str]:
    made = Message("envtune site policy, created from {host} on {day}.", host=report.host, day=report.started[:10])
    yield from _comment(made, lang)
    yield f"schema: {SCHEMA}"
    yield ""
    yield from _comment(
        Message(
            "Golden values: the check POL001 reports the facts of a host that differ.\n"
            "A value may also be a list of accepted values, or a matcher such as {matches: '5\\.10\\..*'}."
        ),
        lang,
    )
    known = {fact.name: fact for fact in report.facts}
    yield "facts:"
    yield from _facts(known[name] for name in FACTS if name in known)
    yield from _failures(report, lang)


def _facts(facts: Iterable[Fact]) -> Iterator[str]:
    for fact in facts:
        if fact.value is None:
            reason = "" if fact.reason is None else " ".join(fact.reason.en.split())
            yield f"  # {fact.name}: {json.dumps(reason)}"
        else:
            yield f"  {fact.name}: {scalar(fact.value)}"


def scalar(text: str) -> str:
    """Return a text as a YAML scalar."""
    return text if _PLAIN.fullmatch(text) and text.lower() not in _WORDS else json.dumps(text, ensure_ascii=False)


def _failures(report: Report, lang: str) -> Iterator[str]:
    """Yield what fails on this host: it is reported on every host like it until it is fixed or waived."""
    failed = [finding for finding in report.findings if finding.outcome is Outcome.FAIL]
    if not failed:
        return
    yield ""
    yield from _comment(
        Message(
            "These checks fail on this host and are still reported. Fix them (envtune fix), or accept a finding for a\n"
            "time with an entry under `waivers`, which needs check, reason, owner and expires:"
        ),
        lang,
    )
    subjects: dict[str, list[str]] = {}
    titles = {finding.id: finding.check.title for finding in failed}
    for finding in failed:
        subjects.setdefault(finding.id, []).extend([finding.subject] if finding.subject else [])
    for check, names in subjects.items():
        about = f"[{join_subjects(names)}] " if names else ""
        yield from _comment(Joined((f"  {check} {about}", titles[check]), ""), lang)


def _comment(text: Text, lang: str) -> Iterator[str]:
    for line in text.to(lang).splitlines():
        yield "# " + "".join(letter if letter.isprintable() else "?" for letter in line)
