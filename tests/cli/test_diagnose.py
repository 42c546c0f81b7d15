"""`envtune diagnose` as its user meets it: what it says about a log, in which form, and how it ends."""

from __future__ import annotations

import gzip
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Mapping

import pytest
from helpers.examples import shared_host
from helpers.json_schema import conforms
from helpers.program import completed
from helpers.recorded import host_data, resolve
from helpers.rows import sampled
from typer.testing import CliRunner

from envtune.catalog.examples import example_data
from envtune.cli.app import app
from envtune.report.layout import display_width

SEPARATE = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner.__init__).parameters else {}
RUNNER = CliRunner(**SEPARATE)
SCHEMAS = Path(__file__).resolve().parents[2] / "docs/schema"
ACL = "terminate called after throwing an instance of 'c10::Error'\n  what():  HelpACLExecute:/src/NPUStream.cpp:158\n"
# What the guide's sample of a mixed-dtype stack looks like on the screen and in the host log, in other words.
LATE = """\
RuntimeError: Run:/home/ci/pytorch/aten/src/ATen/native/npu/utils/OpParamMaker.h:280 NPU error,NPU error code is:500002
[ERROR] RUNTIME(4711)kernel task happen error, retCode=0x28, [aicpu timeout].
[ERROR] RUNTIME(4711)aicpu kernel execute failed, device_id=0, stream_id=512, task_id=9, fault so_name=, extend_info=.
Error in atexit._run_exitfuncs:
Traceback (most recent call last):
  File "/usr/lib/python3.7/site-packages/torch/__init__.py", line 429, in _npu_shutdown
    torch._C._npu_shutdown()
RuntimeError: npuSynchronizeDevice:/home/ci/pytorch/c10/npu/NPUStream.cpp:806 NPU error, error code is 0
[ERROR] RUNTIME(471,python3.7):2021-03-04-05:06:07.100.200 [npu_driver.cc:1408]472 MemCopySync:drvMemcpy failed: kind=1!
[ERROR] RUNTIME(471,python3.7):2021-03-04-05:06:07.100.300 [logger.cc:113]472 KernelLaunch:launch kernel failed, \
kernel=1406/ArgMinWithValue_tvmbin, dim=32
"""
TWO_DEVICES = """\
Traceback (most recent call last):
  File "train.py", line 31, in worker
RuntimeError: ExchangeDevice:/home/ci/pytorch/c10/npu/sys_ctrl/npu_sys_ctrl.cpp:56 NPU error, error code is 500000
Error in atexit._run_exitfuncs:
RuntimeError: npuSynchronizeDevice:/home/ci/pytorch/c10/npu/NPUStream.cpp:806 NPU error, error code is 0
"""


class Desk:
    """A directory with logs, and the command line at it."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = tmp_path
        monkeypatch.chdir(tmp_path)
        for name, value in (("ENVTUNE_STATE", str(tmp_path / "state")), ("LC_ALL", "C.UTF-8"), ("COLUMNS", "100")):
            monkeypatch.setenv(name, value)

    def log(self, text: str, name: str = "train.log") -> str:
        (self.path / name).write_text(text, "utf-8")
        return name

    def run(self, *words: str, **more: Any) -> Any:
        return RUNNER.invoke(app, ["diagnose", *words], **more)

    def says(self, *words: str) -> str:
        """The text; a traceback of ours is never an answer."""
        done = self.run(*words)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return str(done.stdout)

    def data(self, *words: str) -> dict[str, Any]:
        """The answer as data, which keeps the published schema."""
        answer: dict[str, Any] = json.loads(self.says(*words, "-f", "json"))
        name = "diagnosis.json" if answer["schema"].endswith("/1") else "diagnosis-2.json"
        assert conforms(answer, json.loads((SCHEMAS / name).read_text("utf-8"))) == []
        return answer

    def ids(self, *words: str) -> list[str]:
        return [row["id"] for row in self.data(*words, "--no-check")["diagnoses"]]

    def recorded(self, **host: Any) -> str:
        """A recorded host of the catalog's examples, as a file."""
        return self.snapshot(example_data(host, shared_host))

    def snapshot(self, data: Mapping[str, Any]) -> str:
        (self.path / "host.json").write_text(json.dumps({**data, "schema": "envtune.snapshot/1"}))
        return "host.json"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


# ------------------------------------------------------------------------- which log it is


def test_without_a_log_the_newest_run_is_read_and_the_places_are_said(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(desk.path / "home"))
    desk.log(
        "[ERROR] ERR01007 OPS feature not supported\nRuntimeError: EI0006: Getting socket times out\n", "nohup.out"
    )
    done = desk.run("--no-check", "-f", "json")
    answer = json.loads(done.stdout)
    assert "nohup.out" in [Path(name).name for name in answer["inputs"]] and answer["diagnoses"]
    assert ". (nohup, Slurm, msrun): 1 file" in done.stderr and "no log in" in done.stderr
    assert done.exit_code == 1


def test_no_log_at_all_is_a_mistake_with_a_way_out(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(desk.path / "home"))
    done = completed("diagnose", env={**os.environ, "TMPDIR": str(desk.path)})
    assert done.returncode == 2 and done.stdout == ""
    assert f"{desk.path}/home/ascend/log (CANN): no log" in done.stderr and "envtune diagnose train.log" in done.stderr


def test_the_fix_of_an_entry_of_a_site_names_its_catalogue(desk: Desk) -> None:
    entry = desk.path / "our site/checks/faq/S01-slow-cores.yaml"
    entry.parent.mkdir(parents=True)
    entry.write_text(
        "{id: S01, name: slow-cores, title: The cores are slow, signatures: [{regex: our cores are slow}], "
        "cause: The governor., remedy: Set it., proves: [{check: CPU001}], side: host, "
        "examples: {match: [our cores are slow], near_miss: [our cores are fast]}}\n"
    )
    log = desk.log("RuntimeError: our cores are slow\n")
    log_of_two = desk.log(
        "RuntimeError: our cores are slow\nRuntimeError: NPU out of memory. Tried to allocate 2 GiB\n"
    )
    assert "(details: envtune explain ID --catalog 'our site'):" in desk.says(log_of_two, "--catalog", "our site")
    log = desk.log("RuntimeError: our cores are slow\n")
    command = "envtune fix --faq S01 --catalog 'our site'"
    troubled = desk.snapshot(host_data("910b-openeuler2203-troubled"))
    assert command in desk.says(log, "--catalog", "our site", "--snapshot", troubled)
    healthy = desk.snapshot(host_data("910b-openeuler2203-cann82"))
    assert "envtune fix" not in desk.says(log, "--catalog", "our site", "--snapshot", healthy)
    refused = RUNNER.invoke(app, ["fix", "--faq", "S01"])
    assert refused.exit_code == 2 and "--faq S01: unknown id or name 'S01'" in refused.stderr


def test_what_the_kernel_prints_is_read_as_it_is_pasted(desk: Desk) -> None:
    for stamp in ("[ 8123.456789] ", "[Sat Jun  1 10:00:05 2024] ", "Jun 01 10:00:05 node1 kernel: "):
        log = desk.log(
            f"{stamp}Out of memory: Killed process 4711 (python) total-vm:123kB, anon-rss:1kB\n", "dmesg.txt"
        )
        answer = desk.data(log, "--no-check")
        assert answer["first_error"]["line"] == 1, stamp


# ---------------------------------------------------------------------- which error it is


def test_the_kernel_that_a_late_report_names_is_not_the_culprit(desk: Desk) -> None:
    log = desk.log(LATE)
    answer = desk.data(log, "--no-check")
    assert [row["id"] for row in answer["diagnoses"]] == ["F09"] and answer["hints"][0]["id"] == "F03"
    assert "the kernel named in the log is not the cause" in " ".join(desk.says(log, "--no-check").split())
    assert "日志中指出的 kernel 不是根因" in desk.says(log, "--no-check", "--lang", "zh")


def test_the_more_telling_of_two_entries_in_one_text_is_the_answer(desk: Desk) -> None:
    answer = desk.data(desk.log(TWO_DEVICES), "--no-check")
    assert [row["id"] for row in answer["diagnoses"]] == ["F02"]
    assert [row["id"] for row in answer["hints"]] == ["F03"]


def test_a_code_that_many_errors_share_says_only_where_it_failed(desk: Desk) -> None:
    done = desk.run(desk.log("RuntimeError: NPU error, error code is 500000\n"), "-f", "json")
    answer = json.loads(done.stdout)
    assert (done.exit_code, [row["id"] for row in answer["diagnoses"]], answer["hints"]) == (1, ["500000"], [])


def test_weak_signs_are_hints_and_no_finding(desk: Desk) -> None:
    done = desk.run(desk.log("Error in atexit._run_exitfuncs:\n" + "loading the next part\n" * 20))
    assert done.exit_code == 4 and "Weak signs only" in done.stdout and "F03" in done.stdout


def test_a_weak_sign_with_which_a_log_ends_is_an_answer_of_low_confidence(desk: Desk) -> None:
    done = desk.run(desk.log("Error in atexit._run_exitfuncs:\n"))
    assert done.exit_code == 1 and "low confidence" in done.stdout and "F03" in done.stdout


@pytest.mark.parametrize(
    ("variables", "entry"),
    sampled(
        [("TASK_QUEUE_ENABLE=0\n", "F11"), ("export TASK_QUEUE_ENABLE='0'\n", "F11"), ("TASK_QUEUE_ENABLE=1\n", "F04")],
        2,
    ),
)
def test_the_environment_of_the_job_decides_what_its_log_leaves_open(desk: Desk, variables: str, entry: str) -> None:
    log, env = desk.log(ACL), desk.log(variables, "job.env")
    assert desk.ids(log) == ["F04"]
    assert desk.ids(log, "--env-file", env) == [entry]
    assert desk.ids(
        log, "--script", desk.log(f"set -e\n{variables}export TASK_QUEUE_ENABLE\npython train.py\n", "run.sh")
    ) == [entry]
    host = desk.recorded(like="cann-old", environ={"TASK_QUEUE_ENABLE": re.findall("[01]", variables)[0]})
    assert desk.ids(log, "--snapshot", host) == [entry]


def test_the_log_itself_may_say_it(desk: Desk) -> None:
    assert desk.ids(desk.log("+ export TASK_QUEUE_ENABLE=0\n" + ACL)) == ["F11"]


# ---------------------------------------------------------------------- what the host says to it


def test_proved_on_a_recorded_host_where_it_is_so(desk: Desk) -> None:
    record = "te/__init__.py,sha256=AAAAAAAA,1204\nte/tvm/__init__.py,sha256=BBBBBBBB,2211\n"
    place = "/usr/local/python3.7.5/lib/python3.7/site-packages/te-0.4.0.dist-info/RECORD"
    host = desk.recorded(like="cann-old", files={place: record})
    log = desk.log("RuntimeError: TVM/te/cce error.\n")
    row = desk.data(log, "--snapshot", host)["diagnoses"][0]
    assert (row["id"], row["verdict"]) == ("F08", "proved")
    former = desk.data(log, "--snapshot", host, "--schema", "1")
    assert former["schema"] == "envtune.diagnosis/1" and former["diagnoses"][0]["verdict"] == "confirmed"
    text = desk.says(log, "--snapshot", host)
    assert (
        "confirmed on the checked host" in text
        and "CANN003 te: failed; 0.4.0" in text
        and "envtune fix --faq" not in text  # the Python has no pip: fix would change nothing
    )
    assert "已在所检查的主机上确认" in desk.says(log, "--snapshot", host, "--lang", "zh")


def test_ruled_out_on_a_recorded_host_where_all_is_well(desk: Desk) -> None:
    host = desk.snapshot(resolve("910b-openeuler2203-cann82"))
    log = desk.log("ImportError: libhccl.so: cannot open shared object file: No such file or directory\n")
    row = desk.data(log, "--snapshot", host)["diagnoses"][0]
    assert (row["id"], row["verdict"]) == ("F06", "ruled_out"), row["findings"]
    text = desk.says(log, "--snapshot", host)
    assert (
        "ruled out: this is not the case now" in text
        and "CANN005 libhccl.so: passed" in text
        and "envtune fix" not in text
    )  # nothing there to repair


def test_a_failure_on_another_host_is_not_judged_by_this_one(desk: Desk) -> None:
    text = "ImportError: libhccl.so: cannot open shared object file: No such file or directory\n"
    for rank, host in enumerate(("nodeA", "nodeB")):
        (desk.path / host).mkdir()
        (desk.path / host / f"rank{rank}.log").write_text(text if host == "nodeB" else "step 1\n")
    row = desk.data("nodeA", "nodeB")["diagnoses"][0]
    assert (row["where"], row["verdict"], row["findings"]) == ({"rank": 1, "host": "nodeB"}, "not_here", [])
    said = " ".join(desk.says("nodeA", "nodeB").split())
    assert (
        f"not checked here: it failed on nodeB, and this is {os.uname().nodename}. "
        "On that host, run: envtune check --select CANN" in said
    )
    with_own_name = desk.path / os.uname().nodename
    (desk.path / "nodeB").rename(with_own_name)
    assert (
        desk.data("nodeA", with_own_name.name)["diagnoses"][0]["reason"].startswith("not checked here: it failed")
        is False
    )


# ---------------------------------------------------------------------- how it looks


PAGE = """\
F14  The operator is not available on the NPU backend

  log     train.log:3, 2 times (also line 5)
        | step 117 loss 2.04
        | Traceback (most recent call last):
        > RuntimeError: Could not run 'aten::trunc.out' with arguments from the
        | 'NPUTensorId' backend. 'aten::trunc.out' is only available for these
        | backends: [CPUTensorId].
        | step 118 skipped, which is a long line that does not fit into the ro …
  values  operator aten::trunc.out
"""


def test_the_page_leads_with_the_proof_and_keeps_its_width(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    error = (
        "RuntimeError: Could not run 'aten::trunc.out' with arguments from the 'NPUTensorId' backend. "
        "'aten::trunc.out' is only available for these backends: [CPUTensorId].\n"
    )
    long = "step 118 skipped, which is a long line that does not fit into the row of a narrow terminal\n"
    log = desk.log("step 117 loss 2.04\nTraceback (most recent call last):\n" + error + long + error)
    monkeypatch.setenv("COLUMNS", "80")
    text = desk.says(log, "--no-check")
    assert text.startswith(PAGE), text
    labels = [line[2:8].strip() for line in text.splitlines() if re.match(r"  \w", line)]
    assert labels == ["log", "values", "cause", "edit"] and "envtune fix" not in text  # the script has to change
    for columns in (60, 100):
        monkeypatch.setenv("COLUMNS", str(columns))
        for lang in ("en", "zh"):
            rows = desk.says(log, "--lang", lang).splitlines()
            assert max(map(display_width, rows)) <= columns, (columns, lang)


def test_whom_to_ask_and_what_to_attach(desk: Desk) -> None:
    log = desk.log("[ERROR] RUNTIME(7,python):2024-06-01-10:05:01.1 [e.cc:1]7 HBM MULTI BIT ECC, Uncorrectable ECC\n")
    row, text = desk.data(log, "--no-check")["diagnoses"][0], desk.says(log, "--no-check")
    assert row["side"] == "escalate" and "\n  help " in text
    assert "Attach the complete logs" in text and "$ envtune snapshot -o host.tar.gz" in text


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "markdown", "html"])
@pytest.mark.parametrize("text", ["EI0006 Getting socket times out", "RuntimeError: something odd"])
def test_where_a_recording_was_asked_it_is_what_to_send(desk: Desk, text: str, form: str) -> None:
    """`envtune snapshot` would record this machine, which has nothing to do with it."""
    log, recording = desk.log(f"RuntimeError: {text}\n"), desk.recorded(like="npu-910b-8")
    said = desk.says(log, "--snapshot", recording, "-f", form)
    assert "envtune snapshot" not in said and Path(recording).name in said.replace("\n", "")
    assert "envtune snapshot -o" in desk.says(log, "--no-check", "-f", form)


def test_colour_only_on_a_terminal_and_never_against_no_color(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    log = desk.log(TWO_DEVICES)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("envtune.cli.options.sys.stdout.isatty", lambda: True, raising=False)
    assert "\x1b[" not in desk.says(log)
    command = [sys.executable, "-m", "envtune", "diagnose", log, "--no-check"]
    shown = {}
    for value in ("", "1"):
        environ = {**os.environ, "TERM": "xterm", "NO_COLOR": value}
        leader, follower = os.openpty()
        subprocess.run(command, stdout=follower, stdin=subprocess.DEVNULL, env=environ, check=False)
        os.close(follower)
        shown[value] = os.read(leader, 65536)
        os.close(leader)
    assert b"\x1b[1m" in shown[""] and b"\x1b[" not in shown["1"]


def test_nothing_of_a_hostile_log_becomes_markup_or_a_terminal_command(desk: Desk) -> None:
    log = desk.log(
        "```\n@everyone <script>alert(1)</script> | #1 **x**\n"
        "RuntimeError: Could not run 'aten::<b>\x1b]0;owned\x07`@you`' with arguments from the 'NPUTensorId' backend. "
        "'x' is only available for these backends: [CPU].\n````\n"
    )
    page = desk.says(log, "--no-check", "-f", "markdown")
    fence = re.search(r"^(`{3,})text$", page, re.MULTILINE)
    assert fence is not None and len(fence[1]) == 5  # longer than any run of backticks in the log
    outside = re.sub(rf"^{fence[1]}text$.*?^{fence[1]}$", "", page, flags=re.DOTALL | re.MULTILINE)
    outside = re.sub("`[^`]*`", "", outside)
    assert (
        "@everyone" not in outside and "<script>" not in outside and not re.search(r"(?<!\\)<b>|(?<!\\)@you", outside)
    )
    assert "\x1b" not in page and "\x1b" not in desk.says(log, "--no-check")


def test_markdown_says_what_the_text_says(desk: Desk) -> None:
    page = desk.says(desk.log(LATE), "--no-check", "-f", "markdown")
    assert page.startswith("### F09 ") and "train.log:1" in page and "- **cause** " in page and "- **edit** " in page
    assert "Weak signs only" in page and "- F03 " in page


# ---------------------------------------------------------------------- nothing known


# what a log holds, and how `diagnose` ends
ENDS = {
    "step 10 loss 6.9 error 0.0\nsaved checkpoint (timeout 0, retries 0)\n": 0,
    "GetInputConstDataOut: ErrorNo: -1(failed)\n": 0,  # F12: harmless
    "GetInputConstDataOut: ErrorNo: -1(failed)\nKeyError: 'x'\n": 4,
    "KeyError: 'x'\n": 4,
    "[ERROR] HCCL(1,python): a text that nobody knows\n": 4,
    "RuntimeError: ExchangeDevice:\n": 1,
}


@pytest.mark.parametrize(("text", "status"), ENDS.items(), ids=repr)
def test_errors_that_no_entry_explains_are_no_clean_log(desk: Desk, text: str, status: int) -> None:
    assert desk.run(desk.log(text), "--no-check").exit_code == status


def test_of_an_unknown_failure_the_error_is_shown_and_how_to_report_it(desk: Desk) -> None:
    log = desk.log(
        'step 1\nstep 2\nTraceback (most recent call last):\n  File "t.py", line 3, in <module>\nKeyError: "x"\n'
    )
    done = desk.run(log)
    assert done.exit_code == 4 and done.stdout.startswith("No known error in train.log (5 lines).")
    assert 'KeyError: "x"' in done.stdout and "step 2" in done.stdout
    assert "$ envtune snapshot -o host.tar.gz" in done.stdout
    zh = desk.says(log, "--lang", "zh")
    assert zh.startswith("train.log（5 行）中没有发现已知错误。") and "如需求助，请附上完整日志" in zh
    error = desk.data(log)["first_error"]
    assert error["file"] == log and error["line"] in (3, 5)
    assert '> KeyError: "x"' in done.stdout or "> Traceback" in done.stdout
    assert "```text" in desk.says(log, "-f", "markdown")


def test_of_a_log_without_any_error_that_is_said(desk: Desk) -> None:
    assert "No line looks like an error, either." in desk.says(desk.log("step 1\nstep 2\n"))


ADD = "Other logs may show more. Add those of the other ranks and the plog of that run:"


@pytest.mark.parametrize("text", ["step 1\n", "KeyError: 'x'\n"])
def test_without_a_known_error_the_logs_to_add_are_named(desk: Desk, text: str) -> None:
    page = desk.says(desk.log(text, "a log"), "--no-check")
    assert "(1 line).\n" in page and f"{ADD}\n  $ envtune diagnose 'a log' ~/ascend/log\n" in page
    page = desk.says(desk.log(text, "plog-1_20250101.log"), "--no-check")
    assert "Other logs may show more: add those of the other ranks and hosts.\n" in page
    assert f"{ADD}\n  $ envtune diagnose ~/ascend/log\n" in str(desk.run("-", "--no-check", input=text).stdout)
    assert "empty" in desk.says(desk.log(""))


# ---------------------------------------------------------------------- inputs, and how it ends


def test_standard_input_gives_what_the_file_gives(desk: Desk) -> None:
    log = desk.log(TWO_DEVICES)
    of_file = desk.run(log, "--no-check")
    of_stream = desk.run("-", "--no-check", input=TWO_DEVICES)
    assert of_stream.exit_code == of_file.exit_code == 1
    there = re.sub(r"train\.log:(\d+)", r"standard input, line \1", of_file.stdout)
    assert of_stream.stdout.split() == there.split()


def test_how_it_ends(desk: Desk) -> None:
    known, quiet = desk.log(TWO_DEVICES), desk.log("step 1\n", "quiet.log")
    (desk.path / "empty").mkdir()
    broken = desk.path / "broken.log.gz"
    broken.write_bytes(gzip.compress(b"step 1\n" * 9000)[:-20])
    for words, code, words_on_stderr in (
        ([known], 1, ""),
        ([quiet], 0, ""),
        (["missing.log"], 2, "missing.log"),
        (["empty"], 2, "empty"),
        ([known, "--since", "soon"], 2, "soon"),
        ([known, "-f", "yaml"], 2, "yaml"),
        ([known, "--lang", "fr"], 2, "fr"),
        ([known, "--snapshot", "missing.json"], 2, "missing.json"),
        (["broken.log.gz"], 3, "broken.log.gz"),
        ([known, "broken.log.gz"], 1, "broken.log.gz"),
    ):
        done = desk.run(*words)
        assert done.exit_code == code, (words, done.stderr)
        assert words_on_stderr in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_closed_standard_input_is_said_and_a_short_pipe_is_no_traceback(desk: Desk) -> None:
    command = [sys.executable, "-m", "envtune", "diagnose"]
    closed = subprocess.run(["sh", "-c", 'exec "$@" - <&-', "sh", *command], capture_output=True, text=True)
    assert (closed.returncode, closed.stdout) == (3, "") and "standard input is closed" in closed.stderr
    log = desk.log(TWO_DEVICES)
    cut = subprocess.run(
        ["sh", "-c", '"$@" | head -n 1', "sh", *command, log, "--no-check"], capture_output=True, text=True
    )
    assert cut.stdout.startswith("F02") and "Traceback" not in cut.stderr


def test_help_shows_how_it_is_used(desk: Desk) -> None:
    text = desk.says("--help")
    assert "envtune diagnose hostA/ hostB/" in text and "Exit status: 0 no known error, 1 known error found" in text


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        ("en", ["What to do", "What proves it on the host", "CANN003", "te/cce error", "envtune fix --faq F08"]),
        ("zh", ["处理方法", "在主机上可以证实它的是", "CANN003", "te/cce error", "envtune fix --faq F08"]),
    ],
)
def test_explain_tells_all_about_an_entry(lang: str, words: list[str]) -> None:
    done = RUNNER.invoke(app, ["explain", "f08", "--lang", lang])
    assert done.exit_code == 0 and all(word in done.stdout for word in words)
