"""Whether something answers at an address: TCP connections that are opened and closed without sending data."""

from __future__ import annotations

import errno
import os
import selectors
import socket
import struct
import time
from typing import Iterable, Iterator, Mapping

TIMEOUT = 2.0  # seconds for one connection
LIMIT = 12.0  # seconds for all of them
PARALLEL = 256  # connections at the same time, well below the usual limit of 1024 open files
Place = tuple[str, int]  # address, port

ACCEPTED, REFUSED, REJECTED = "accepted", "refused", "rejected"
TIMED_OUT, NO_ROUTE, FORBIDDEN = "timeout", "no-route", "forbidden"
NOT_TRIED = "not-tried"

_TCP_INFO_SIZE, _SEGMENTS = 144, 136  # of struct tcp_info: tcpi_segs_out and tcpi_segs_in, since Linux 4.2
_NO_ROUTE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN)


def connect_to(places: Iterable[Place]) -> Mapping[Place, str]:
    """Try each address and port once, and return what answered.

    `accepted`, `refused` (by the host: nobody listens), `rejected` (an ICMP message instead of an answer: a packet
    filter), `timeout` (of TIMEOUT seconds), `no-route`, `forbidden` (this host may not send it), `not-tried` within
    LIMIT seconds, or the operating system's message for anything else.
    """
    waiting = list(dict.fromkeys(places))[::-1]
    found = dict.fromkeys(waiting, NOT_TRIED)
    end = time.monotonic() + LIMIT
    with selectors.DefaultSelector() as selector:
        while (waiting or selector.get_map()) and time.monotonic() < end:
            while waiting and len(selector.get_map()) < PARALLEL:
                place = waiting.pop()
                found[place] = _begin(selector, place)
            for place, answer in _ended(selector):
                found[place] = answer
        for key in list(selector.get_map().values()):
            selector.unregister(key.fileobj)
            key.fileobj.close()  # type: ignore[union-attr]
    return found


def _begin(selector: selectors.BaseSelector, place: Place) -> str:
    """Start a connection; the result comes later, unless it fails at once."""
    address, port = place
    try:
        one = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    except OSError as error:
        return error.strerror or str(error)
    one.setblocking(False)
    try:
        code = one.connect_ex((address, port))
    except OSError as error:
        code = error.errno or errno.EIO
    if code == errno.EINPROGRESS:
        selector.register(one, selectors.EVENT_WRITE, (place, time.monotonic() + TIMEOUT))
        return NOT_TRIED
    answer = _answer(one, code)
    one.close()
    return answer


def _ended(selector: selectors.BaseSelector) -> Iterator[tuple[Place, str]]:
    """Yield the connections that were answered or timed out, and close them."""
    left = [key.data[1] for key in selector.get_map().values()]
    if not left:
        return
    ready = {key.fd for key, _ in selector.select(max(0.0, min(left) - time.monotonic()))}
    now = time.monotonic()
    for key in list(selector.get_map().values()):
        place, deadline = key.data
        one = key.fileobj
        if not isinstance(one, socket.socket) or (key.fd not in ready and now < deadline):
            continue
        code = one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) if key.fd in ready else errno.ETIMEDOUT
        answer = _answer(one, code)
        selector.unregister(one)
        one.close()
        yield place, answer


def _answer(one: socket.socket, code: int) -> str:
    """Return the outcome of a connection attempt."""
    if code == 0:
        return ACCEPTED
    if code == errno.ECONNREFUSED:
        return REJECTED if _is_unanswered(one) else REFUSED
    if code == errno.ETIMEDOUT:
        return TIMED_OUT
    if code in _NO_ROUTE:
        return NO_ROUTE
    if code in (errno.EPERM, errno.EACCES):
        return FORBIDDEN
    return os.strerror(code)


def _is_unanswered(one: socket.socket) -> bool:
    """Return whether a segment was sent and none came back, although the connection was refused.

    Then it was refused by an ICMP message, as sent by REJECT in a packet filter; a host resets with a segment.
    """
    if not hasattr(socket, "TCP_INFO"):
        return False
    try:
        info = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_SIZE)
    except OSError:
        return False
    if len(info) < _TCP_INFO_SIZE:
        return False
    sent, received = struct.unpack_from("=II", info, _SEGMENTS)
    return bool(sent and not received)
