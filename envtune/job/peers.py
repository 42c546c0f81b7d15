"""Read the other hosts of the job from `--peer`, `--hostfile` and `$SLURM_JOB_NODELIST`, and resolve their names."""

from __future__ import annotations

import ipaddress
import itertools
import math
import re
import socket
from pathlib import Path
from typing import Iterable, Iterator, Optional, Sequence

from envtune.errors import UsageError
from envtune.messages import Message
from envtune.ranges import decimal

MAX_NODES = 65536  # of a hostlist


def read_peers(named: Sequence[str], hostfile: Optional[Path], nodelist: str) -> tuple[str, ...]:
    """Return addresses and networks of the peers, in the given order; the command line takes precedence over Slurm.

    Raises UsageError for a name that has no address, for `--peer` without a name and for a file that cannot be read.
    """
    words = [word.strip() for part in named for word in part.split(",") if word.strip()]
    if named and not words:  # from a script whose variable is empty
        raise UsageError(Message("{option} names no host; to name no peers, omit the option", option="--peer"))
    if hostfile is not None:
        from envtune.host.text_file import read_text_file

        words += parse_hostfile(read_text_file("--hostfile", hostfile, 1 << 24))
    elif not words and nodelist:
        words = list(expand_nodelist(nodelist))
    if len(words) > MAX_NODES:
        raise UsageError(Message("more than {limit} peers", limit=MAX_NODES))
    return tuple(dict.fromkeys(address for word in words for address in addresses(word)))


def parse_hostfile(text: str) -> list[str]:
    """Return the hosts of a hostfile of mpirun, DeepSpeed or horovod: one per line, followed by `slots=8` or `:8`."""
    hosts = []
    for line in text.splitlines():
        word = (line.partition("#")[0].split() or [""])[0]
        if word.count(":") == 1:
            word = word.partition(":")[0]
        if word:
            hosts.append(word)
    return hosts


def expand_nodelist(text: str) -> Iterator[str]:
    """Yield the names of `node[01-03,7],login` (Slurm's hostlist; a name may have several brackets)."""
    left = MAX_NODES
    for word in re.findall(r"(?:[^,\[\]]|\[[^\[\]]*\])+", text):
        for name in _expand(word.strip()):
            left -= 1
            if left < 0:
                raise UsageError(Message("{word}: too many nodes", word=word))
            yield name


def _expand(word: str) -> Iterator[str]:
    """Yield the names in one word; every second part of it is in brackets."""
    parts = re.split(r"\[([^\[\]]*)\]", word)
    choices = [_numbers(part, word) if number % 2 else [part] for number, part in enumerate(parts)]
    if math.prod(map(len, choices)) > MAX_NODES:
        raise UsageError(Message("{word}: too many nodes", word=word))
    return map("".join, itertools.product(*choices))


def _numbers(inside: str, word: str) -> list[str]:
    """Return the numbers of `01-03,7`, keeping their width."""
    numbers: list[str] = []
    for piece in inside.split(","):
        first, dash, last = piece.partition("-")
        if decimal(first) is None or (dash and decimal(last) is None):
            raise UsageError(Message("{word}: not a list of nodes", word=word))
        end = int(last) if dash else int(first)
        if end - int(first) + len(numbers) > MAX_NODES:
            raise UsageError(Message("{word}: too many nodes", word=word))
        numbers += [f"{number:0{len(first)}d}" for number in range(int(first), end + 1)]
    return numbers


def addresses(word: str) -> Iterable[str]:
    """Return the word itself if it is an address or a network, else every address of the host it names."""
    try:
        network = ipaddress.ip_network(word, strict=False)
    except ValueError:
        return _resolve(word)
    if network.prefixlen == 0:
        raise UsageError(Message("--peer {word} matches every host", word=word))
    is_address = network.prefixlen == network.max_prefixlen
    return [str(network.network_address) if is_address else str(network)]


def _resolve(name: str) -> list[str]:
    try:
        rows = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "not a name"
        raise UsageError(Message("peer {name}: {reason}", name=name, reason=reason)) from None
    return list(dict.fromkeys(str(row[4][0]).partition("%")[0] for row in rows))
