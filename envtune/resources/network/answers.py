"""What answers at the hosts of the job, if the user allowed connecting to them (`check --probe`).

Only TCP connections to ports of the job (host/connections.py); no data is sent over them.
"""

from __future__ import annotations

from typing import Mapping

from envtune.commandline import WithheldError, for_this_host, line
from envtune.context import Context
from envtune.messages import Literal, Message, Text

ACCEPTED, REFUSED = "accepted", "refused"
REACHED = (ACCEPTED, REFUSED)  # the host itself answered
Place = tuple[str, int]  # address, port

_WORDS: Mapping[str, Text] = {
    ACCEPTED: Message("accepts connections"),
    REFUSED: Message("connection refused: the host is reachable, but nothing listens there yet"),
    "rejected": Message("rejected by a firewall on the way"),
    "timeout": Message("no response in 2 s: a firewall drops it, or the host is down"),
    "no-route": Message("no route to the host: it is down, not in a network of this host, or rejected by a firewall"),
    "forbidden": Message("blocked by this host's own firewall"),
    "not-tried": Message("not tried: the connections to the other hosts took 12 s"),
}


def may_connect(context: Context) -> bool:
    """Return whether the user allowed connections to the hosts of the job."""
    return context.target.options.probe and context.host.live


def answers(context: Context, places: tuple[Place, ...]) -> Mapping[Place, str]:
    """Return what answers at each place: a key of `answer_text`, tried once per run."""
    return context.cached(_connect, places)


def _connect(_: Context, places: tuple[Place, ...]) -> Mapping[Place, str]:
    from envtune.host.connections import connect_to

    return connect_to(places)


def answer_text(answer: str) -> Text:
    """Return what the answer means; other messages of the operating system unchanged."""
    return _WORDS.get(answer) or Literal(answer)


def is_undecided(answer: str) -> bool:
    """Return whether the answer says nothing about the other host: not tried, or this host could not."""
    return answer == "not-tried" or answer not in _WORDS


def probe_command(context: Context) -> Text:
    """Return the command that probes the other hosts."""
    words = ("envtune", "check", "--probe")
    if not context.host.live:
        return Literal(line(words))
    try:
        return Literal(for_this_host(line((*words, *context.target.options.words))))
    except WithheldError as error:
        return error.reason
