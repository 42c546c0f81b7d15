"""`envtune run`: the preflight of a node, the profile for the command alone, and the diagnosis when it fails."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator, Mapping, Optional, Sequence

import pytest
from helpers.examples import example_context
from helpers.program import completed
from helpers.rows import sampled
from helpers.terminals import RUN, Terminal, state_of, wait_until

from envtune.run.profile import LOCAL_RANKS, child_environment, later_rank

ENVTUNE = [sys.executable, "-m", "envtune", "run"]
SHOW = "import json, os; print(json.dumps(dict(os.environ)))"
LAUNCHERS = (*LOCAL_RANKS, "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
NEW = {"like": ["npu-910b-8", "torch210"]}


def clean(**more: str) -> dict[str, str]:
    """This process's variables without what a job or a launcher around the tests may have set."""
    ours = {k: v for k, v in os.environ.items() if k not in LAUNCHERS and not k.startswith(("ASCEND", "HCCL"))}
    return {**ours, "LANG": "C", "LC_ALL": "C.UTF-8", **more}


def run(
    *argv: str, env: Mapping[str, str] | None = None, cwd: Optional[Path] = None
) -> subprocess.CompletedProcess[str]:
    return completed("run", *argv, env=clean() if env is None else env, cwd=cwd)


@pytest.fixture(scope="module")
def npu_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Python with a torch_npu beside it, by which this host counts as one of Ascend's."""
    root = tmp_path_factory.mktemp("job")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
    (site,) = root.glob("lib/python*/site-packages")
    for name, version in (("torch", "2.1.0"), ("torch_npu", "2.1.0.post8")):
        info = site / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    yield str(root / "bin" / "python")


# ------------------------------------------------------------------ the profile


def test_the_command_gets_the_profile_and_nothing_else_does(npu_python: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SHOW)
    before = clean(TASK_QUEUE_ENABLE="0", ASCEND_GLOBAL_LOG_LEVEL="1", DUMP_GE_GRAPH="2", HCCL_WHITELIST_DISABLE="0")
    done = run("--no-preflight", "--", npu_python, str(script), env=before, cwd=tmp_path)
    got = json.loads(done.stdout)
    differs = {k: got.get(k) for k in {*got, *before} if got.get(k) != before.get(k)}
    assert {k: v for k, v in differs.items() if not k.endswith("PATH")} == {
        "TASK_QUEUE_ENABLE": "1",
        "ASCEND_GLOBAL_LOG_LEVEL": "3",
        "DUMP_GE_GRAPH": None,
    }
    said = done.stderr.splitlines()
    assert len(said) == len(differs) + 1
    assert any(line.startswith("envtune: TASK_QUEUE_ENABLE=1 (was 0): ") for line in said)
    assert any(line.startswith("envtune: DUMP_GE_GRAPH not set (was 2): ") for line in said)
    assert any(line.startswith("envtune: HCCL_WHITELIST_DISABLE=0 left unchanged: ") for line in said)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.py"]


@pytest.mark.slow
def test_a_variable_is_kept_by_name_and_a_profile_by_none(npu_python: str) -> None:
    env = clean(TASK_QUEUE_ENABLE="0")
    kept = run("--no-preflight", "--keep", "TASK_QUEUE_ENABLE", "--", npu_python, "-c", SHOW, env=env)
    assert json.loads(kept.stdout)["TASK_QUEUE_ENABLE"] == "0"
    assert "envtune: TASK_QUEUE_ENABLE=0 left unchanged: --keep\n" in kept.stderr
    none = run("--no-preflight", "--profile", "none", "--", npu_python, "-c", SHOW, env=env)
    assert json.loads(none.stdout)["TASK_QUEUE_ENABLE"] == "0"
    assert none.stderr == ""


@pytest.mark.slow
def test_debugging(npu_python: str) -> None:
    done = run("--no-preflight", "-p", "debug", "--lang", "zh", "--", npu_python, "-c", SHOW)
    assert json.loads(done.stdout)["ASCEND_LAUNCH_BLOCKING"] == "1"
    assert "envtune: ASCEND_LAUNCH_BLOCKING=1：" in done.stderr


def test_where_nothing_of_ascend_is_nothing_changes() -> None:
    env = clean(TASK_QUEUE_ENABLE="0", DUMP_GE_GRAPH="2")
    bare = example_context({"environ": env})
    given, notes = child_environment(bare, "train", ())
    assert (given.variables, notes) == (env, ())


@pytest.mark.slow
def test_the_environment_is_known_under_sudo_and_ssh(npu_python: str) -> None:
    """mpirun starts its ranks on other hosts over ssh; what the command gets we hand over ourselves."""
    env = clean(TASK_QUEUE_ENABLE="0", SSH_CONNECTION="10.0.0.1 1 10.0.0.2 22", SUDO_USER="me")
    done = run("--no-preflight", "--", npu_python, "-c", SHOW, env=env)
    assert json.loads(done.stdout)["TASK_QUEUE_ENABLE"] == "1"


@pytest.mark.parametrize("like", ["cann-mid", "cann-new", "cann-old"])
def test_what_cann_needs_is_added_and_named(like: str) -> None:
    """set_env.sh was not sourced in this shell: the command gets what it would have set."""
    from envtune.job.target import JobEnvironment
    from envtune.resources.environment.simulate import with_environment

    shell = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/root"}
    context = with_environment(example_context({"like": like}), JobEnvironment(shell, "this shell"))
    given, notes = child_environment(context, "train", ())
    now = given.variables or {}
    assert set(now) > set(shell)
    named = {note.en.replace("=", " ").replace(":", " ").split()[0] for note in notes}
    assert named >= {name for name in {*now, *shell} if now.get(name) != shell.get(name)}
    assert all(note.zh != note.en for note in notes)


def test_a_script_of_cann_that_cannot_be_read_takes_no_variable_away() -> None:
    script = "/usr/local/Ascend/ascend-toolkit/set_env.sh"
    shell = {"PATH": "/usr/bin:/bin", "HOME": "/root", "ASCEND_OPP_PATH": "/usr/local/Ascend/old/opp"}
    scene = example_context({"like": "cann-mid", "environ": shell, "files": {script: {"size": 900, "error": "denied"}}})
    given, _ = child_environment(scene, "train", ())
    assert shell.items() <= (given.variables or {}).items()


def test_a_rank_keeps_the_master_its_launcher_named() -> None:
    env = {"MASTER_ADDR": "203.0.113.9", "WORLD_SIZE": "8", "COMBINED_ENABLE": "1", "LOCAL_WORLD_SIZE": "8"}
    alone, _ = child_environment(example_context({**NEW, "environ": env}), "train", ())
    rank, _ = child_environment(example_context({**NEW, "environ": {**env, "LOCAL_RANK": "0"}}), "train", ())
    assert (rank.variables or {})["MASTER_ADDR"] == "203.0.113.9"
    assert (alone.variables or {}).keys() == (rank.variables or {}).keys() - {"LOCAL_RANK"}


# ------------------------------------------------------------------ the preflight


def test_a_finding_stops_the_command_unless_forced(npu_python: str, tmp_path: Path) -> None:
    started = tmp_path / "started"
    argv = ["--select", "ENV001", "--fail-on", "low", "-p", "none", "--", npu_python, "-c"]
    code = f"open({str(started)!r}, 'w'); raise SystemExit(4)"
    env = clean(TASK_QUEUE_ENABLE="0")
    stopped = run(*argv, code, env=env)
    assert (stopped.returncode, started.exists()) == (1, False)
    assert "envtune: ENV001 [TASK_QUEUE_ENABLE]" in stopped.stderr
    forced = run("--force", *argv, code, env=env)
    assert (forced.returncode, started.exists()) == (4, True)
    assert "envtune: ENV001 [TASK_QUEUE_ENABLE]" in forced.stderr


@pytest.mark.slow
def test_the_preflight_judges_what_the_command_will_get(npu_python: str, tmp_path: Path) -> None:
    """The profile cures what would stop it; a launch script that sets it back is found out."""
    (tmp_path / "train.py").write_text("print('ran')")
    (tmp_path / "train.sh").write_text(f"export TASK_QUEUE_ENABLE=0\n{npu_python} train.py\n")
    env = clean(TASK_QUEUE_ENABLE="0", PATH=f"{Path(npu_python).parent}:{os.environ['PATH']}")
    options = ["--select", "ENV001", "--fail-on", "low", "--"]
    cured = run(*options, npu_python, "train.py", env=env, cwd=tmp_path)
    assert (cured.returncode, cured.stdout) == (0, "ran\n")
    for back in (["bash", "train.sh"], ["env", "TASK_QUEUE_ENABLE=0", npu_python, "train.py"]):
        stopped = run(*options, *back, env=env, cwd=tmp_path)
        assert (stopped.returncode, stopped.stdout) == (1, "")


@pytest.mark.slow
def test_what_cannot_be_told_costs_one_line(npu_python: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('ran'); raise SystemExit(3)")
    (tmp_path / "train.sh").write_text(f"export TASK_QUEUE_ENABLE=$(date +%u)\n{npu_python} train.py\n")
    env = clean(PATH=f"{Path(npu_python).parent}:{os.environ['PATH']}")
    options = ["--no-capture", "--select", "ENV001,ENV015", "--fail-on", "low", "--"]
    done = run(*options, "bash", "train.sh", env=env, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "ran\n")
    untold = [line for line in done.stderr.splitlines() if line.startswith("envtune: unknown: ")]
    assert untold == ["envtune: unknown: ENV001, ENV015 (envtune check)"]


@pytest.mark.parametrize(
    ("option", "value"), sampled([("--fail-on", "grave"), ("--profile", "fast"), ("--select", "NOPE")], 3)
)
def test_a_slip_is_told(option: str, value: str) -> None:
    done = run(option, value, "--", "true")
    assert done.returncode == 2
    assert value in done.stderr


@pytest.mark.slow
def test_the_options_of_the_command_are_the_commands() -> None:
    done = run("--no-preflight", "sh", "-c", 'echo "$@"', "x", "--lang", "zh", "--force", "--help")
    assert done.stdout == "--lang zh --force --help\n"


# ------------------------------------------------------------------ one preflight per node

# As torchrun does it: every rank is started at once; the first that fails ends the others, and is the launcher's end.
LAUNCHER = """
import os, subprocess, sys, time
ranks = [subprocess.Popen(sys.argv[2:], env={**os.environ, sys.argv[1]: str(n), "RANK": str(n)}, start_new_session=True)
         for n in range(3)]
while all(r.poll() in (None, 0) for r in ranks) and any(r.poll() is None for r in ranks): time.sleep(0.02)
failed = [r for r in ranks if r.poll()]
for r in ranks:
    if r.poll() is None: r.terminate()
for r in ranks: r.wait()
sys.exit(failed[0].returncode if failed else 0)
"""


def launch(variable: str, *argv: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", LAUNCHER, variable, *ENVTUNE, *argv],
        capture_output=True,
        text=True,
        timeout=120,
        env=env,
    )


@pytest.mark.slow
def test_only_the_first_rank_checks_and_all_get_the_same_profile(npu_python: str) -> None:
    code = "import os; os.write(1, (os.environ['RANK'] + ' ' + os.environ['TASK_QUEUE_ENABLE'] + '\\n').encode())"
    argv = ["--select", "CANN001", "--force", "--", npu_python, "-c", code]
    done = launch("LOCAL_RANK", *argv, env=clean(TASK_QUEUE_ENABLE="0"))
    assert sorted(done.stdout.splitlines()) == ["0 1", "1 1", "2 1"], done.stderr
    assert done.stderr.count("TASK_QUEUE_ENABLE=1 (was 0)") == 1
    assert done.stderr.count("CANN001") == 1


@pytest.mark.slow
def test_the_launcher_ends_the_others_when_the_first_is_stopped(npu_python: str) -> None:
    argv = [
        "--select",
        "ENV001",
        "--fail-on",
        "low",
        "-p",
        "none",
        "--",
        npu_python,
        "-c",
        "import time; time.sleep(60)",
    ]
    done = launch("LOCAL_RANK", *argv, env=clean(TASK_QUEUE_ENABLE="0"))
    assert done.returncode == 1
    assert done.stderr.count("ENV001") == 1


@pytest.mark.parametrize("name", LOCAL_RANKS)
def test_ranks_of_every_launcher(name: str) -> None:
    assert later_rank({name: "1"})
    assert not later_rank({name: "0"})
    assert not later_rank({name: ""})
    assert not later_rank({})


def test_torchrun_within_a_slurm_task() -> None:
    assert not later_rank({"SLURM_LOCALID": "0", "LOCAL_RANK": "0"})
    assert later_rank({"SLURM_LOCALID": "0", "LOCAL_RANK": "3"})


@pytest.mark.slow
@pytest.mark.parametrize("mpirun", ["mpirun.openmpi --allow-run-as-root --oversubscribe", "mpiexec.hydra"])
def test_under_mpirun(mpirun: str, npu_python: str) -> None:
    words = mpirun.split()
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    argv = [*words, "-n", "3", *ENVTUNE, "--select", "CANN001", "--force", "--", npu_python, "-c"]
    env = clean(TASK_QUEUE_ENABLE="0")
    code = "import os; print(os.environ['TASK_QUEUE_ENABLE'])"
    done = subprocess.run([*argv, code], capture_output=True, text=True, timeout=120, env=env)
    assert (done.returncode, done.stdout.split()) == (0, ["1"] * 3)
    assert done.stderr.count("CANN001") == 1
    failed = subprocess.run([*argv, "raise SystemExit(5)"], capture_output=True, text=True, timeout=120, env=env)
    assert failed.returncode == 5


# ------------------------------------------------------------------ when it cannot be started, and when it fails


@pytest.mark.slow
def test_a_command_that_is_not_there_or_cannot_run(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program")
    for name, lang, status, said in (
        ("no-such-command", "en", 127, ": command not found"),
        ("no-such-command", "zh", 127, "：找不到命令"),
        (str(plain), "en", 126, ": Permission denied"),
    ):
        done = run("--no-preflight", "-p", "none", "--lang", lang, "--", name)
        assert (done.returncode, done.stderr) == (status, f"envtune: {name}{said}\n")


def test_false_says_nothing() -> None:
    done = subprocess.run([*RUN, "false"], capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")


def said_of(script: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*RUN, "sh", "-c", script], capture_output=True, text=True, timeout=120, **options)


LIBRARY = "ImportError: libhccl.so: cannot open shared object file"


@pytest.mark.parametrize(
    ("end", "status", "words"),
    sampled([("exit 5", 5, "sh ended with status 5"), ("kill -SEGV $$", -11, "sh was ended by SIGSEGV")], 2),
)
def test_a_failed_command_is_diagnosed_and_its_status_kept(end: str, status: int, words: str) -> None:
    done = said_of(f"echo '{LIBRARY}' >&2; {end}")
    assert done.returncode == status
    assert words in done.stderr and "F06" in done.stderr
    assert done.stdout == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lang", "words"),
    sampled(
        [("en", "sh was ended by SIGKILL; for the usual cause: envtune explain rank-killed"), ("zh", "SIGKILL")], 2
    ),
)
def test_a_command_that_was_killed_is_said_to_be(lang: str, words: str) -> None:
    """By the kernel for want of memory, say: it leaves no word of its own behind."""
    done = run("--no-preflight", "-p", "none", "--lang", lang, "--", "sh", "-c", "kill -9 $$")
    assert done.returncode == -9 and done.stderr.count("\n") == 1 and words in done.stderr
    assert run("--no-preflight", "-p", "none", "--", "sh", "-c", "kill -2 $$").stderr == ""


@pytest.mark.slow
def test_an_error_early_in_much_output_is_found() -> None:
    done = said_of(f"echo '{LIBRARY}'; yes 'step done' | head -c 30000000; exit 5")
    assert "F06" in done.stderr
    assert "stdout:1\n" in done.stderr


@pytest.mark.slow
def test_output_in_a_file_is_diagnosed_with_its_place(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    with log.open("w") as file:
        done = subprocess.run(
            [*RUN, "sh", "-c", f"echo one; echo '{LIBRARY}'; exit 5"],
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
        )
    assert f"{log}:2" in done.stderr
    assert log.read_text() == f"one\n{LIBRARY}\n"


@pytest.mark.slow
def test_on_a_terminal_too() -> None:
    terminal = Terminal([*RUN, "sh", "-c", f"echo '{LIBRARY}'; exit 5"])
    assert os.WEXITSTATUS(terminal.end()) == 5
    assert b"F06" in terminal.seen


@pytest.mark.slow
def test_no_capture_hands_the_descriptors_over(tmp_path: Path) -> None:
    argv = [*RUN[:-1], "--no-capture", "--", "sh", "-c", f"ls -l /proc/self/fd/1; echo '{LIBRARY}'; exit 5"]
    read, write = os.pipe()
    done = subprocess.run(argv, stdout=write, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(write)
    with os.fdopen(read) as file:
        assert f"pipe:[{os.fstat(read).st_ino}]" in file.read()
    assert (done.returncode, done.stderr) == (5, "")


@pytest.mark.parametrize("number", sampled([signal.SIGINT, signal.SIGTERM], 2))
def test_who_ends_it_wants_no_diagnosis(number: int) -> None:
    script = f"trap 'exit 9' INT TERM; echo '{LIBRARY}' >&2; echo ready; while :; do sleep 0.02; done"
    with subprocess.Popen([*RUN, "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stderr is not None
        child.stdout.readline()
        os.kill(child.pid, number)
        assert child.stderr.read().decode() == LIBRARY + "\n"
        assert child.wait(60) == 9


def plog_line(folder: Path, pid: str) -> str:
    line = "[ERROR] HCCL(7,python):2024-06-01-10:00:00.000.000 [x.cc:1]7 HCCL_RDMA_SL[1000] is invalid. except: [0, 7]"
    return f"mkdir -p {folder}; echo '{line}' > {folder}/plog-{pid}_20240601100000000.log"


@pytest.mark.slow
def test_the_jobs_plog_is_read_and_another_jobs_is_not(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "ascend" / "log" / "debug" / "plog", tmp_path / "elsewhere"
    env = {**os.environ, "HOME": str(tmp_path)}
    assert "H101" in said_of(f"{plog_line(home, '$$')}; exit 1", env=env).stderr
    assert "H101" not in said_of("exit 1", env=env).stderr, "written before"
    assert "H101" not in said_of(f"{plog_line(home, str(os.getpid()))}; exit 1", env=env).stderr, "its process runs on"
    assert (
        "H101"
        in said_of(
            f"{plog_line(elsewhere, '$$')}; exit 1", env={**env, "ASCEND_PROCESS_LOG_PATH": str(elsewhere)}
        ).stderr
    )


FAULTS = {
    "raises": "raise RuntimeError('no')",
    "crashes": "os.kill(os.getpid(), 11)",
    "hangs": "time.sleep(600)",
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_diagnosis_does_not_change_the_end(fault: str) -> None:
    code = (
        "import os, sys, time\nfrom envtune.cli import main, run\nfrom envtune.run import failure\n"
        f"def broken(*_, **__):\n    {FAULTS[fault]}\n"
        "failure.diagnose_files = broken\nrun.DIAGNOSIS_SECONDS = 0.5\nmain()"
    )
    argv = [sys.executable, "-c", code, *RUN[3:], "sh", "-c", f"echo '{LIBRARY}' >&2; exit 5"]
    assert subprocess.run(argv, capture_output=True, timeout=60).returncode == 5


@pytest.mark.slow
def test_a_launcher_need_not_wait_for_the_diagnosis() -> None:
    code = (
        "import os, sys, time\nfrom envtune.cli import main\nfrom envtune.run import failure\n"
        "def slow(*_, **__):\n    print('diagnosing', flush=True)\n    time.sleep(600)\n"
        "failure.diagnose_files = slow\nmain()"
    )
    argv: Sequence[str] = [sys.executable, "-c", code, *RUN[3:], "sh", "-c", "exit 5"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"diagnosing\n"
        wait_until(lambda: state_of(child.pid) == "S", "it waits for the diagnosis")
        child.terminate()
        assert child.wait(60) == 5
