"""The words for verdicts of profiles and of observed jobs."""

from __future__ import annotations

from typing import Mapping, Optional, Sequence

from envtune.messages import Message, Text, enumerated
from envtune.profile.verdict import Bound
from envtune.ranges import join_subjects

BOUNDS: Mapping[Bound, Text] = {
    Bound.HOST: Message("host-bound"),
    Bound.COMMUNICATION: Message("communication-bound"),
    Bound.COMPUTE: Message("compute-bound"),
    Bound.DATA: Message("data-bound"),
    Bound.BALANCED: Message("balanced"),
    Bound.UNKNOWN: Message("no verdict"),
}
MEANINGS: Mapping[Bound, Text] = {
    Bound.HOST: Message("the NPU waits for the host to dispatch operators"),
    Bound.COMMUNICATION: Message("computing waits for communication between the ranks"),
    Bound.COMPUTE: Message("the NPU computes most of the time; the host does not limit the training"),
    Bound.DATA: Message("the training waits for its data"),
    Bound.BALANCED: Message("no part of the step stands out"),
    Bound.UNKNOWN: Message("the files do not show where the time of a step goes"),
}
COLOURS: Mapping[Bound, str] = {
    Bound.HOST: "red",
    Bound.COMMUNICATION: "yellow",
    Bound.COMPUTE: "green",
    Bound.DATA: "red",
    Bound.BALANCED: "green",
    Bound.UNKNOWN: "yellow",
}


def verdict_text(bound: Bound, likely: bool) -> Text:
    """Return the verdict in one sentence."""
    if bound is Bound.UNKNOWN:
        return Message("{verdict}: {meaning}", verdict=BOUNDS[bound], meaning=MEANINGS[bound])
    word: Text = Message("likely {verdict}", verdict=BOUNDS[bound]) if likely else BOUNDS[bound]
    return Message("{verdict}: {meaning}", verdict=word, meaning=MEANINGS[bound])


def ranks_text(ranks: Sequence[str]) -> Text:
    """Return ranks in a row, numbers that follow each other as a range."""
    names = join_subjects([f"rank{rank}" for rank in ranks]).split(", ")
    return enumerated(name.removeprefix("rank") for name in names)


def percent(share: Optional[float]) -> str:
    """Return a share as a person reads it; `-` where it is unknown."""
    if share is None:
        return "-"
    return f"{share:.0%}" if share >= 0.0995 or share == 0 else f"{share * 100:.1f}%"
