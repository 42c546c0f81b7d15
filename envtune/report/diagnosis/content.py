"""What an answer says, apart from how it is laid out: shared by the text for a terminal and the Markdown."""

from __future__ import annotations

import re
from typing import Iterable, Iterator, Mapping, NamedTuple, Optional, Sequence

from envtune.diagnose.diagnosis import Diagnosis
from envtune.diagnose.rank import Candidate
from envtune.diagnose.scan import CONTEXT, Hit
from envtune.messages import Bilingual, Literal, Message, Text
from envtune.model import Finding, Outcome
from envtune.report.check_text import OUTCOMES
from envtune.report.diagnosis.placeholders import fill
from envtune.report.layout import printable

LINE = 420  # characters of a log line that are shown
FINDINGS = 6  # findings of one diagnosis that are told one by one

ATTACH = Message(
    "Attach the complete logs of all ranks, the plog of that run ($HOME/ascend/log) and the file that this writes:"
)
SNAPSHOT = "envtune snapshot -o host.tar.gz"


# ---------------------------------------------------------------------- the log


class Proof(NamedTuple):
    """The line that proves a diagnosis, cut around what matched, with its neighbours."""

    place: Text
    before: tuple[str, ...]
    line: str
    after: tuple[str, ...]


def proof(candidate: Candidate) -> Proof:
    """The best hit as it is shown."""
    hit = candidate.first
    at = _position(hit)
    before, after = hit.context[max(0, at - 2) : at], hit.context[at + 1 : at + 2]
    return Proof(_place(candidate), _shown(before), printable(_cut(hit)), _shown(after))


def _position(hit: Hit) -> int:
    """Where in its context the line itself stands: after at most CONTEXT lines before it."""
    places = [n for n, text in enumerate(hit.context[: CONTEXT + 1]) if text == hit.line.text]
    return places[-1] if places else len(hit.context)


def _shown(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(printable(line[:LINE]) for line in lines if line.strip())


def _cut(hit: Hit) -> str:
    """The line, or what is around the match in a long one."""
    text = hit.line.text
    if len(text) <= LINE:
        return text
    found = re.search(hit.pattern.regex, text)
    start = max(0, min(found.start() if found else 0, len(text)) - LINE // 3)
    piece = text[start : start + LINE]
    return ("… " if start else "") + piece + (" …" if start + LINE < len(text) else "")


def file_line(path: str, number: int) -> Text:
    """file:line, in words for standard input."""
    if path == "-":
        return Message("standard input, line {number}", number=number)
    return Literal(printable(f"{path}:{number}"))


def _place(candidate: Candidate) -> Text:
    """Where, how often, and in which other lines of that file."""
    hit = candidate.first
    place = file_line(hit.file.path, hit.line.number)
    own = {h.line.number for h in candidate.hits if h.file.path == hit.file.path} - {hit.line.number}
    lines = ", ".join(map(str, sorted(own)))
    more, plural = candidate.count - 1, "s" if len(own) > 1 else ""
    if not more:
        return place
    en = f"{place.en}, {candidate.count} times"
    zh = f"{place.zh}，共 {candidate.count} 次"
    return Bilingual(f"{en} (also line{plural} {lines})", f"{zh}（另见第 {lines} 行）") if lines else Bilingual(en, zh)


# ---------------------------------------------------------------------- ranks and hosts


def where(candidate: Candidate) -> Optional[Text]:
    """Which rank on which host, and which others say the same; None where nothing tells."""
    rank, host = candidate.rank, printable(candidate.host)
    parts: list[Text] = [Literal(f"rank {rank}")] if rank is not None else []
    if host:
        parts.append(Bilingual(f"on {host}" if parts else f"host {host}", f"主机 {host}"))
    if not parts:
        return None
    en, zh = " ".join(p.en for p in parts), "，".join(p.zh for p in parts)
    others = [number for number in candidate.ranks if number != rank]
    if others and candidate.entry.role == "cause":
        en, zh = f"{en} first; then rank {ranges(others)}", f"{zh} 最先出现；随后 rank {ranges(others)}"
    return Bilingual(en, zh)


def waited(candidate: Candidate) -> Optional[Text]:
    """For an entry that says another rank did not come: who waited, by host; None for others or where untold."""
    by_host: dict[str, set[int]] = {}
    for hit, rank in zip(candidate.hits, candidate.printed):
        if rank is not None:
            by_host.setdefault(hit.file.host, set()).add(rank)
    if candidate.entry.role != "waiting" or not by_host:
        return None
    en = [f"rank {ranges(ranks)}" + (f" on {printable(host)}" if host else "") for host, ranks in by_host.items()]
    zh = [(f"主机 {printable(host)} 的 " if host else "") + f"rank {ranges(ranks)}" for host, ranks in by_host.items()]
    return Bilingual(", ".join(en), "，".join(zh))


def ranges(numbers: Iterable[int]) -> str:
    """0, 1, 2, 5 as `0-2, 5`."""
    groups: list[list[int]] = []
    for number in sorted(set(numbers)):
        if groups and number == groups[-1][-1] + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    return ", ".join(str(g[0]) if len(g) == 1 else f"{g[0]}-{g[-1]}" for g in groups)


# ---------------------------------------------------------------------- the host


def here(diagnosis: Diagnosis) -> Text:
    """What the confirming checks say, in one sentence."""
    if diagnosis.history == "fixed" and diagnosis.cure is not None:
        when, run = diagnosis.cure.time, diagnosis.cure.run
        return Message("was confirmed, is fixed now: run {run} of envtune fix ({when})", run=run, when=when)
    if diagnosis.history == "before" and diagnosis.cure is not None:
        return Message(
            "was fixed already when this was logged (run {run}): the cause must be another one", run=diagnosis.cure.run
        )
    if diagnosis.verdict == "confirmed" and diagnosis.history == "again":
        return Message("confirmed again: it is so on the host that was asked")
    return _VERDICTS[diagnosis.verdict] if diagnosis.verdict != "unknown" else _unknown(diagnosis)


_VERDICTS: Mapping[str, Text] = {
    "confirmed": Message("confirmed: it is so on the host that was asked"),
    "refuted": Message("not so now: the log is of another host or job, or it has been repaired since"),
    "not_checked": Message("not checked"),
}


def _unknown(diagnosis: Diagnosis) -> Text:
    outcomes = {finding.outcome for finding in diagnosis.confirm}
    if outcomes <= {Outcome.NOTAPPLICABLE}:
        return Message("could not be told here: the checks for it do not apply to this host")
    if outcomes <= {Outcome.PASS, Outcome.NOTAPPLICABLE, Outcome.FIXED}:
        return Message("the checks of the host pass; that does not rule it out, its cause need not lie in the host")
    return Message("could not be told")


def unasked(diagnosis: Diagnosis) -> Optional[Text]:
    """Why the checks were not run although there are some: the failure was on another host. None otherwise."""
    if not diagnosis.elsewhere:
        return None
    host, ids = printable(diagnosis.candidate.host), ",".join(diagnosis.candidate.entry.confirm)
    return Message(
        "not checked: it failed on {host}, and this is {elsewhere}. There: envtune check --select {ids}",
        host=host,
        elsewhere=diagnosis.elsewhere,
        ids=ids,
    )


def findings(diagnosis: Diagnosis) -> tuple[tuple[Finding, Text], ...]:
    """The findings worth a line: what failed or was fixed, else what could not be told, else all."""
    every = diagnosis.confirm
    telling = [f for f in every if f.outcome in (Outcome.FAIL, Outcome.FIXED, Outcome.UNKNOWN, Outcome.ERROR)]
    shown = telling or [f for f in every if f.outcome is Outcome.PASS] or list(every)
    order = (Outcome.FAIL, Outcome.FIXED)
    shown.sort(key=lambda f: order.index(f.outcome) if f.outcome in order else len(order))
    return tuple((finding, _words(finding)) for finding in shown[:FINDINGS])


def _words(finding: Finding) -> Text:
    subject = f" {printable(finding.subject)}" if finding.subject else ""
    told = [text for text in (finding.actual, finding.reason) if text is not None]
    en = "; ".join([OUTCOMES[finding.outcome].en, *(printable(text.en) for text in told)])
    zh = "；".join([OUTCOMES[finding.outcome].zh, *(printable(text.zh) for text in told)])
    return Bilingual(f"{finding.id}{subject}: {en}", f"{finding.id}{subject}：{zh}")


# ---------------------------------------------------------------------- what to do


class Todo(NamedTuple):
    """Who acts (`label`), what they do, and the one command, which `explained` says something about."""

    label: Text
    words: Text
    command: str = ""
    explained: Optional[Text] = None


_LABELS: Mapping[str, Text] = {
    "host": Message("fix"),
    "code": Message("code"),
    "escalate": Message("ask"),
    "ignore": Message("fix"),
}


_LOOK = Message("Shows the repair; --apply makes it, envtune undo takes it back:")
_LOOK_THERE = Message(
    "On the host where it failed, this shows what can be repaired; --apply does it, envtune undo takes it back:"
)


def todo(diagnosis: Diagnosis, target: str) -> Todo:
    """The way out. `target` are the options that name the job, as they were given."""
    entry = diagnosis.candidate.entry
    words = fill(entry.remedy, diagnosis.candidate.groups)
    if diagnosis.history == "fixed" and diagnosis.cure is not None:
        explained = Message("Nothing is left to do here. To take the repair back:")
        return Todo(_LABELS["host"], words, f"envtune undo {diagnosis.cure.run}", explained)
    if entry.side == "escalate":
        return Todo(_LABELS["escalate"], words, SNAPSHOT, ATTACH)
    if entry.side == "host" and entry.confirm and diagnosis.verdict != "refuted":
        command = " ".join(word for word in ("envtune fix --faq", entry.id, target) if word)
        return Todo(_LABELS["host"], words, command, _LOOK if diagnosis.verdict == "confirmed" else _LOOK_THERE)
    return Todo(_LABELS[entry.side], words)


def others(diagnoses: Sequence[Diagnosis]) -> Iterator[tuple[str, Text, Text]]:
    """The diagnoses after the first: id, title, and where it stands with what the checks say."""
    for diagnosis in diagnoses:
        candidate = diagnosis.candidate
        rank, place = where(candidate), _place(candidate)
        verdict = None if diagnosis.verdict == "not_checked" else here(diagnosis)
        parts = [part for part in (rank, place, verdict) if part is not None]
        yield (
            candidate.entry.id,
            candidate.entry.title,
            Bilingual("; ".join(p.en for p in parts), "；".join(p.zh for p in parts)),
        )
