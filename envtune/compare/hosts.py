"""A host in a comparison: a unique label, its report, and its facts without what identifies the host.

Two nodes of a job differ in their names and addresses but may otherwise be identical: in a value that only one of them
has, the host's own name and addresses are replaced by `<host>` and `<address>`.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from typing import Mapping, Optional, Sequence

from envtune.audit.settings import ADDRESSES, PACKAGE, PACKAGES, VARIABLE, VARIABLES
from envtune.compare.folding import LONGEST
from envtune.messages import Message, Text
from envtune.model import Evidence, Fact, Report
from envtune.records import NamedTuple

OWN_NAME, OWN_ADDRESS = "<host>", "<address>"
MOST_ADDRESSES = 256  # of one host
LONGEST_TEXT = 1 << 16  # characters that are searched for them
_MARKERS = {VARIABLE: VARIABLES, PACKAGE: PACKAGES}
_NO_ADDRESS = frozenset(("0.0.0.0", "::", "::1"))
_NOTHING = re.compile(r"(?!)")


class HostReport(NamedTuple):
    """One of the hosts: its label, the source it was read from, its report, and its facts by name."""

    label: str
    source: str
    report: Report
    facts: Mapping[str, Fact]
    own: re.Pattern[str]  # its name, and its addresses


class Value(NamedTuple):
    """A fact of one host: `text` as read, None if there is none; `own` without what identifies the host.

    `reason` says why it is unknown.
    """

    text: Optional[str]
    own: Optional[str]
    reason: Optional[Text] = None


class Unread(NamedTuple):
    """A snapshot that could not be checked."""

    source: str
    reason: Text


def labelled(read: Sequence[tuple[str, Report]]) -> tuple[HostReport, ...]:
    """Return the hosts by (source, report), each with a unique label: its name if that is unique."""
    names = Counter(report.host for _, report in read)
    files = Counter((report.host, posixpath.basename(source)) for source, report in read)
    found = []
    for source, report in read:
        label, base = report.host, posixpath.basename(source)
        if names[label] > 1:
            label = f"{label} ({base if files[label, base] == 1 else source})"
        facts = {fact.name: fact for fact in report.facts}
        found.append(HostReport(label, source, report, facts, _own(report.host, facts.get(ADDRESSES))))
    return tuple(found)


def lean(report: Report) -> Report:
    """Return the report without the raw text of its evidence: hundreds of reports are kept at once."""
    findings = (f._replace(evidence=Evidence(f.evidence.source), commands=()) for f in report.findings)
    return report._replace(findings=tuple(findings))


def _own(name: str, addresses: Optional[Fact]) -> re.Pattern[str]:
    """Return the expression that finds the name of a host and its addresses in a text.

    A name without a digit may be any word of a path (`train`), and one that is too long is not a host name.
    """
    names = {name, name.partition(".")[0]} if len(name) <= LONGEST else set()
    kept = sorted((re.escape(n) for n in names if re.search(r"[0-9]", n) and re.search(r"[A-Za-z]", n)), reverse=True)
    words = (addresses.value or "").split() if addresses is not None else []
    own = [re.escape(w) for w in words[:MOST_ADDRESSES] if w not in _NO_ADDRESS and not w.startswith("127.")]
    parts = [rf"(?<![\w-])(?P<name>{'|'.join(kept)})(?![\w-])"] if kept else []
    parts += [rf"(?<![\w.:])(?:{'|'.join(own)})(?![\w:]|\.[0-9])"] if own else []
    return re.compile("|".join(parts)) if parts else _NOTHING


def without_own(host: HostReport, text: str) -> str:
    """Return the text with the host's own name and addresses replaced; a text that is too long unchanged."""
    return (
        text
        if len(text) > LONGEST_TEXT
        else host.own.sub(lambda found: OWN_NAME if found.lastgroup == "name" else OWN_ADDRESS, text)
    )


def value(host: HostReport, name: str) -> Value:
    """Return a fact, variable or package of a host; name and version of the system are one fact, `os`."""
    found = text_of(host, name)
    if found is not None:
        return Value(found, found if name == "os" else without_own(host, found))
    fact = _fact(host, name)
    return Value(None, None, None if fact is None else fact.reason or Message("no reason given"))


def text_of(host: HostReport, name: str) -> Optional[str]:
    """Return the text of such a value; None if there is none or it is unknown."""
    fact = _fact(host, name)
    version = host.facts.get("os_version") if name == "os" else None
    if fact is None or fact.value is None or version is None or not version.value:
        return None if fact is None else fact.value
    return f"{fact.value} {version.value}"


def _fact(host: HostReport, name: str) -> Optional[Fact]:
    return host.facts.get(name) or host.facts.get(_MARKERS.get(name.partition(":")[0] + ":", ""))
