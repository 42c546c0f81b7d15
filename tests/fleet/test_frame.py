"""What is found in the output of a host, whatever is around it, and what a collection amounts to."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import pytest

from envtune.collector.frame import FRAME_LIMIT, find_job, framed, packed_for_frame
from envtune.fleet.collected import Answer, Collection, collection_verdict
from envtune.fleet.frame import FrameState, each_frame, find_frame
from envtune.fleet.program import Job, collector_program, remote_command
from envtune.snapshot.open import read_snapshot

FRAME = framed(b"the packed snapshot of a host" * 20)


@pytest.mark.parametrize(
    "output",
    [
        FRAME,
        b"Welcome\n" + FRAME,
        b"no line end" + FRAME + b"logout\n",
        b"@@ENVTUNE/1 12 0123456789abcdef\nshort\n@@END\n" + FRAME,
    ],
    ids=["alone", "behind a banner", "between others", "behind a damaged one"],
)
def test_a_frame_is_found_among_other_output(output: bytes) -> None:
    found = find_frame(output)
    assert found == (FrameState.COMPLETE, b"the packed snapshot of a host" * 20)


@pytest.mark.parametrize(
    ("output", "state"),
    [
        (b"", FrameState.NONE),
        (b"bash: command not found\n", FrameState.NONE),
        (FRAME[:100], FrameState.TRUNCATED),
        (FRAME[:-8], FrameState.TRUNCATED),
        (FRAME.replace(b"@@END", b"@@EMD"), FrameState.CORRUPT),
        (FRAME.replace(FRAME[60:64], b"zzzz"), FrameState.CORRUPT),
        (b"@@ENVTUNE/1 99999999 0123456789abcdef\n" + b"x" * 1000, FrameState.CORRUPT),
        (b"@@ENVTUNE/1 too_old 3.5\n", FrameState.TOO_OLD),
    ],
)
def test_what_is_no_whole_frame_is_said_to_be_none(output: bytes, state: FrameState) -> None:
    assert find_frame(output).state is state


def test_every_change_of_a_byte_is_noticed() -> None:
    chosen = random.Random(1)
    for _ in range(300):
        place = chosen.randrange(1, len(FRAME) - 1)
        changed = FRAME[:place] + bytes([FRAME[place] ^ (1 << chosen.randrange(7))]) + FRAME[place + 1 :]
        found = find_frame(changed)
        assert found.state is not FrameState.COMPLETE or found.snapshot == b"the packed snapshot of a host" * 20


def test_frames_one_after_the_other() -> None:
    assert [frame.state.value for frame in each_frame(FRAME + b"x" + FRAME[:200])] == ["complete", "truncated"]


@pytest.mark.parametrize(
    ("status", "errors", "verdict"),
    [
        (255, "ssh: connect to host a port 22: Connection refused", "refused"),
        (255, "kex_exchange_identification: Connection closed by remote host", "refused"),
        (255, "ssh: connect to host a port 22: Connection timed out", "timeout"),
        (255, "Connection timed out during banner exchange", "timeout"),
        (255, "ssh: connect to host a port 22: No route to host", "timeout"),
        (255, "ssh: Could not resolve hostname a: Name or service not known", "dns"),
        (255, "Host key verification failed.", "hostkey"),
        (255, "No ED25519 host key is known for a and you have requested strict checking.", "hostkey"),
        (255, "u@a: Permission denied (publickey).", "auth"),
        (1, "sudo: a password is required", "auth"),
        (127, "sh: 1: timeout: not found", "no_python"),
        (127, "timeout: failed to run command 'python3': No such file or directory", "no_python"),
        (124, "", "timeout"),
        (137, "Killed", "timeout"),
        (None, "", "timeout"),
        (0, "", "garbage"),
        (1, "Traceback (most recent call last):", "garbage"),
    ],
)
def test_the_collection_verdict(status: Any, errors: str, verdict: str) -> None:
    answer = Answer(b"", errors.encode(), status, 0.1)
    found = collection_verdict(answer, find_frame(answer.output))
    assert found.collection.value == verdict
    assert found.detail == errors


def test_a_changed_host_key_is_refused_even_where_ssh_went_on() -> None:
    errors = b"@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n"
    assert collection_verdict(Answer(FRAME, errors, 0, 0.1), find_frame(FRAME)).collection is Collection.HOSTKEY


def test_the_program_records_this_host() -> None:
    program = collector_program(Job(name="no-such-job'\"\\\n"))
    done = subprocess.run([sys.executable, "-I", "-"], input=program, capture_output=True)
    found = find_frame(done.stdout)
    assert (found.state, done.stderr) == (FrameState.COMPLETE, b"")
    assert len(done.stdout) < FRAME_LIMIT + 100
    import io

    target = read_snapshot(io.BytesIO(found.snapshot), "here").data["target"]
    assert target == {"job": "no-such-job'\"\\\n"}


def test_what_runs_on_the_host() -> None:
    assert remote_command(60, False) == "timeout -k 5 60 python3 -I -"
    assert remote_command(60, True) == "sudo -n timeout -k 5 60 python3 -I -"


def test_a_large_snapshot_fits_and_says_what_is_missing() -> None:
    noise = random.Random(2)
    text = "".join(chr(noise.randrange(33, 127)) for _ in range(200_000))
    snapshot = {
        "schema": "envtune.snapshot/1",
        "now": 1.0,
        "files": {"/etc/small": {"text": "1"}, "/etc/large": {"text": text}},
        "commands": [{"argv": ["npu-smi", "info"], "rc": 0, "stdout": text[:90_000], "stderr": ""}],
        "processes": [{"pid": n, "ppid": 1, "name": text[n * 9 : n * 9 + 9], "user": "root"} for n in range(5000)],
    }
    data = packed_for_frame(snapshot)
    assert len(framed(data)) < FRAME_LIMIT + 100
    import io

    host = read_snapshot(io.BytesIO(data), "large")
    assert host.data["files"]["/etc/large"] == {"error": "EFBIG"}
    assert host.data["files"]["/etc/small"] == {"text": "1"}
    assert host.data["processes"] == {"error": "EFBIG"}
    assert host.data["commands"][0]["error"] == "E2BIG"


def test_a_job_is_found_by_name_program_or_script() -> None:
    rows = [
        {"pid": 1, "name": "systemd", "argv": ["/sbin/init"], "started": 1.0},
        {"pid": 7, "name": "python3", "argv": ["python3", "/data/train.py"], "started": 9.0},
        {"pid": 8, "name": "python3", "argv": ["python3", "train.py"], "started": 8.0},
        {"pid": 9, "name": "python3", "argv": ["python3", "other.py"], "started": 2.0, "devices": ["/dev/davinci0"]},
        {"pid": 10, "name": "envtune", "argv": ["envtune", "fleet", "audit", "--job", "train"], "started": 0.0},
    ]
    assert find_job("train.py", rows) == 8
    assert find_job("python3", rows) == 9  # it has an NPU open
    assert find_job("train", rows) is None
