"""Reports for the tests of the formats: recorded hosts, one with hostile texts, one in which envtune itself failed."""

from __future__ import annotations

from functools import cache
from typing import Optional

from envtune.messages import Literal
from envtune.model import Evidence, Outcome, Report
from envtune.report.formats.view import ReportView, Settings, view
from helpers.recorded import host_names, recorded_report

TROUBLED = "910b-openeuler2203-troubled"
# Text of a host that each of the formats could take for its own syntax.
HOSTILE = (
    '</script></pre><script>document.title="owned"</script><img src=x onerror=alert(1)> {{ 7*7 }} "]]>&|`x`\\ \n'
    '# HELP x y\n{a="b"} 1\n@someone $(reboot) \x1b[2J \u202e'
)
HOSTILE_SOURCE = "/etc/x y<&>\"'%"
CASES = ("hostile", "defective", *host_names())


@cache
def made(name: str) -> Report:
    """The report of one of CASES."""
    if name == "hostile":
        return _hostile()
    return _defective() if name == "defective" else recorded_report(name)


def seen(which: Report, lang: str = "en", settings: Optional[Settings] = None) -> ReportView:
    return view(which, lang, settings or Settings())


@cache
def seen_case(name: str, lang: str = "en", settings: Optional[Settings] = None) -> ReportView:
    """The same of one of CASES."""
    return seen(made(name), lang, settings)


def _hostile() -> Report:
    """The troubled host, where every text that was read is as bad as it can be."""
    changed = []
    for finding in made(TROUBLED).findings:
        actual = None if finding.actual is None else Literal(HOSTILE)
        reason = None if finding.reason is None else Literal(HOSTILE)
        evidence = Evidence(HOSTILE_SOURCE, HOSTILE)
        changed.append(finding._replace(actual=actual, reason=reason, subject=HOSTILE, evidence=evidence))
    return made(TROUBLED)._replace(findings=tuple(changed), host='no"de\n<b>18')


def _defective() -> Report:
    """A run in which envtune itself failed in one check, and another one is waived."""
    outcomes = {
        "NET003": (Outcome.ERROR, Literal("envtune itself failed here")),
        "NET005": (Outcome.WAIVED, Literal("known, ticket 4711")),
    }
    changed = []
    for finding in made(TROUBLED).findings:
        outcome, reason = outcomes.get(finding.id, (finding.outcome, finding.reason))
        changed.append(finding._replace(outcome=outcome, reason=reason))
    return made(TROUBLED)._replace(findings=tuple(changed))
