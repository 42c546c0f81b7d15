"""Whether the job's other hosts answer, at the first of HCCL's ports."""

from __future__ import annotations

from typing import Iterable

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import NotApplicable, Undetermined
from envtune.messages import Message, Text
from envtune.model import Command, Evidence, Reading
from envtune.resources.network.answers import (
    REACHED,
    answer_text,
    answers,
    is_undecided,
    may_connect,
    probe_command,
)
from envtune.resources.network.names import connect_command, host_addresses, is_address
from envtune.resources.network.ports import hccl_ports


@probe("network.peers")
def peers(context: Context) -> Iterable[Reading]:
    """Whether each host given with --peer or --hostfile responds (`answers`); unknown without --probe."""
    named = context.target.options.peers
    if not named:
        raise NotApplicable(Message("no other host of the job given (--peer, --hostfile)"), "--peer")
    own = host_addresses(context.host)
    others = tuple(address for address in named if is_address(address) and address not in own)
    readings = [_network(word) for word in named if not is_address(word)]
    if not others and not readings:
        raise NotApplicable(Message("the given peers are only this host"), "--peer", " ".join(named))
    if not others:
        return readings
    port = _port(context)
    if not may_connect(context):
        reason = Message(
            "whether the peers respond is unknown on this host; {command} connects to them",
            command=probe_command(context),
        )
        return [*readings, *(_unknown(address, port, reason) for address in others)]
    answered = answers(context, tuple((address, port) for address in others))
    return [*readings, *(_reading(address, port, answer) for (address, port), answer in answered.items())]


def _port(context: Context) -> int:
    """Return the first of HCCL's ports; raises Undetermined if the job's settings name none."""
    hccl = hccl_ports(context)
    if hccl.automatic:
        reason = Message("HCCL_HOST_SOCKET_PORT_RANGE=auto: the peers' ports are not known in advance")
        raise Undetermined(reason, hccl.evidence.source, hccl.evidence.text)
    if hccl.fault is not None:
        raise Undetermined(hccl.fault, hccl.evidence.source, hccl.evidence.text)
    return hccl.ports[0][0]


def _network(word: str) -> Reading:
    reason = Message("{network} is a network; only single hosts can be probed", network=word)
    return Reading(word, None, Evidence("--peer", word), reason=reason)


def _unknown(address: str, port: int, reason: Text) -> Reading:
    return Reading(address, None, Evidence("--peer", address), reason=reason, commands=_look(address, port))


def _reading(address: str, port: int, answer: str) -> Reading:
    words = Message("port {port}: {answer}", port=port, answer=answer_text(answer))
    evidence = Evidence(f"connect {address} {port}", words.en)
    if is_undecided(answer):
        return Reading(address, None, evidence, reason=words)
    value = "answers" if answer in REACHED else answer
    return Reading(address, value, evidence, words, Message("a response from the host"), commands=_look(address, port))


def _look(address: str, port: int) -> tuple[Command, ...]:
    return (Command("look", connect_command(address, port)),)
