"""The other hosts of the job: `--peer`, `--hostfile`, `$SLURM_JOB_NODELIST`; names become addresses here."""

from __future__ import annotations

import ipaddress
import re
import socket
from pathlib import Path
from typing import Iterable, Iterator, Optional, Sequence

from envtune.errors import UsageError
from envtune.messages import Bilingual, Message


def read_peers(named: Sequence[str], hostfile: Optional[Path], nodelist: str) -> tuple[str, ...]:
    """Addresses and networks of the peers, in the order given; what is named on the command line wins over Slurm.

    Raises UsageError for a name that has no address and for a file that cannot be read.
    """
    words = [word.strip() for part in named for word in part.split(",") if word.strip()]
    if hostfile is not None:
        from envtune.cli.reading import read_text

        words += parse_hostfile(read_text("--hostfile", hostfile, 1 << 24))
    elif not words and nodelist:
        words = list(expand_nodelist(nodelist))
    return tuple(dict.fromkeys(address for word in words for address in addresses(word)))


def parse_hostfile(text: str) -> list[str]:
    """The hosts of a hostfile of mpirun, DeepSpeed or horovod: one a line, `slots=8` or `:8` behind it."""
    hosts = []
    for line in text.splitlines():
        word = (line.partition("#")[0].split() or [""])[0]
        if word.count(":") == 1:
            word = word.partition(":")[0]
        if word:
            hosts.append(word)
    return hosts


def expand_nodelist(text: str) -> Iterator[str]:
    """`node[01-03,7],login` as names (Slurm's hostlist, several brackets a name allowed)."""
    for word in re.findall(r"(?:[^,\[\]]|\[[^\]]*\])+", text):
        yield from _expand(word.strip())


def _expand(word: str) -> Iterator[str]:
    found = re.match(r"([^\[]*)\[([^\]]*)\](.*)$", word)
    if found is None:
        yield word
        return
    for piece in found[2].split(","):
        first, dash, last = piece.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise UsageError(Message("{word}: not a list of nodes", word=word))
        end = int(last) if dash else int(first)
        if end - int(first) > 65536:
            raise UsageError(Message("{word}: too many nodes", word=word))
        for number in range(int(first), end + 1):
            yield from _expand(f"{found[1]}{number:0{len(first)}d}{found[3]}")


def addresses(word: str) -> Iterable[str]:
    """The word itself when it is an address or a network, else every address of the host it names."""
    try:
        network = ipaddress.ip_network(word, strict=False)
    except ValueError:
        return _resolve(word)
    if network.prefixlen == 0:
        raise UsageError(Message("--peer {word} is everybody", word=word))
    whole = network.prefixlen == network.max_prefixlen
    return [str(network.network_address) if whole else str(network)]


def _resolve(name: str) -> list[str]:
    try:
        rows = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "not a name"
        raise UsageError(Bilingual(f"peer {name}: {why}", f"对端 {name}：无法解析该名称")) from None
    return list(dict.fromkeys(str(row[4][0]).partition("%")[0] for row in rows))
