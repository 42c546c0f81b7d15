"""Hundreds of secrets in the spellings people use, and hundreds of values near them that are none, per artifact.

The rows are in tests/cases/redaction; no secret may be left, no harmless value may change.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from pathlib import Path
from typing import Callable

import pytest
from helpers.rows import sampled
from helpers.secret_values import Planted, cases, planted, rows

from envtune.collector.machine import Machine
from envtune.collector.recorder import Recorder
from envtune.collector.redact import redact_argv, redact_file, redact_script, redact_text, redact_value

GBK = "# \u4f60\u597d\n".encode("gbk")
QUOTED: dict[str, Callable[[str], str]] = {
    "single": lambda value: "'" + value.replace("'", "'\\''") + "'",
    "double": lambda value: '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"',
    "ansi": lambda value: "$'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'",
    "escaped": shlex.quote,
}
FORMS = ("export {}={}", "{}={} python train.py", "declare -x {}={}", "A=1 {}={} B=2", "if :; then {}={}; fi")


def variables(name: str) -> list[tuple[str, Planted]]:
    found = []
    for number, row in enumerate(cases(name)["variables"]):
        variable, _, value = row.partition("=")
        found.append((variable, planted(value if name == "harmless" else value or "@", number)))
    return found


def left(rows_kept: list[tuple[Planted, str]]) -> list[str]:
    """The rows of which a secret, or most of one, is left."""
    return [
        f"{row.text} -> {kept}"
        for row, kept in rows_kept
        if any(secret in kept or (len(secret) > 12 and secret[-8:] in kept) for secret in row.secrets)
    ]


def file_text(data: bytes, env_file: bool = False) -> str:
    kept = redact_file("/home/li/train.sh", data, None, env_file)
    assert kept is not None
    return kept.decode("utf-8", "surrogateescape")


SECRETS, HARMLESS = variables("secrets"), variables("harmless")


def test_the_corpus_is_large_enough() -> None:
    assert sum(map(len, cases("secrets").values())) >= 150
    assert sum(map(len, cases("harmless").values())) >= 150


# ---------------------------------------------------------------------- variables


def test_of_an_environment() -> None:
    assert left([(row, redact_value(name, row.text)) for name, row in SECRETS]) == []
    assert [(n, r.text) for n, r in HARMLESS if redact_value(n, r.text) != r.text] == []


def test_of_the_environment_of_a_process() -> None:
    def kept(name: str, row: Planted) -> str:
        data = redact_file("/proc/7/environ", f"A=1\0{name}={row.text}\0B=2\0".encode(), 7)
        assert data is not None
        assert data.startswith(b"A=1\0") and data.endswith(b"\0B=2\0")
        return data.decode()

    assert left([(row, kept(name, row)) for name, row in SECRETS]) == []
    assert [n for n, r in HARMLESS if f"{n}={r.text}" not in kept(n, r).split("\0")] == []


@pytest.mark.parametrize("quoting", sampled(QUOTED, 2))
@pytest.mark.parametrize("end", [b"", GBK], ids=["", "with a byte that is not UTF-8"])
def test_of_a_script(quoting: str, end: bytes) -> None:
    def line(name: str, row: Planted, number: int) -> str:
        return FORMS[number % len(FORMS)].format(name, QUOTED[quoting](row.text)) + "\n"

    found, lost = [], []
    for number, (name, row) in enumerate(SECRETS):
        kept = file_text(b"#!/bin/bash\n" + line(name, row, number).encode() + b"export Z=1\n" + end)
        found.append((row, kept))
        assert "\nexport Z=1\n" in kept
    for number, (name, row) in enumerate(HARMLESS):
        text = line(name, row, number)
        if file_text(text.encode() + end) != text + end.decode("utf-8", "surrogateescape"):
            lost.append(text)
    assert left(found) == []
    assert lost == []


def test_of_an_env_file() -> None:
    found = [(row, file_text(f"{name}={row.text}\nB=2\n".encode() + GBK, True)) for name, row in SECRETS]
    assert left(found) == []
    assert all("\nB=2\n" in kept for _, kept in found)
    assert [n for n, r in HARMLESS if file_text(f"{n}={r.text}\n".encode(), True) != f"{n}={r.text}\n"] == []


def test_a_value_of_an_env_file_ends_with_its_line() -> None:
    text = "DB_PASSWORD=Zq8v K2mT & 0pLx; 7RwY\nMASTER_PORT=29500\n"
    assert file_text(text.encode(), True) == 'DB_PASSWORD="<redacted>"\nMASTER_PORT=29500\n'


# ---------------------------------------------------------------------- command lines, scripts, text


def test_of_command_lines() -> None:
    # in one list of arguments the words on both sides of a pipe are one command's
    plain = [row for row in rows("secrets", "lines") if not {"|", "<<<"} & set(shlex.split(row.text))]
    assert left([(row, "\0".join(redact_argv(shlex.split(row.text)))) for row in plain]) == []
    lost = [r.text for r in rows("harmless", "lines") if redact_argv(shlex.split(r.text)) != shlex.split(r.text)]
    assert lost == []


@pytest.mark.parametrize("kind", ["lines", "scripts"])
def test_of_lines_of_a_script(kind: str) -> None:
    kept = [(row, file_text(row.text.encode() + b"\nexport Z=1\n" + GBK)) for row in rows("secrets", kind)]
    assert left(kept) == []
    assert all("\nexport Z=1\n" in text for _, text in kept)
    assert [r.text for r in rows("harmless", kind) if redact_script(r.text) != r.text] == []


@pytest.mark.parametrize("kind", ["lines", "texts"])
def test_of_a_log(kind: str) -> None:
    plain = [row for row in rows("secrets", kind) if not row.text.startswith(("echo ", "passwd "))]
    assert left([(row, redact_text(row.text)) for row in plain]) == []
    assert [r.text for r in rows("harmless", kind) if redact_text(r.text) != r.text] == []


def test_what_is_redacted_stays_as_it_is() -> None:
    for row in (*rows("secrets", "scripts"), *rows("secrets", "lines")):
        once = redact_script(row.text + "\n")
        assert redact_script(once) == once
        assert redact_text(redact_text(row.text)) == redact_text(row.text)


@pytest.mark.parametrize("kind", sampled(["scripts", "lines"], 2))
def test_a_shell_can_read_what_is_left(kind: str, tmp_path: Path) -> None:
    """`bash -n` takes every redacted script, and the number of its lines is the same."""
    scripts = [(row.text, redact_script(row.text + "\n")) for row in rows("secrets", kind)]
    for number, (text, kept) in enumerate(scripts):
        assert kept.count("\n") == text.count("\n") + 1
        (tmp_path / f"{number}.sh").write_text(kept)
    loop = 'for f in "$1"/*.sh; do bash -n "$f" || exit 1; done'
    done = subprocess.run(["bash", "-c", loop, "_", str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# ---------------------------------------------------------------------- what cannot be redacted


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_what_is_no_text_is_not_kept(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "train.sh"
    path.write_bytes("export HF_TOKEN=Zq8vK2mT0pLx7RwY\n".encode(encoding))
    recorder = Recorder(Machine(), {}, {})
    with pytest.raises(OSError, match="not text"):
        recorder.read_bytes(str(path))
    assert recorder.files[str(path)] == {"size": path.stat().st_size, "error": "EILSEQ"}


# ---------------------------------------------------------------------- time

PIECES = (
    "a_", "ecdsa-sha2-", "token", "token=", "token ", "://", "://a:", "a=b=", "--a ", "-p ", "$(", "${a:-", "`", '"',
    "'",
    "key='", 'key="', 'key=\\"', "((", "<<a\n", "<<-a ", "\\", "pass:", "<a>", "&key=", "A1b", "a1B2/", "password is ",
    "-----BEGIN PRIVATE KEY-----", "X=(", "\u5bc6\u7801", "curl -u ", " --user ", "eyJ", "SG.", "a.", "-", "=", "\n",
    "$'",
    "KEY=$(echo ", "#", "bearer ",
)  # fmt: skip
SIZE = 4_000


@pytest.mark.slow
@pytest.mark.parametrize("redact", [redact_text, redact_script, lambda text: redact_value("A", text)])
def test_the_time_is_in_proportion_to_the_length(redact: Callable[[str], str]) -> None:
    def seconds(piece: str, size: int) -> float:
        began = time.process_time()
        redact("token=x " + piece * (size // len(piece)))
        return time.process_time() - began

    slow = {}
    for piece in PIECES:
        for _ in range(5):  # a busy machine may cost one of them more
            small, large = seconds(piece, SIZE), seconds(piece, 16 * SIZE)
            if large <= 16 * 4 * max(small, 0.005):  # 256 times as long where the square counts
                break
        else:
            slow[piece] = (small, large)
    assert slow == {}


def test_what_a_line_assigns_is_redacted_to_its_end() -> None:
    """At the beginning of a line nothing separates; within one `&` may begin the next parameter."""
    lines = ["DB_PASSWORD=aQ7xz&Kp3mW", "  # export DB_PASSWORD=aQ7xz'Kp3mW", "- db_password: aQ7xz&Kp3mW"]
    for line in lines:
        assert not {"aQ7xz", "Kp3mW"} & set(re.findall(r"[A-Za-z0-9]{5}", redact_text(line))), line
    assert "rank" in redact_text("wrong: password=aQ7xzKp3mW&rank=3")
