"""The public functions: what they return, that it renders as the commands do, and that importing them costs nothing."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.examples import ROOT
from helpers.recorded import resolve
from helpers.rows import sampled
from typer.testing import CliRunner

import envtune
from envtune.cli.app import app
from envtune.diagnose import scan  # whose import binds the package to the name of the public function

SEPARATE = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner.__init__).parameters else {}
RUNNER = CliRunner(**SEPARATE)
EXAMPLE = """\
import envtune

report: envtune.Report = envtune.check(
    envtune.open_snapshot("host.tar.gz"), envtune.TargetOptions(script="train.sh"), select=["CPU"]
)
failed: list[str] = [finding.id for finding in report.findings if finding.outcome is envtune.Outcome.FAIL]
plan: envtune.Plan = envtune.plan(options=envtune.FixOptions(peers=("10.0.0.2",)))
found: envtune.DiagnosisReport = envtune.diagnose(["train.log"], since="2024-03-28 10:25")
text: str = envtune.to_json(report, "zh") + envtune.to_json(plan) + envtune.to_json(found)
try:
    envtune.check(envtune.LocalHost(), catalogue=envtune.load_catalogue(), severity=envtune.Severity.HIGH)
except envtune.EnvtuneError as error:
    print(error.to("zh"))
"""


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    path = tmp_path / "host.json"
    path.write_text(json.dumps({**resolve("910a-centos76-nnae202"), "schema": "envtune.snapshot/1"}), "utf-8")
    return path


def command(*words: str) -> dict[str, object]:
    done = RUNNER.invoke(app, words)
    data: dict[str, object] = json.loads(done.stdout)
    return data


def without_clock(data: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in data.items() if key not in ("started", "seconds")}


@pytest.mark.parametrize("lang", sampled(["en", "zh"], 2))
def test_a_report_is_that_of_check(snapshot: Path, lang: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envtune.cli.options.exit_now", lambda code: None)
    asked: list[str] = []
    report = envtune.check(
        envtune.open_snapshot(snapshot), select=["CPU", "NET"], progress=lambda c: asked.append(c.id)
    )
    printed = command("check", "--snapshot", str(snapshot), "-s", "CPU,NET", "-f", "json", "--lang", lang)
    assert without_clock(json.loads(envtune.to_json(report, lang))) == without_clock(printed)
    assert asked == list(dict.fromkeys(finding.id for finding in report.findings)) and len(asked) > 5


def test_a_plan_is_that_of_fix(snapshot: Path) -> None:
    plan = envtune.plan(envtune.open_snapshot(snapshot), select=["CPU"], faq=["F06"])
    printed = command("fix", "CPU", "--faq", "F06", "--snapshot", str(snapshot), "-f", "json", "--lang", "en")
    assert plan.changes and json.loads(envtune.to_json(plan)) == printed


def test_a_diagnosis_is_that_of_diagnose(snapshot: Path, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("ImportError: libhccl.so: cannot open shared object file: No such file or directory\n")
    assert callable(envtune.diagnose) and scan.Scan
    found = envtune.diagnose([str(log)], envtune.open_snapshot(snapshot))
    printed = command("diagnose", str(log), "--snapshot", str(snapshot), "-f", "json", "--lang", "en")
    assert found.diagnoses[0].candidate.entry.id == "F06" and json.loads(envtune.to_json(found)) == printed


def test_what_is_wrong_with_the_arguments_is_an_error_in_both_languages(snapshot: Path) -> None:
    host = envtune.open_snapshot(snapshot)
    for wrong in (
        lambda: envtune.check(host, select=["CPX"]),
        lambda: envtune.plan(host, faq=["F99"]),
        lambda: envtune.diagnose(["-"], host, since="yesterday"),
        lambda: envtune.check(target=envtune.TargetOptions(script="/nowhere/train.sh")),
        lambda: envtune.load_catalogue((Path("/nowhere"),)),
    ):
        with pytest.raises(envtune.EnvtuneError) as caught:
            wrong()
        assert str(caught.value) and any("\u4e00" <= letter <= "\u9fff" for letter in caught.value.to("zh"))


def test_every_name_is_there_and_documented() -> None:
    text = (ROOT / "docs" / "api.md").read_text("utf-8")
    for name in set(envtune.__all__) - {"__version__", "Host", "Catalogue"}:
        assert getattr(envtune, name) is not None and name in text, name
    assert set(envtune.__all__) <= set(dir(envtune))
    with pytest.raises(AttributeError, match="nothing"):
        envtune.nothing  # noqa: B018
    for name in ("check", "plan"):
        assert "Raises:" in inspect.getdoc(getattr(envtune, name)), name


def test_importing_envtune_loads_nothing() -> None:
    code = (
        "import sys, envtune; before = {m for m in sys.modules if m.startswith('envtune')};"
        "envtune.check, envtune.plan, envtune.diagnose;"
        "print(sorted(before), 'typer' in sys.modules, 'yaml' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['envtune', 'envtune.version'] False False\n"


@pytest.mark.slow
def test_an_example_of_use_is_typed(tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(EXAMPLE)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--cache-dir",
        str(tmp_path / "cache"),
        str(tmp_path / "example.py"),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env={"PATH": "/usr/bin", "MYPYPATH": str(ROOT)}
    )
    assert done.returncode == 0, done.stdout
