"""A snapshot is sent to other people: secrets stay on the host, everything else arrives as it was."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from helpers.examples import ROOT
from helpers.rows import sampled

from envtune.collector.machine import Machine
from envtune.collector.recorder import Recorder
from envtune.collector.redact import (
    JOB_VARIABLE,
    REDACTED,
    names,
    redact_argv,
    redact_file,
    redact_script,
    redact_text,
    redact_value,
)
from envtune.collector.snapshot import take

SECRET = "Zq8vK2mT0pLx7RwY"


@pytest.mark.parametrize(
    "name",
    [
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "AWS_SESSION_TOKEN",
        "HF_TOKEN",
        "HUGGING_FACE_HUB_TOKEN",
        "WANDB_API_KEY",
        "OPENAI_API_KEY",
        "GITHUB_TOKEN",
        "DB_PASSWORD",
        "MYSQL_PWD",
        "DB_PASS",
        "SSHPASS_SECRET",
        "SSH_KEY_PASSPHRASE",
        "SSH_PRIVATE_KEY",
        "MODELARTS_SECRET_KEY",
        "OBS_SK_SECRET",
        "apiKey",
        "registryPassword",
        "NPM_AUTH",
        "KUBE_CREDENTIALS",
    ],
)
def test_the_value_of_a_secret_variable_goes(name: str) -> None:
    assert redact_value(name, SECRET) == REDACTED


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MASTER_PORT", "29500"),
        ("MASTER_ADDR", "192.0.2.10"),
        ("PATH", "/usr/local/bin:/usr/bin"),
        ("KEYBOARD", "us"),
        ("PWD", "/home/train"),
        ("OLDPWD", "/home"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("MAX_TOKENS", "4096"),
        ("EOS_TOKEN", "</s>"),
        ("PAD_TOKEN_ID", "0"),
        ("SSH_AUTH_SOCK", "/tmp/ssh-1/agent.1"),
        ("GIT_SSL_KEY_PATH", "/etc/ssl/k.pem"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/root/gcp.json"),
        ("PYTORCH_NPU_ALLOC_CONF", "expandable_segments:True"),
        ("PASSIVE_MODE", "1"),
        ("MONKEY", "banana"),
        ("RANK_TABLE_FILE", "/user/hccl_8p.json"),
        ("http_proxy", "http://proxy.example.com:8080"),
        ("EMPTY_TOKEN", ""),
        ("MY_TOKEN", "$HF_TOKEN"),
    ],
)
def test_other_values_are_kept(name: str, value: str) -> None:
    assert redact_value(name, value) == value


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("http://anna:geheim@proxy.example.com:8080", f"http://anna:{REDACTED}@proxy.example.com:8080"),
        ("https://oauth2:glpat-abcdefghijklmnopqrst@git.example.com/x", f"https://oauth2:{REDACTED}@git.example.com/x"),
        ("hf_" + "a1B2" * 8, REDACTED),
        ("sk-" + "a1B2" * 8, REDACTED),
        ("ghp_" + "a1B2" * 9, REDACTED),
        ("AKIA" + "ABCD1234" * 2, REDACTED),
        ("Authorization: Bearer abcdefgh12345678", f"Authorization: Bearer {REDACTED}"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaA\n-----END OPENSSH PRIVATE KEY-----\n", f"{REDACTED}\n"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc", REDACTED),
    ],
)
def test_a_secret_is_known_by_its_shape_whatever_it_is_called(value: str, kept: str) -> None:
    assert redact_value("NOTES", value) == kept


@pytest.mark.parametrize(
    ("argv", "kept"),
    [
        (["train", "--password=x1"], ["train", f"--password={REDACTED}"]),
        (["train", "--token", SECRET, "--lr", "1"], ["train", "--token", REDACTED, "--lr", "1"]),
        (["train", "--api-key", SECRET], ["train", "--api-key", REDACTED]),
        (["train", "--hf_token=" + SECRET], ["train", f"--hf_token={REDACTED}"]),
        (["tool", "-p", "secret1"], ["tool", "-p", REDACTED]),
        (["sshpass", "-p", "secret", "ssh", "node1"], ["sshpass", "-p", REDACTED, "ssh", "node1"]),
        (["/usr/bin/mysql", "-psecret", "-u", "root"], ["/usr/bin/mysql", f"-p{REDACTED}", "-u", "root"]),
        (["curl", "-u", "anna:geheim", "https://x"], ["curl", "-u", f"anna:{REDACTED}", "https://x"]),
        (["env", f"WANDB_API_KEY={SECRET}", "python"], ["env", f"WANDB_API_KEY={REDACTED}", "python"]),
        (["docker", "run", "-e", f"HF_TOKEN={SECRET}", "i"], ["docker", "run", "-e", f"HF_TOKEN={REDACTED}", "i"]),
        (
            ["bash", "-c", f"export HF_TOKEN={SECRET}; python t.py"],
            ["bash", "-c", f"export HF_TOKEN={REDACTED}; python t.py"],
        ),
        (["ssh", "-p", "2222", "node1"], ["ssh", "-p", "2222", "node1"]),
        (["docker", "run", "-p", "8080:80", "i"], ["docker", "run", "-p", "8080:80", "i"]),
        (["mkdir", "-p", "/a/b"], ["mkdir", "-p", "/a/b"]),
        (["torchrun", "--master_port", "29500", "t.py"], ["torchrun", "--master_port", "29500", "t.py"]),
        (["python", "t.py", "--pad-token-id", "0"], ["python", "t.py", "--pad-token-id", "0"]),
        (["python", "t.py", "--max-tokens", "12"], ["python", "t.py", "--max-tokens", "12"]),
        (["python", "t.py", "--tokenizer", "bert"], ["python", "t.py", "--tokenizer", "bert"]),
        (["python", "t.py", "--token", "--lr"], ["python", "t.py", "--token", "--lr"]),
        ([], []),
    ],
)
def test_command_lines(argv: list[str], kept: list[str]) -> None:
    assert redact_argv(argv) == kept


def test_a_launch_script_keeps_its_meaning() -> None:
    script = (
        "#!/bin/bash\n"
        f'export WANDB_API_KEY="{SECRET}"\n'
        f"export HF_TOKEN='{SECRET}'  # ask Anna\n"
        "export MASTER_PORT=29500\n"
        "export GIT_TOKEN=$HF_TOKEN\n"
        f'login = {{"password": "{SECRET}", "user": "anna"}}\n'
        f"sshpass -p {SECRET} ssh node1\n"
        f"huggingface-cli login --token {SECRET}\n"
        "source /usr/local/Ascend/ascend-toolkit/set_env.sh\n"
    )
    kept = redact_script(script)
    assert SECRET not in kept
    for line in ("export MASTER_PORT=29500", "export GIT_TOKEN=$HF_TOKEN", '"user": "anna"', "ssh node1", "set_env.sh"):
        assert line in kept
    assert kept.count(REDACTED) == 5
    assert kept.count("\n") == script.count("\n")


def test_the_environment_of_a_process_keeps_its_names() -> None:
    data = f"PATH=/bin\0HF_TOKEN={SECRET}\0MASTER_PORT=29500\0".encode()
    assert redact_file("/proc/77/environ", data, 77) == f"PATH=/bin\0HF_TOKEN={REDACTED}\0MASTER_PORT=29500\0".encode()
    line = f"python\0t.py\0--token\0{SECRET}\0".encode()
    assert redact_file("/proc/77/cmdline", line) == f"python\0t.py\0--token\0{REDACTED}\0".encode()


class Tables(Machine):
    """A machine whose only process was started with a password."""

    def tables(self) -> dict[str, Any]:
        row = {"pid": 7, "ppid": 1, "user": "anna", "name": "python", "argv": ["python", "--password", SECRET]}
        return {"processes": [row], "listeners": [], "interfaces": [], "disks": []}


def test_nothing_secret_is_anywhere_in_a_snapshot(tmp_path: Any) -> None:
    script = tmp_path / "train.sh"
    script.write_text(f"export API_TOKEN={SECRET}\n. {tmp_path}/inner.sh\n")
    (tmp_path / "inner.sh").write_text(f"curl https://anna:{SECRET}@example.com\n")
    environ = {"HF_TOKEN": SECRET, "PATH": "/usr/bin", "HOME": str(tmp_path)}
    snapshot = take({"script": str(script)}, Tables(), environ)
    assert SECRET not in repr(snapshot)
    assert snapshot["environ"]["HF_TOKEN"] == REDACTED
    assert snapshot["files"][str(tmp_path / "inner.sh")] == "curl https://anna:redacted@example.com\n"
    assert snapshot["files"][str(script)] == f'export API_TOKEN="{REDACTED}"\n. {tmp_path}/inner.sh\n'
    assert snapshot["processes"][0]["argv"] == ["python", "--password", REDACTED]


def test_what_the_recorder_reads_is_what_it_keeps(tmp_path: Any) -> None:
    (tmp_path / "env").write_text(f"API_KEY={SECRET}\nRANK=0\n")
    recorder = Recorder(Machine(), {}, {})
    assert SECRET not in recorder.read(str(tmp_path / "env"))


@pytest.mark.parametrize(
    "piece",
    sampled(["a=", "--a ", "a.", "token", '"', "://", "-p ", "eyJ", "key='", "mysql ", "Bearer ", 'a="'], 6),
)
@pytest.mark.parametrize("size", [50_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_a_megabyte_of_anything_is_looked_through_in_time(piece: str, size: int) -> None:
    began = time.process_time()
    redact_text("token " + piece * (size // len(piece)))
    assert time.process_time() - began < 60


def test_a_secret_behind_another_assignment() -> None:
    assert redact_text(f"--extra=token={SECRET}") == f"--extra=token={REDACTED}"


def test_of_a_process_nobody_named_only_what_tunes_training_is_kept() -> None:
    data = b"HOME=/home/anna\0TASK_QUEUE_ENABLE=1\0PROMPT=ask\0PATH=/bin\0HCCL_BUFFSIZE=200\0DB_USER=anna\0"
    assert redact_file("/proc/78/environ", data, 77) == b"TASK_QUEUE_ENABLE=1\0PATH=/bin\0HCCL_BUFFSIZE=200\0"


def test_every_variable_the_checks_judge_is_kept_and_not_taken_for_a_secret() -> None:
    table = json.loads((ROOT / "envtune" / "data" / "variables.json").read_text("utf-8"))
    for name in table["variables"]:
        assert names.secret_grade(name) < names.SECRET, name
        assert JOB_VARIABLE.match(f"{name}=1"), name


def test_a_redacted_script_runs_as_before(tmp_path: Path) -> None:
    script = (
        f"export A_TOKEN={SECRET} B=1\nexport C='x' D_PASSWORD='{SECRET}'\nexport E_KEY=\"{SECRET}\" F=2\n"
        f'export http_proxy=http://anna:{SECRET}@h:80 G=3\nexport https_proxy="http://anna:{SECRET}@h:80"\n'
        f"export H=hf_{SECRET}{SECRET}\ntrue --token {SECRET} && export I=4\nsshpass -p {SECRET} true || export J=5\n"
    )
    path = tmp_path / "script"
    path.write_text(redact_script(script))
    assert SECRET not in path.read_text()
    shown = subprocess.run(
        ["sh", "-ec", f". {path}; env"], capture_output=True, text=True, timeout=120, check=True
    ).stdout
    for line in ("B=1", "C=x", "F=2", "G=3", "I=4", "https_proxy=http://anna:redacted@h:80"):
        assert line in shown.splitlines()
