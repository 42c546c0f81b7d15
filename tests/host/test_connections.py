"""What answers at an address: told by real sockets on loopback."""

from __future__ import annotations

import errno
import socket
import threading
from typing import Iterator

import pytest

from envtune.host import connections
from envtune.host.connections import connect_to


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_who_listens_accepts_and_gets_not_one_byte(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    got: list[bytes] = []

    def serve() -> None:
        one, _ = listener.accept()
        with one:
            got.append(one.recv(100))

    thread = threading.Thread(target=serve)
    thread.start()
    told = connect_to([("127.0.0.1", port), ("127.0.0.1", free := free_port())])
    thread.join(10)
    assert told == {("127.0.0.1", port): "accepted", ("127.0.0.1", free): "refused"}
    assert got == [b""]


def test_each_place_is_tried_once(listener: socket.socket) -> None:
    place = ("127.0.0.1", listener.getsockname()[1])
    assert connect_to([place, place]) == {place: "accepted"}
    listener.setblocking(False)
    listener.accept()[0].close()
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_many_places_are_tried_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PARALLEL", 3)
    port = free_port()
    places = [(f"127.0.0.{number}", port) for number in range(1, 20)]
    assert set(connect_to(places).values()) == {"refused"}


def test_what_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch, listener: socket.socket) -> None:
    """A full queue drops what comes in, as a packet filter does."""
    monkeypatch.setattr(connections, "TIMEOUT", 0.2)
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        place = ("127.0.0.1", full.getsockname()[1])
        waiting = [socket.socket() for _ in range(3)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(place)
        assert connect_to([place, ("127.0.0.1", listener.getsockname()[1])]) == {
            place: "timeout",
            ("127.0.0.1", listener.getsockname()[1]): "accepted",
        }
        for one in waiting:
            one.close()


def test_all_together_end_within_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LIMIT", 0.0)
    assert connect_to([("127.0.0.1", 9)]) == {("127.0.0.1", 9): "not-tried"}


def test_what_cannot_be_tried_is_told_in_the_words_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> socket.socket:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(connections.socket, "socket", refuse)
    assert connect_to([("127.0.0.1", 9)]) == {("127.0.0.1", 9): "Too many open files"}
