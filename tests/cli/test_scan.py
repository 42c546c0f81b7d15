"""`envtune scan` as a user meets it: a directory with launch files, in an editor, in CI, and with a policy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from helpers.command_line import RUNNER
from helpers.examples import ROOT
from helpers.json_schema import conforms
from helpers.launch_files import CASES, write
from helpers.rows import sampled
from lxml import etree

from envtune.cli.app import app
from envtune.report.scan.data import SCAN
from envtune.schema import json_schema as published

TRAIN = "#!/bin/bash\nexport ASCEND_GLOBAL_LOG_LEVEL=0\nexport DUMP_GRAPH_LEVEL=2\npython train.py\n"


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def leave(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr("envtune.cli.options.exit_now", leave)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.chdir(tmp_path)


def run(*words: str, verb: str = "scan") -> Any:
    return RUNNER.invoke(app, [verb, *words])


def test_a_finding_has_its_line_and_what_to_do() -> None:
    Path("train.sh").write_text(TRAIN)
    ended = run("train.sh")
    assert ended.exit_code == 1
    assert "train.sh:2: medium ENV003, ENV015 ASCEND_GLOBAL_LOG_LEVEL is not the expected log level" in ended.stdout
    assert "    $ export ASCEND_GLOBAL_LOG_LEVEL=3" in ended.stdout
    assert "train.sh:3: low ENV005" in ended.stdout
    assert "1 launch file, 2 problems" in ended.stdout
    assert "2 of them can be fixed; see the changes: envtune scan --fix" in ended.stdout
    assert "train.sh:2: 一般 ENV003" in run("train.sh", "--lang", "zh").stdout


@pytest.mark.parametrize(
    ("text", "words", "status"),
    [
        (TRAIN, (), 1),
        (TRAIN, ("--fail-on", "high"), 0),
        (TRAIN, ("--fail-on", "none"), 0),
        (TRAIN, ("--select", "ENV005"), 0),
        (TRAIN, ("--select", "ENV005", "--fail-on", "low"), 1),
        (TRAIN, ("--ignore", "ENV003,ENV015"), 0),
        (TRAIN, ("--select", "CPU"), 2),
        (TRAIN, ("--format", "html"), 2),
        ("python train.py\n", (), 0),
        ("export ASCEND_GLOBAL_LOG_LEVEL=$1\npython train.py\n", (), 3),
        ("export ASCEND_GLOBAL_LOG_LEVEL=3 # envtune: ignore ENV003\n", (), 3),
        ("export ASCEND_GLOBAL_LOG_LEVEL=0 # envtune: ignore ENV003 -- a reason\n", (), 0),
    ],
)
def test_exit_statuses(text: str, words: tuple[str, ...], status: int) -> None:
    Path("train.sh").write_text(text)
    assert run(".", *words).exit_code == status


def test_nothing_to_scan() -> None:
    Path("notes.md").write_text("export TASK_QUEUE_ENABLE=0\n")
    assert run(".").exit_code == 3
    assert "no launch files found" in run(".").stdout
    missing = run("missing.sh")
    assert missing.exit_code == 2 and "missing.sh: No such file or directory" in missing.stderr


def test_fix_prints_a_diff_and_writes_nothing() -> None:
    Path("train.sh").write_text(TRAIN)
    ended = run("train.sh", "--fix")
    assert (
        "-export ASCEND_GLOBAL_LOG_LEVEL=0\n" in ended.stdout and "+export ASCEND_GLOBAL_LOG_LEVEL=3\n" in ended.stdout
    )
    assert "-export DUMP_GRAPH_LEVEL=2\n" in ended.stdout
    assert Path("train.sh").read_text() == TRAIN
    Path("train.sh").write_text("python train.py\n")
    assert run("train.sh", "--fix").stdout.strip() == ""


def test_a_policy_waives_and_changes_severities() -> None:
    Path("train.sh").write_text(TRAIN)
    Path("site.yaml").write_text(
        "waivers:\n- {check: ENV003, reason: ticket 1, owner: li, expires: 2099-01-01}\n"
        "- {check: ENV015, reason: ticket 1, owner: li, expires: 2099-01-01}\n"
        "severities: {ENV005: high}\n"
    )
    ended = run("train.sh", "--policy", "site.yaml")
    assert "train.sh:3: high ENV005" in ended.stdout, ended.stdout + ended.stderr
    assert "train.sh:2" not in ended.stdout


@pytest.mark.parametrize("case", sampled(CASES[::3], 6))
def test_every_format_is_valid(case: Any, tmp_path: Path) -> None:
    write(tmp_path, case)
    run(
        *case.get("scan", ["."]),
        "--format",
        "json=a.json",
        "--format",
        "sarif=a.sarif",
        "--format",
        "junit=a.xml",
        "--fix",
    )
    data = json.loads(Path("a.json").read_text("utf-8"))
    assert conforms(data, published.document("envtune.scan/1", SCAN)) == []
    assert data["summary"]["problems"] == len(case.get("problems", ()))
    schema = json.loads((ROOT / "tests" / "data" / "sarif-schema-2.1.0.json").read_text("utf-8"))
    sarif = json.loads(Path("a.sarif").read_text("utf-8"))
    assert [error.message for error in jsonschema.Draft4Validator(schema).iter_errors(sarif)] == []
    wrong = [one for file in data["files"] for one in file["findings"]]
    assert len(sarif["runs"][0]["results"]) == len(wrong)
    xsd = etree.XMLSchema(etree.parse(str(ROOT / "tests" / "data" / "junit-10.xsd")))
    xsd.assertValid(etree.parse("a.xml"))


def test_sarif_names_the_line_and_why_something_is_accepted() -> None:
    Path("train.sh").write_text("export ASCEND_GLOBAL_LOG_LEVEL=0 # envtune: ignore ENV003 -- a hang\n")
    (result, other) = json.loads(run(".", "--format", "sarif").stdout)["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "train.sh"}, "region": {"startLine": 1}}
    assert result["suppressions"] == [{"kind": "inSource", "status": "accepted", "justification": "a hang"}]
    assert other["ruleId"] == "ENV015" and other["suppressions"]


def test_a_junit_case_fails_where_the_exit_status_says_so() -> None:
    Path("train.sh").write_text(TRAIN)
    root = etree.fromstring(run(".", "--format", "junit").stdout.encode())
    cases = {case.get("name").split()[0]: [child.tag for child in case] for case in root.iter("testcase")}
    assert cases["ENV003"] == ["failure"] and cases["ENV005"] == ["skipped"] and cases["ENV103"] == []


def test_the_same_id_for_a_shell_a_script_and_a_finished_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """What scan says of a script, `check` says of the same variables of this shell, a script and a finished job."""
    settings = {"ASCEND_GLOBAL_LOG_LEVEL": "0", "TASK_QUEUE_ENABLE": "0", "HCCL_CONNECT_TIMEOUT": "x"}
    Path("train.sh").write_text("".join(f"export {name}={value}\n" for name, value in settings.items()))
    Path("profiler_metadata.json").write_text(json.dumps({"ENV_VARIABLES": settings}))
    scanned = json.loads(run("train.sh", "--format", "json").stdout)
    expected = {
        (one["finding"]["id"], one["finding"]["subject"], one["finding"]["actual"], one["finding"]["severity"])
        for file in scanned["files"]
        for one in file["findings"]
    }
    assert {row[0] for row in expected} == {"ENV001", "ENV003", "ENV015", "ENV103"}
    for name in ("SSH_CONNECTION", "SUDO_USER", "SUDO_COMMAND"):
        monkeypatch.delenv(name, raising=False)
    for words in (("--script", "train.sh"), ("--env-file", "profiler_metadata.json")):
        checked = json.loads(run("--select", "ENV", "--format", "json", *words, verb="check").stdout)
        found = {
            (one["id"], name, one["actual"], one["severity"])
            for one in checked["findings"]
            if one["outcome"] == "fail"
            for name in one["subject"].split(", ")
        }
        assert expected <= found, words
