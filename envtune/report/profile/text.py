"""Render what profiles say: the verdict, a line for each rank, what costs time with its advice, the host, the notes."""

from __future__ import annotations

from typing import Iterator, Mapping, Optional, Sequence

from envtune.messages import Literal, Message, Text, in_context, plural
from envtune.profile.analyze import ProfileReport
from envtune.profile.evidence import Evidence
from envtune.profile.explain import Explanation
from envtune.profile.kinds import named
from envtune.profile.verdict import Bound, RankVerdict, SlowRank
from envtune.report.layout import Paint, display_width, indent, pad, printable, shown, wrap
from envtune.report.profile.host import host_lines
from envtune.report.profile.words import BOUNDS, COLOURS, percent, ranks_text, verdict_text

MAX_UNREAD = 5
_PARTS: Mapping[str, Text] = {
    "computing": Message("computing"),
    "communication": Message("communication"),
    "bubble": Message("bubble"),
    "free": in_context("part of a step", "free"),
    "preparing": Message("preparing"),
    "tail": Message("tail"),
}
# An iteration of a graph has other parts than a step of torch_npu.
_GRAPH: Mapping[str, Text] = {
    "free": Message("gap"),
    "computing": Message("forward, backward"),
    "tail": Message("tail"),
}


def render(
    report: ProfileReport, explanation: Optional[Explanation], lang: str, *, width: int = 100, colour: bool = False
) -> str:
    """Return the report in `lang`, at most `width` columns wide but for lines to paste."""
    paint = Paint(colour)
    parts = [
        *_verdicts(report, lang, width, paint),
        list(_slow(report.slow, lang, width)),
        list(_evidence(report, lang, width, paint)),
        [] if explanation is None else list(host_lines(explanation, report.bound, lang, width, paint)),
        list(_notes(report, lang, width)),
        list(_unread(report, lang, width)),
        list(_deeper(report, lang, width)),
    ]
    return "\n".join("\n".join(line.rstrip() for line in lines) for lines in parts if lines) + "\n"


def _verdicts(report: ProfileReport, lang: str, width: int, paint: Paint) -> Iterator[list[str]]:
    """Yield the verdict and the table of the ranks; those of each kind of profiles where they are mixed."""
    if len(report.kinds) < 2:
        yield _head(verdict_text(report.bound, report.likely), report.bound, lang, width, paint)
        yield _table(report.ranks, lang, paint)
        return
    for kind in report.kinds:
        verdict = verdict_text(kind.bound, kind.likely)
        text = Message("{name}: {text}", name=named(kind.profiler), text=verdict)
        yield _head(text, kind.bound, lang, width, paint)
        yield _table(kind.ranks, lang, paint)


def _head(text: Text, bound: Bound, lang: str, width: int, paint: Paint) -> list[str]:
    return [paint(line, "bold", COLOURS[bound]) for line in wrap(shown(text, lang), width)]


def _table(ranks: Sequence[RankVerdict], lang: str, paint: Paint) -> list[str]:
    """Return a line for each rank; columns that are zero for all are left out."""
    if not ranks:
        return []
    graph = all(one.steps.mean.gap is not None for one in ranks)
    names = _GRAPH if graph else _PARTS
    used = [name for name in names if graph or any(one.steps.share(name) > 0 for one in ranks)]
    heading = [
        Message("rank").to(lang),
        *(names[name].to(lang) for name in used),
        Message("step").to(lang),
        Message("steps").to(lang),
        Message("verdict").to(lang),
    ]
    rows = [_cells(one, used, lang) for one in ranks]
    widths = [max(display_width(row[at]) for row in (heading, *rows)) for at in range(len(heading))]
    lines = [paint(_line(heading, widths), "bold")]
    return lines + [_line(row, widths) for row in rows]


def _cells(one: RankVerdict, used: Sequence[str], lang: str) -> list[str]:
    steps = one.steps
    word: Text = BOUNDS[one.bound]
    if one.waits:
        word = Message("{verdict}, waits for another stage", verdict=word)
    return [
        printable(steps.rank),
        *(percent(steps.share(name)) for name in used),
        f"{steps.mean.total / 1e3:.1f} ms",
        str(steps.number),
        word.to(lang),
    ]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(pad(cell, width) for cell, width in zip(cells, widths))


def _slow(slow: Optional[SlowRank], lang: str, width: int) -> Iterator[str]:
    if slow is None:
        return
    fields = {"rank": slow.rank, "share": percent(slow.excess), "others": ranks_text(slow.waiting)}
    if not slow.certain:
        text = Message(
            "Likely slow rank: {rank}. Its work takes longer than that of the others here by {share} of a step; "
            "ranks are missing, and a slower one may be among them.",
            **fields,
        )
    elif slow.bound is Bound.HOST:
        text = Message(
            "Slow rank: {rank}. Its host takes longer than those of the others by {share} of a step; ranks {others} "
            "wait for it in communication. Check the host of this rank.",
            **fields,
        )
    else:
        text = Message(
            "Slow rank: {rank}. Its kernels take longer than those of the others by {share} of a step; ranks "
            "{others} wait for it in communication.",
            **fields,
        )
    yield from wrap(shown(text, lang), width)


def _evidence(report: ProfileReport, lang: str, width: int, paint: Paint) -> Iterator[str]:
    major = [one for one in report.evidence if one.major]
    minor = [one for one in report.evidence if not one.major]
    if major:
        yield paint(shown(Message("What takes the time:"), lang), "bold")
    for one in major:
        first = pad("  " + _share(one, lang), 8) + " "
        room = " " * display_width(first)
        yield from indent(shown(_statement(one, report), lang), width, first, room)
        yield from indent(shown(Message("advice: {advice}", advice=one.advice), lang), width, room, room)
        yield from indent(shown(Message("source: {source}", source=one.source), lang), width, room, room)
    if minor:
        yield from wrap(shown(Message("Too small for advice:"), lang), width)
    for one in minor:
        first = pad("  " + _share(one, lang), 8) + " "
        yield from indent(shown(_statement(one, report), lang), width, first, " " * display_width(first))


def _share(one: Evidence, lang: str) -> str:
    return percent(one.share)


def _statement(one: Evidence, report: ProfileReport) -> Text:
    text: Text = Message("{title}: {detail}", title=one.title, detail=one.detail)
    if one.of == "kernels":
        text = Message("{text} (share of the kernels, not of the step)", text=text)
    elif one.share is None:
        text = Message("{text} (share of the step unknown)", text=text)
    if len(report.ranks) < 2 or not one.ranks:
        return text
    if len(one.ranks) == 1:
        return Message("{text}; rank {rank}", text=text, rank=one.rank)
    return Message("{text}; ranks {ranks}, most on {rank}", text=text, ranks=ranks_text(one.ranks), rank=one.rank)


def _notes(report: ProfileReport, lang: str, width: int) -> Iterator[str]:
    for note in report.notes:
        yield from indent(shown(note, lang), width, "- ", "  ")


def _unread(report: ProfileReport, lang: str, width: int) -> Iterator[str]:
    if report.unread:
        text: Text = plural("{count} file was not read:", "{count} files were not read:", len(report.unread))
        yield shown(text, lang)
    for file in report.unread[:MAX_UNREAD]:
        yield from indent(
            shown(Message("{path}: {reason}", path=file.path, reason=file.reason), lang), width, "  ", "    "
        )
    if len(report.unread) > MAX_UNREAD:
        yield "  ..."


def _deeper(report: ProfileReport, lang: str, width: int) -> Iterator[str]:
    """Yield the command of msprof-analyze that goes deeper into this verdict."""
    ranks = [one for one in report.ranks if one.steps.mean.gap is None]
    if report.bound is Bound.UNKNOWN or (report.ranks and not ranks):
        return
    command = "msprof-analyze cluster -m all -d DIR" if len(ranks) > 1 else "msprof-analyze advisor all -d DIR"
    yield from wrap(shown(Message("For more detail: {command}", command=Literal(command)), lang), width)
