"""Which process of a job failed first, in sentences: shared by the text for a terminal and the Markdown."""

from __future__ import annotations

from typing import Iterator, Mapping

from envtune.messages import Literal, Message, Text
from envtune.ranks import claims, failures, root
from envtune.ranks.records import Process, Root, Verdict
from envtune.report.diagnosis.content import file_line, labelled, ranges
from envtune.report.layout import printable

MAX_CANDIDATES = 16  # processes that are listed

HEADING = Message("The process that failed first:")
CANDIDATES = Message("The logs do not show which process failed first. It is one of these:")
_WHY: Mapping[str, Text] = {
    failures.FAILED: Message("it failed with its own error"),
    failures.KILLED: Message("it was killed"),
    failures.REPORTED: Message("its launcher reports that it ended with an error"),
    claims.NOT_CONNECTED: Message("it did not connect to the others"),
    claims.LOST: Message("it stopped responding: its heartbeat was lost"),
    claims.LINK: Message("packets on one of its links were not acknowledged"),
    claims.TLS: Message("its TLS setting differs from the others'"),
    root.BEHIND: Message("it ran a different collective operation than the others"),
    root.LATE: Message("it arrived long after the others started waiting"),
    root.ITSELF: Message("its device waited for itself while others waited for it"),
    root.AWAITED: Message("the others waited for it"),
    root.SILENT: Message("it reports nothing while the others waited"),
    root.ENDED: Message("its log ends before those of the others"),
    root.NO_LOG: Message("these logs do not include its log"),
}


def about(job: Verdict) -> Iterator[tuple[Text, tuple[Text, ...]]]:
    """Yield headings with the lines below them; nothing for a single process."""
    if job.root is not None:
        yield HEADING, (_line(job.root),)
    elif job.candidates:
        more = len(job.candidates) - MAX_CANDIDATES
        lines = tuple(_line(own) for own in job.candidates[:MAX_CANDIDATES])
        yield CANDIDATES, (*lines, Literal(f"… ({more})")) if more > 0 else lines
    if job.missing:
        yield Message("Ranks that did not connect or have no log:"), (ranges(job.missing),)


def _line(own: Root) -> Text:
    note = own.note
    text = labelled(_name(own.process), _WHY[own.why])
    if note is None or note.number < 1:
        return text if own.file is None else Message("{text}  [{place}]", text=text, place=printable(own.file))
    return Message("{text}  [{place}]", text=text, place=file_line(note.path, note.number))


def _name(process: Process) -> Text:
    host = printable(process.host)
    if process.rank is not None:
        return (
            Message("rank {rank} on {host}", rank=process.rank, host=host) if host else Literal(f"rank {process.rank}")
        )
    if process.device is not None:
        return Message("device {device} of {host}", device=process.device, host=host)
    if process.pid is not None:
        return Message("process {pid}", pid=process.pid)
    return Message("host {host}", host=host) if host else Message("a process without a rank")
