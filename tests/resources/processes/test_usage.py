"""Who is on the NPUs: left-over processes are found, live jobs and the named job are not, and doubts are said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

import pytest
from helpers.checks import check_files
from helpers.examples import ROOT, example_context

from envtune.audit import examine
from envtune.catalog import check_from
from envtune.context.open import open_context
from envtune.host import LocalHost
from envtune.model import Finding, Outcome
from envtune.resources.processes.usage import ADOPTERS, job_pids, orphan_sign

CHECKS = {
    data["id"]: check_from(data) for data in check_files() if data["id"] in ("PROC001", "PROC002", "PROC003", "CANN007")
}
INIT = {"pid": 1, "ppid": 0, "user": "root", "name": "systemd", "started": 1699000000}


def judge(check: str, **example: Any) -> tuple[Finding, ...]:
    return examine(CHECKS[check], example_context(example))


def on_npu1(*rows: dict[str, Any], **example: Any) -> tuple[Finding, ...]:
    """PROC001 on a host on whose npu1 process 4242 works; `rows` say what 4242 is."""
    return judge("PROC001", like="npu-910b-busy", processes=[INIT, *rows], **example)


def failed(findings: tuple[Finding, ...]) -> list[str]:
    return [f.subject for f in findings if f.outcome is Outcome.FAIL]


def row(pid: int, ppid: int, **more: Any) -> dict[str, Any]:
    return {"pid": pid, "ppid": ppid, "user": "li", "name": "python3", "started": 1699999000, **more}


def test_worker_whose_main_process_was_killed() -> None:
    (finding,) = on_npu1(row(4242, 1, argv=["python3", "train.py", "--api-key=hunter2"]))
    assert (finding.outcome, finding.subject) == (Outcome.FAIL, "npu1")
    assert finding.actual is not None
    assert "pid 4242: its parent has ended (li, 16 min old, 37709 MB" in finding.actual.en
    assert "16 分钟" in finding.actual.zh
    assert "hunter2" not in finding.actual.en


def test_worker_whose_parent_is_not_even_in_the_table() -> None:
    assert failed(on_npu1(row(4242, 4000))) == ["npu1"]


def test_workers_of_a_live_launcher() -> None:
    assert failed(on_npu1(row(4000, 1, name="torchrun"), row(4242, 4000))) == []


@pytest.mark.parametrize(
    ("init", "started", "launcher", "outcome"),
    [
        ("systemd", 1699740000, {"name": "bash", "argv": ["bash", "train.sh"]}, Outcome.UNKNOWN),  # nohup bash train.sh
        ("systemd", 1699740000, {"name": "sh", "argv": ["sh", "train.sh"]}, Outcome.UNKNOWN),
        ("systemd", 1699740000, {"name": "vllm", "argv": ["/usr/bin/python3", "/usr/bin/vllm"]}, Outcome.UNKNOWN),
        ("systemd", 1699740000, {"name": "tmux: server", "argv": ["tmux"]}, Outcome.PASS),  # no launcher of ranks
        ("systemd", 1699000001, {"name": "bash", "argv": ["bash", "train.sh"]}, Outcome.UNKNOWN),
        ("tini", 1699740000, {"name": "bash", "argv": ["bash", "train.sh"]}, Outcome.UNKNOWN),
        ("tini", 1699000001, {"name": "bash", "argv": ["bash", "train.sh"]}, Outcome.PASS),  # docker run --init
    ],
)
def test_a_rank_below_what_init_adopted(init: str, started: int, launcher: dict[str, Any], outcome: Outcome) -> None:
    rows = [{**INIT, "name": init}, row(4100, 1, started=started, **launcher), row(4242, 4100)]
    findings = judge("PROC001", like="npu-910b-busy", processes=rows)
    assert {finding.outcome for finding in findings} == {outcome}


@pytest.mark.parametrize("state", ["Z", "T", "t"])
def test_zombie_or_stopped(state: str) -> None:
    assert failed(on_npu1(row(4000, 1, name="bash"), row(4242, 4000, state=state))) == ["npu1"]


def test_orphan_adopted_by_the_user_manager() -> None:
    assert failed(on_npu1(row(900, 1, name="systemd"), row(4242, 900))) == ["npu1"]


def test_named_job_started_with_nohup_is_not_left_over() -> None:
    nohup = row(4242, 1)
    assert failed(on_npu1(nohup)) == ["npu1"]
    assert failed(on_npu1(nohup, target={"pid": 4242})) == []


@pytest.mark.parametrize(
    ("cgroup", "left"),
    [
        ("0::/system.slice/inference.service\n", []),
        ("12:pids:/system.slice/inference.service\n1:name=systemd:/system.slice/inference.service\n", []),
        ("0::/user.slice/user-1000.slice/user@1000.service/app.slice\n", ["npu1"]),
        ("0::/system.slice/sshd.service\n", ["npu1"]),
        ("0::/user.slice/user-1000.slice/session-3.scope\n", ["npu1"]),
        ("", ["npu1"]),
    ],
)
def test_service_of_systemd_is_no_orphan(cgroup: str, left: list[str]) -> None:
    assert failed(on_npu1(row(4242, 1), files={"/proc/4242/cgroup": cgroup})) == left


@pytest.mark.parametrize(
    ("group", "environ", "left"),
    [
        (4242, "PATH=/usr/bin\0", []),  # the user's shell, since closed, made it a job of its own
        (4242, "PATH=/usr/bin\0TORCHELASTIC_RUN_ID=none\0", ["npu1"]),  # torchrun gives workers sessions of their own
        (4200, "PATH=/usr/bin\0", ["npu1"]),  # still in the group of the launcher that was killed
    ],
)
def test_a_job_that_outlived_its_login_is_not_called_left_over(group: int, environ: str, left: list[str]) -> None:
    files = {"/proc/4242/stat": f"4242 (python3 (a)) S 1 {group} {group} 0 -1 0\n", "/proc/4242/environ": environ}
    findings = on_npu1(row(4242, 1), files=files)
    assert failed(findings) == left
    if not left:
        (finding,) = findings
        assert finding.outcome is Outcome.UNKNOWN and finding.reason is not None and "nohup" in finding.reason.en


def test_pid_that_the_process_table_does_not_have() -> None:
    findings = on_npu1()
    assert [(f.outcome, f.subject) for f in findings] == [(Outcome.UNKNOWN, "npu1")]
    assert findings[0].reason is not None and "4242" in findings[0].reason.en


def test_named_job_with_all_its_ranks() -> None:
    """The launcher, its other ranks and what they started belong to the job; the neighbor does not."""
    rows = [INIT, row(10, 1, name="bash"), row(11, 10), row(12, 10), row(13, 12), row(20, 1, name="bash"), row(21, 20)]
    context = example_context({"processes": rows, "target": {"pid": 11}})
    assert job_pids(context) == {10, 11, 12, 13}


def test_ordinary_user_and_old_npu_smi() -> None:
    """Without a process table the open descriptors tell; those of other users are closed to this one."""
    closed = row(50, 1, user="wang", opaque=True)
    holder = row(77, 1, devices=["/dev/davinci3"])
    manager = row(78, 1, devices=["/dev/davinci_manager"])
    told = judge("PROC001", like="npu-910a-8", processes=[INIT, closed, holder, manager], euid=1000)
    assert failed(told) == ["npu3"]
    assert [f.subject for f in told if f.outcome is Outcome.UNKNOWN and f.needs_privilege] == ["npu0-2, npu4-7"]
    assert failed(judge("PROC001", like="npu-910a-8", processes=[INIT, manager])) == []


def test_orphan_of_this_machine() -> None:
    """A real process whose parent has ended: the live process table says so too."""
    shell = subprocess.run(
        ["sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"], capture_output=True, text=True, check=True
    )
    pid = int(shell.stdout)
    try:
        context = open_context(LocalHost())
        orphan = next(p for p in context.host.processes() if p.pid == pid)
        parent = next(p for p in context.host.processes() if p.pid == orphan.ppid)
        sign, certain = orphan_sign(context, orphan)
        if parent.name in ADOPTERS:
            assert sign is not None and certain
        elif parent.pid == 1:
            assert sign is not None and not certain
        child_of_this_test = next(p for p in context.host.processes() if p.pid == os.getpid())
        assert child_of_this_test.user
    finally:
        os.kill(pid, signal.SIGKILL)


# ---------------------------------------------------------------------------------------------------- memory


def table(model: str, used: int, total: int, processes: str) -> dict[str, Any]:
    """A host with one NPU of that use."""
    ddr = 1452 if total < 40000 else 0
    text = f"""
+------------------------------------------------------------------------------------------------+
| npu-smi 24.1.0                   Version: 24.1.0                                               |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     {model:19} | OK            | 91.8        36                0    / 0             |
| 0                         | 0000:C1:00.0  | 0           {ddr:<4} / 15137       {used:5} / {total} |
+===========================+===============+====================================================+
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
{processes}
+===========================+===============+====================================================+
"""
    return {"commands": {"npu-smi info": text}, "files": {"/dev/davinci0": {"char": True}}}


EMPTY = "| No running processes found in NPU 0                                                            |"
BUSY = "| 0       0                 | 4242          | python3                  | 512                     |"


@pytest.mark.parametrize(
    ("model", "used", "total", "processes", "outcome", "words"),
    [
        ("910B3", 3451, 65536, EMPTY, Outcome.PASS, "idle usage"),
        ("910B4", 2871, 32768, EMPTY, Outcome.PASS, "idle usage"),
        ("910ProB", 18, 32768, EMPTY, Outcome.PASS, "idle usage"),
        ("910ProB", 2048, 32768, EMPTY, Outcome.FAIL, "no process is listed"),
        ("910B3", 41052, 65536, EMPTY, Outcome.FAIL, "no process is listed"),
        ("910B3", 3451, 65536, BUSY, Outcome.FAIL, "4242 python3"),
    ],
)
def test_free_memory(model: str, used: int, total: int, processes: str, outcome: Outcome, words: str) -> None:
    (finding,) = judge("PROC002", **table(model, used, total, processes))
    assert finding.outcome is outcome
    assert finding.actual is not None and words in finding.actual.en


def test_memory_of_the_named_job_is_not_in_its_way() -> None:
    host = table("910B3", 41052, 65536, BUSY)
    (finding,) = judge("PROC002", **host, processes=[INIT, row(4242, 1)], target={"pid": 4242})
    assert finding.outcome is Outcome.PASS


# ---------------------------------------------------------------------------------------------------- profilers


def test_profilers_are_known_by_program_not_by_argument() -> None:
    mentions = row(60, 1, name="vi", argv=["vi", "notes-on-msprof.txt"])
    tool = row(61, 1, name="python3", argv=["python3", "/opt/tools/msprof.py", "--output=x"])
    assert failed(judge("PROC003", like="npu-910b-8", processes=[INIT, mentions])) == []
    assert failed(judge("PROC003", like="npu-910b-8", processes=[INIT, tool])) == ["msprof"]


# ---------------------------------------------------------------------- what cannot be seen is not nothing

PROC = "30 25 0:22 / /proc rw,relatime shared:13 - proc proc rw,{}\n"
MINE = row(50, 1, user="li", name="bash")


def hiding(option: str, *rows: dict[str, Any], euid: int = 1000) -> dict[str, Any]:
    """A host with NPUs and no npu-smi, /proc mounted with that option."""
    files = {"/proc/self/mountinfo": PROC.format(option), "/dev/davinci0": {"mode": "0660"}}
    commands = {"npu-smi info": {"error": "missing"}}
    return {"like": "npu-910b-8", "files": files, "processes": list(rows), "euid": euid, "commands": commands}


@pytest.mark.parametrize("option", ["hidepid=2", "hidepid=invisible", "gid=7,hidepid=ptraceable"])
def test_processes_that_are_hidden_are_unknown(option: str) -> None:
    for check in ("PROC001", "PROC003"):
        findings = judge(check, **hiding(option, MINE))
        unknown = [f for f in findings if f.outcome is Outcome.UNKNOWN]
        assert unknown and not [f for f in findings if f.outcome is Outcome.PASS and f.subject != "PROFILING_MODE"]
        assert all(f.reason is not None and option.rpartition(",")[2] in f.reason.en for f in unknown)


@pytest.mark.parametrize("option", ["hidepid=0", "hidepid=off", "relatime"])
def test_processes_that_are_not_hidden_are_not_there(option: str) -> None:
    assert {f.outcome for f in judge("PROC003", **hiding(option, MINE))} == {Outcome.PASS}


def test_root_and_the_group_that_sees_everything_are_believed() -> None:
    for example in (hiding("hidepid=2", MINE, euid=0), hiding("gid=7,hidepid=2", INIT, MINE)):
        assert Outcome.UNKNOWN not in {f.outcome for f in judge("PROC003", **example)}


def test_one_process_that_is_seen_does_not_speak_for_those_that_are_not() -> None:
    mine = {**MINE, "devices": ["/dev/davinci0"]}
    rows = (INIT, mine, row(60, 1, user="wang", opaque=True))
    findings = judge("PROC001", **hiding("rw", *rows))
    assert "npu0" not in [f.subject for f in findings if f.outcome is Outcome.PASS]


LIVE = """
from envtune.context.open import open_context
from envtune.host import LocalHost
from envtune.job.target import TargetOptions
from envtune.resources.processes.usage import profilers
import os
def judged():
    return [r for r in profilers(open_context(LocalHost(), TargetOptions())) if r.subject != "PROFILING_MODE"]
judged()  # everything is imported while this Python may be read
os.setgroups([])
os.setegid(65534)
os.seteuid(65534)
readings = judged()
print([(r.subject, r.value, str(r.reason)) for r in readings])
assert all(r.value is None and "hidepid" in r.reason.en for r in readings)
"""


@pytest.mark.root
def test_hidden_processes_live() -> None:
    """Another user in a namespace whose /proc hides processes, among them an msprof of root's."""
    inside = (
        "mount -t proc -o hidepid=2 proc /proc; (exec -a msprof sleep 60) & "
        '"$0" -B -c "$1"; status=$?; kill $!; exit $status'
    )
    argv = ["unshare", "-m", "-p", "-f", "--kill-child", "bash", "-c", inside, sys.executable, LIVE]
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONPATH": str(ROOT), "HOME": "/nonexistent"}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
