"""What a report tells people to paste: a line for bash, about what was found, that repairs it or is labeled look.

Every failed finding of every recorded host is gone through; what sets a variable is run by a real bash, and the check
judges the environment that comes out.
"""

from __future__ import annotations

import re
import subprocess
from typing import Any, Iterator, Mapping, NamedTuple

import pytest
from helpers.checks import check_files
from helpers.examples import ROOT, example_context
from helpers.recorded import host_data, host_names, recorded_report

from envtune.audit import audit, examine
from envtune.audit.remedies import commands_for
from envtune.catalog import load
from envtune.context import Context
from envtune.context.open import open_context, recorded_options
from envtune.fix.prepare import plan
from envtune.job.target import TargetOptions
from envtune.messages import Text
from envtune.model import Command, Evidence, Finding, Outcome, Reading
from envtune.snapshot.host import SnapshotHost

TROUBLED = "910b-openeuler2203-troubled"
HOSTS = sorted(path.stem for path in (ROOT / "tests/hosts").glob("[!_]*.yaml"))
UNFILLED = re.compile(r"<[A-Za-z][^<>]*>|\{[a-z_]*\}|\b[XYN]\.[XYN]\b|\bCMD\b|\bPID\b|/path/|\.\.\.")
NAMED = re.compile(r"npu(\d+)|port (\d+)|process (\d+)|pci ([0-9a-f:.]+)")


class Case(NamedTuple):
    host: str
    finding: Finding
    context: Context


def scene(name: str, **environ: str) -> Context:
    data = host_data(name)
    data = {**data, "environ": {**(data.get("environ") or {}), **environ}}
    return open_context(SnapshotHost(data), recorded_options(data.get("target") or {}))


def failed() -> Iterator[Case]:
    for name in HOSTS:
        context = scene(name)
        for finding in audit(load().checks, context):
            if finding.outcome is Outcome.FAIL:
                yield Case(name, finding, context)


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    found = list(failed())
    assert len(found) > 50
    return found


def lines(cases: list[Case], kind: str) -> Iterator[tuple[Case, str]]:
    for case in cases:
        for command in case.finding.commands:
            if command.kind == kind and isinstance(command.line, str):
                yield case, command.line


def test_every_line_is_one_that_bash_can_read(cases: list[Case]) -> None:
    shown = {line: case.finding.id for kind in ("fix", "look") for case, line in lines(cases, kind)}
    assert len(shown) > 40
    for line, id_ in shown.items():
        done = subprocess.run(["bash", "-n", "-c", line], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), (id_, line)
        assert not UNFILLED.search(line), (id_, line)


def test_a_line_names_what_its_finding_is_about(cases: list[Case]) -> None:
    for case, line in lines(cases, "fix"):
        finding = case.finding
        about = {finding.id, *re.findall(r"[A-Z][A-Z_]{3,}|\d{4,5}-\d{4,5}|/[\w./-]+", finding.subject)}
        if finding.id.startswith(("ENV1", "CANN00")):  # a pair of variables, or the script that sets the subject
            about |= {"set_env.sh", *re.findall(r"[A-Z][A-Z_]{3,}", str(finding.actual))}
        assert any(word in line for word in about), (case.host, finding.id, finding.subject, line)
    for case, line in lines(cases, "look"):
        subject = NAMED.fullmatch(case.finding.subject)
        if subject is not None and case.finding.commands[0].line == line:
            assert re.search(rf"\b{re.escape(next(filter(None, subject.groups())))}\b", line), (case.finding.id, line)


def test_what_sets_variables_repairs_them(cases: list[Case]) -> None:
    """Bash runs the line over the host's variables; the finding is gone."""
    tried = set()
    for case, line in lines(cases, "fix"):
        if re.match(r"(export|unset) ", line) is None:
            continue
        before = {name: value for name, value in case.context.host.environ.items() if name.isidentifier()}
        done = subprocess.run(["bash", "-c", f"{line}; env -0"], env=before, capture_output=True, text=True, check=True)
        rows = (row.partition("=") for row in done.stdout.split("\0") if row)
        after = {name: value for name, _, value in rows if name not in ("_", "SHLVL", "PWD", "OLDPWD")}
        data = {**case.context.host.data, "environ": after}  # type: ignore[attr-defined]
        context = open_context(SnapshotHost(data), case.context.target.options)
        again = [f for f in examine(case.finding.check, context) if f.outcome is Outcome.FAIL]
        assert case.finding.subject not in [f.subject for f in again], (case.host, case.finding.id, line)
        tried.add(case.finding.id)
    assert len(tried) >= 9, tried


# Why `envtune fix` does nothing there, though it would on the host itself: what the recording lacks.
NOT_RECORDED = ("not in the snapshot", "does not exist", "recording contains only the beginning")
NOT_RECORDED += ("only the beginning of",)
NOT_RECORDED += ("has no pip",)  # which the line before installs
NOT_RECORDED += ("cc is not on PATH", "te-0.4.0")  # a RECORD of which only the digest was recorded


BY_HAND = ("CANN012", "CANN103")  # what a person does there depends on the host


def test_where_no_line_can_repair_it_the_reason_is_shown(cases: list[Case]) -> None:
    reasons = {
        (case.host, case.finding.id): str(command.line)
        for case in cases
        for command in case.finding.commands
        if isinstance(command.line, Text) and case.finding.id not in BY_HAND
    }
    assert (
        reasons["vm-ubuntu2204", "IMG001"]
        == "/usr/bin/python3 has no pip: install it with the system's package manager"
    )
    assert all("has no pip" in reason for reason in reasons.values()), reasons


def test_a_python_without_pip_gets_one_first(cases: list[Case]) -> None:
    python = "/usr/local/python3.10.13/bin/python3"
    found = [line for case, line in lines(cases, "fix") if (case.host, case.finding.id) == (TROUBLED, "CANN003")]
    assert f"sudo {python} -m ensurepip && sudo envtune fix CANN003 --python {python} --apply" in found


def test_where_fix_is_named_a_plan_repairs_it(cases: list[Case]) -> None:
    named = {(case.host, case.finding.id) for case, line in lines(cases, "fix") if " fix " in line}
    assert len({id_ for _, id_ in named}) >= 8
    planned = 0
    for host in {host for host, _ in named}:
        made = plan(scene(host).host)
        changed = {id_ for change in made.changes for id_ in (change.finding, *change.fixes)}
        for id_ in sorted(id_ for one, id_ in named if one == host):
            reasons = [row.reason.en for row in made.skipped if row.finding == id_]
            missing = any(words in reason for words in NOT_RECORDED for reason in reasons)
            assert id_ in changed or missing, (host, id_, reasons)
            planned += id_ in changed
    assert planned >= 12


def test_what_only_looks_changes_nothing(cases: list[Case]) -> None:
    changing = re.compile(r"\b(install|uninstall|export|unset|tee|modprobe|enable|disable|-w|kill|apply|rm|mv)\b")
    for _, line in lines(cases, "look"):
        assert not changing.search(line), line


def test_every_line_of_the_catalogue_says_whether_it_repairs() -> None:
    for data in check_files():
        rows = [*data.get("commands", ()), *(row for by in data.get("commands_by", ()) for row in by["commands"])]
        assert all(isinstance(row, Mapping) for row in rows), data["id"]


def test_every_playbook_that_does_something_is_named_by_its_checks() -> None:
    """But for variables, which the line itself sets."""
    catalogue = load()
    commands = {check.id: [str(command.line) for command in check.commands] for check in catalogue.checks}
    for playbook in catalogue.playbooks:
        if playbook.safety != "manual" and playbook.id not in ("set-job-variables", "reserve-job-ports"):
            for id_ in playbook.fixes:
                assert any("envtune fix {id}" in line for line in commands[id_]), id_


# ---------------------------------------------------------------------- the job that was judged


def shown(line: str, kind: str = "fix", subject: str = "X", fields: Any = None, **options: Any) -> list[Command]:
    check = load().checks[0]._replace(id="ENV001", commands=(Command(kind, line),), commands_by=())
    context = example_context({"like": "net"})
    context.target = context.target._replace(options=TargetOptions(**options))
    return list(commands_for(check, context, [Reading(subject, 1, Evidence("x"), fields=fields or {})]))


def test_a_variable_is_set_where_the_job_gets_it() -> None:
    assert shown("export X=1") == [Command("fix", "export X=1")]
    (told,) = shown("export X=1", script="/job/train.sh")
    assert isinstance(told.line, Text) and told.line.en == "in /job/train.sh: export X=1"
    assert shown("export X=1", pid=4242) == [], "nothing changes the variables of a running process"
    assert shown("tr x y", "look", pid=4242) == [Command("look", "tr x y")]


def test_a_field_that_is_not_known_leaves_its_line_out() -> None:
    assert shown("export X={free}") == []
    assert shown("export X={free}", fields={"free": "29500"}) == [Command("fix", "export X=29500")]
    assert shown("npu-smi info -t health -i {device}", subject="npu12") == [
        Command("fix", "npu-smi info -t health -i 12")
    ]


@pytest.mark.parametrize("name", ["$(reboot)", "a;b", "-f", "a\nb"])
def test_a_name_that_is_none_is_the_reason_why_no_line_is_shown(name: str) -> None:
    (told,) = shown("ls {subject}", subject=name)
    assert isinstance(told.line, Text) and "write the command by hand" in told.line.en


def test_a_line_that_looks_names_files_by_absolute_path() -> None:
    lines = {
        command.line
        for name in host_names()
        for finding in recorded_report(name).findings
        for command in finding.commands
        if command.kind == "look" and isinstance(command.line, str)
    }
    files = re.compile(r"(?:^|\s)(?!/)\S*\.(?:info|cfg|conf|log|txt)\b")
    assert lines and [line for line in lines if files.search(line)] == []
