"""Whose variables are judged: the job's. A process, a script, an env file, or this shell where it is honest to."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping, Optional

import pytest

from envtune.collector.snapshot import take
from envtune.context.open import open_context
from envtune.errors import Undetermined
from envtune.host import LocalHost
from envtune.job.environment import parse_env_file, parse_environ, read_environment
from envtune.job.recording import record_environment
from envtune.job.target import JobEnvironment, Target, TargetOptions
from envtune.snapshot.host import SnapshotHost

SUDO = {"SUDO_USER": "li", "SUDO_UID": "1000", "SUDO_COMMAND": "/usr/bin/envtune check", "PATH": "/usr/bin"}
SSH = {"SSH_CONNECTION": "192.0.2.1 50022 192.0.2.10 22", "PATH": "/usr/bin"}


def host(environ: Optional[Mapping[str, str]] = None, **files: Any) -> SnapshotHost:
    """A host whose /job holds `files`; `environ` is this shell's."""
    entries = {f"/job/{name.replace('_', '.')}": entry for name, entry in files.items()}
    return SnapshotHost({"environ": dict(environ or {}), "files": entries, "euid": 1000})


def reading(machine: SnapshotHost, **options: Any) -> JobEnvironment:
    return read_environment(machine, TargetOptions(**options))


# ------------------------------------------------------------------ this shell


def test_this_shell() -> None:
    found = reading(host({"A": "1"}))
    assert (found.variables, str(found.source), found.reason) == ({"A": "1"}, "this shell", None)


@pytest.mark.parametrize("environ", [SUDO, {"SUDO_COMMAND": "/bin/bash"}, {"SUDO_USER": "li"}])
def test_sudo_is_not_the_job(environ: Mapping[str, str]) -> None:
    found = reading(host(environ))
    assert found.variables is None
    assert found.reason is not None
    assert found.reason.en.startswith("sudo cleared the environment")
    assert "--script" in found.reason.zh


def test_a_command_over_ssh_is_not_the_job() -> None:
    found = reading(host(SSH))
    assert found.variables is None
    assert found.reason is not None
    assert "ssh" in found.reason.en


@pytest.mark.parametrize(("environ", "way"), [(SUDO, "without sudo"), (SSH, "in a login shell")])
def test_what_a_named_script_takes_over_from_a_shell_that_is_not_seen(environ: Mapping[str, str], way: str) -> None:
    """Whoever has named the script is not told to name it, but how the rest of it can be known."""
    script = "export PATH=/opt/npu/bin:$PATH\nexport TASK_QUEUE_ENABLE=1\npython3 train.py\n"
    found = reading(host(environ, train_sh=script), script="/job/train.sh")
    assert found.variables is not None and found.variables["TASK_QUEUE_ENABLE"] == "1"
    reason = found.why_unknown("PATH")
    assert reason is not None
    assert f"run envtune {way}, or name the running job with --pid" in reason.en
    assert "--script" not in reason.en + reason.zh


def test_a_login_over_ssh_is_a_shell_like_any_other() -> None:
    assert reading(host({**SSH, "SSH_TTY": "/dev/pts/0"})).variables is not None


# ------------------------------------------------------------------ a process


def process(data: Any) -> SnapshotHost:
    return SnapshotHost({"environ": SUDO, "files": {"/proc/4711/environ": data}, "euid": 1000})


def test_a_process_is_taken_as_it_is() -> None:
    found = reading(process("PATH=/usr/bin\0TASK_QUEUE_ENABLE=0\0EMPTY=\0"), pid=4711)
    assert found.variables == {"PATH": "/usr/bin", "TASK_QUEUE_ENABLE": "0", "EMPTY": ""}
    assert str(found.source) == "process 4711"


def test_a_process_of_somebody_else() -> None:
    found = reading(process({"error": "EACCES"}), pid=4711)
    assert found.variables is None
    assert found.needs_privilege
    with pytest.raises(Undetermined) as caught:
        Target(TargetOptions(pid=4711), None, None, found).variables()
    assert caught.value.needs_privilege
    assert "root" in caught.value.reason.en


def test_a_process_that_is_gone() -> None:
    found = reading(process(None), pid=4711)
    assert found.reason is not None
    assert found.reason.en == "no process 4711"
    assert not found.needs_privilege


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"", {}),
        (b"A=1", {"A": "1"}),
        (b"A=1\0A=2\0", {"A": "1"}),  # getenv finds the first
        (b"A=x=y\0", {"A": "x=y"}),
        (b"no equals\0=none\0\0A=1\0", {"A": "1"}),
        (b"A=\xff\0", {"A": "\udcff"}),
        (b"A=two\nlines\0", {"A": "two\nlines"}),
    ],
)
def test_environ_of_a_process(data: bytes, wanted: Mapping[str, str]) -> None:
    assert parse_environ(data) == wanted


# ------------------------------------------------------------------ an env file

DOCKER = """# variables of the job
TASK_QUEUE_ENABLE=1
  HCCL_WHITELIST_DISABLE=1
EMPTY=
SPACES=a b # not a comment
DOLLAR=$HOME/x
QUOTED="ADD#MUL"
SINGLE='x'
PASSED
not a variable
9A=1
"""


def test_env_file_of_docker() -> None:
    found, places = parse_env_file(DOCKER, "job.env")
    assert found == {
        "TASK_QUEUE_ENABLE": "1",
        "HCCL_WHITELIST_DISABLE": "1",
        "EMPTY": "",
        "SPACES": "a b # not a comment",
        "DOLLAR": "$HOME/x",
        "QUOTED": "ADD#MUL",
        "SINGLE": "x",
        "PASSED": None,
    }
    assert places["HCCL_WHITELIST_DISABLE"] == "job.env:3"


def test_env_file_with_windows_line_ends_and_a_byte_order_mark() -> None:
    assert parse_env_file("\ufeffA=1\r\nB=2\r\n", "x")[0] == {"A": "1", "B": "2"}


def test_env_file_over_this_shell() -> None:
    found = reading(host({"A": "0", "B": "2", "PASSED": "p"}, job_env="A=1\nPASSED\nABSENT\n"), env_file="/job/job.env")
    assert found.variables == {"A": "1", "B": "2", "PASSED": "p"}
    assert str(found.source) == "/job/job.env over this shell"
    assert found.place("A") == "/job/job.env:1"
    assert str(found.place("B")) == "environment of /job/job.env over this shell"


def test_env_file_for_a_shell() -> None:
    text = "# source me\nexport A=$HOME/x   # home\nexport B='1 2'\nC=3\n"
    found = reading(host({"HOME": "/root"}, job_env=text), env_file="/job/job.env")
    assert found.variables is not None
    assert (found.variables["A"], found.variables["B"], found.variables["C"]) == ("/root/x", "1 2", "3")


def test_env_file_alone_under_sudo() -> None:
    found = reading(host(SUDO, job_env="A=1\nPASSED\n"), env_file="/job/job.env")
    assert found.variables == {"A": "1"}
    assert str(found.source) == "/job/job.env alone"
    assert found.why_unknown("SUDO_USER") is None
    assert "SUDO_USER" not in found.variables
    reason = found.why_unknown("PASSED")
    assert reason is not None
    assert "sudo" in reason.en


def test_env_file_that_cannot_be_read() -> None:
    found = reading(host({}, job_env={"error": "EACCES"}), env_file="/job/job.env")
    assert found.variables is None
    assert found.needs_privilege
    assert reading(host({}), env_file="/job/gone.env").reason is not None
    assert reading(host({}, job_env=b"\xff\xfe\0"), env_file="/job/job.env").variables is None


# ------------------------------------------------------------------ a script, and all of them


def test_script_over_env_file_over_this_shell() -> None:
    machine = host(
        {"A": "shell", "B": "shell", "C": "shell"},
        job_env="B=file\nC=file\n",
        train_sh="export C=script$A\npython3 t.py\n",
    )
    found = reading(machine, script="/job/train.sh", env_file="/job/job.env")
    assert found.variables == {"A": "shell", "B": "file", "C": "scriptshell"}
    assert found.place("C") == "/job/train.sh:1"
    assert str(found.place("B")) == "/job/job.env:1"


def test_script_under_sudo_is_judged_alone() -> None:
    """What it sets is known, what it inherits is not, and what it never names is not set by it."""
    text = "export A=1\nexport LD_LIBRARY_PATH=/opt/lib:$LD_LIBRARY_PATH\npython3 train.py\n"
    found = reading(host(SUDO, train_sh=text), script="/job/train.sh")
    assert str(found.source) == "/job/train.sh alone"
    assert found.variables == {"A": "1"}
    reason = found.why_unknown("LD_LIBRARY_PATH")
    assert reason is not None
    assert "sudo" in reason.en
    assert found.why_unknown("TASK_QUEUE_ENABLE") is None


def test_a_process_wins_over_the_script_it_came_from() -> None:
    machine = SnapshotHost({"files": {"/proc/1/environ": "A=1\0", "/job/train.sh": "export A=2\n"}})
    assert reading(machine, pid=1, script="/job/train.sh").variables == {"A": "1"}


def test_asking_for_a_variable_that_is_not_known() -> None:
    text = 'export A=1\n[ "$1" = x ] && export B=1\npython3 train.py\n'
    found = reading(host({"SHELL": "/bin/bash"}, train_sh=text), script="/job/train.sh")
    variables = Target(TargetOptions(), None, None, found).variables()
    assert variables["A"] == "1"
    assert variables.get("C") is None
    assert "C" not in variables
    for ask in (lambda: variables["B"], lambda: variables.get("B"), lambda: "B" in variables):
        with pytest.raises(Undetermined) as caught:
            ask()
        assert "/job/train.sh:2" in caught.value.reason.en
    assert set(variables) == {"A", "SHELL"}


def test_python_of_a_job_whose_path_is_not_known() -> None:
    machine = host({"PATH": "/usr/bin"}, train_sh="conda activate npu\npython3 train.py\n")
    context = open_context(machine, TargetOptions(script="/job/train.sh"))
    assert context.target.python is None
    assert context.target.python_reason is not None
    assert "conda activate" in context.target.python_reason.en


# ------------------------------------------------------------------ recorded


def test_a_recording_holds_every_file_the_script_leads_to(tmp_path: Path) -> None:
    """Also by a path that the script makes of its own place, in loops and functions: the audit reads the same."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "train.sh").write_text(
        'here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)\nLIB=${here}/lib\n'
        'load() { for f in "$LIB"/a.sh $LIB/b.sh $LIB/gone.sh; do [[ -f $f ]] && source $f; done; }\nload\n'
        "bash $here/run.sh\n"
    )
    (tmp_path / "lib" / "a.sh").write_text("export TASK_QUEUE_ENABLE=0\n")
    (tmp_path / "lib" / "b.sh").write_text("export FROM_B=${TASK_QUEUE_ENABLE}2\n")
    (tmp_path / "run.sh").write_text("export FROM_RUN=1\ntorchrun train.py\n")
    options = TargetOptions(script=str(tmp_path / "train.sh"))
    taken = take(
        {"script": options.script},
        environ={"HOME": "/root"},
        more=lambda recorder: record_environment(recorder, options),
    )
    live = LocalHost()
    live.environ = {"HOME": "/root"}
    found = read_environment(SnapshotHost(taken), options)
    assert found == read_environment(live, options)
    assert found.variables == {"HOME": "/root", "TASK_QUEUE_ENABLE": "0", "FROM_B": "02", "FROM_RUN": "1"}
