"""From findings to a plan, and from a plan file back: what is proposed, in which order, and what is refused."""

from __future__ import annotations

import copy
import json
import re
import subprocess
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional, Sequence

import pytest
from helpers.examples import example_context
from helpers.killed_runs import encoded

from envtune.catalog import load
from envtune.catalog.entries import check_from, playbook_from
from envtune.context import Context
from envtune.context import registry as resources
from envtune.errors import Denied, PlanError, Skipped, Undetermined, UsageError
from envtune.executor.files import digest
from envtune.executor.plan import OPERATIONS
from envtune.fix.consent import Consent, sort_changes
from envtune.fix.document import PLAN, load_plan, plan_data, render
from envtune.fix.outcome import ApplyResult, exit_status, reconcile
from envtune.fix.plan import Plan, SkippedFinding, make_plan, only_looks
from envtune.fix.policy import refusal
from envtune.fix.shell_commands import commands, shell_lines
from envtune.messages import Bilingual, Literal
from envtune.model import Change, Command, Evidence, Finding, FixOptions, Outcome, Playbook, Severity
from envtune.report.plan import text as report
from envtune.schema.json_schema import document


def finding(id_: str, outcome: Outcome = Outcome.FAIL, severity: Severity = Severity.MEDIUM, **more: Any) -> Finding:
    row = {"id": id_, "name": id_.lower(), "title": {"en": f"defect {id_}", "zh": f"缺陷 {id_}"}, "status": "stable"}
    row.update(severity="medium", rationale={"en": "r", "zh": "由"}, origin="outside", probe={"x.y": {}})
    row.update(
        expect={"eq": "x"}, remedy={"en": "Do it by hand.", "zh": "请手动处理。"}, commands=[{"fix": "do-it --now"}]
    )
    reason = more.pop("reason", None)
    needs_privilege = more.pop("needs_privilege", False)
    lines = (Command("fix", "do-it --now"), Command("look", "look-at it"))
    return Finding(
        check_from(row),
        outcome,
        severity,
        "it",
        Literal("a"),
        Literal("b"),
        reason,
        Evidence("x"),
        needs_privilege,
        lines,
    )


def playbook(id_: str, *steps: Any, fixes: Sequence[str] = ("SYS001",), **more: Any) -> Playbook:
    row = {"id": id_, "title": {"en": "t", "zh": "题"}, "fixes": list(fixes), "safety": "safe", "disruption": "none"}
    return playbook_from({**row, "steps": list(steps), **more})


def wrote(path: str, content: Optional[bytes] = b"new\n", expect: Optional[bytes] = None) -> dict[str, Any]:
    text = None if content is None else encoded(content)
    return {"op": "file", "path": path, "content": text, "expect": digest(expect)}


def proposal(check: str = "SYS001", path: str = "/etc/x.conf", *operations: Any, **more: Any) -> Change:
    found = operations or (wrote(path),)
    return Change(check, "it", "", "", path, "", "new\n", "boot", tuple(found), **more)


@pytest.fixture
def context() -> Context:
    return example_context({"arch": "x86_64", "files": {}})


@pytest.fixture
def act(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[..., Any]], None]:
    """Register an action for this test."""

    def register(kind: str, action: Callable[..., Any]) -> None:
        monkeypatch.setitem(resources._functions["actions"], kind, action)

    return register


def offering(*changes: Change) -> Callable[..., Iterable[Change]]:
    return lambda context, findings: changes


# ---------------------------------------------------------------------- making a plan


def test_a_failed_finding_becomes_a_change_with_everything_a_person_needs(context: Context, act: Any) -> None:
    seen: list[Any] = []

    def action(context: Context, findings: Sequence[Finding], *, value: str) -> Iterator[Change]:
        seen.append(([f.id for f in findings], value))
        yield proposal("SYS002")

    act("file.dropin", action)
    book = playbook(
        "b", {"file.dropin": {"value": "v"}}, fixes=["SYS001", "SYS002"], safety="confirm", disruption="job"
    )
    made = make_plan([finding("SYS001"), finding("SYS002"), finding("SYS003", Outcome.PASS)], [book], context)
    (change,) = made.changes
    assert (change.id, change.finding, change.playbook, change.action) == ("C01", "SYS002", "b", "file.dropin")
    assert (change.safety, change.disruption) == ("confirm", "job")  # at least what the playbook says
    assert seen == [(["SYS001", "SYS002"], "v")]
    assert [s.finding for s in made.skipped] == ["SYS001"]  # nothing is silently left out


def test_the_action_gets_the_options_when_it_asks_for_them(context: Context, act: Any) -> None:
    def action(context: Context, findings: Sequence[Finding], *, options: FixOptions) -> Iterator[Change]:
        yield proposal(path=f"/etc/{options.peers[0]}")

    act("firewall.allow", action)
    made = make_plan([finding("SYS001")], [playbook("b", {"firewall.allow": None})], context, FixOptions(("10.0.0.2",)))
    assert made.changes[0].target == "/etc/10.0.0.2"


def test_packages_come_first_and_steps_keep_their_order(context: Context, act: Any) -> None:
    for kind in ("environment.export", "images.install_pillow", "packages.install", "file.dropin"):
        act(kind, offering(proposal(path=f"/etc/{kind}")))
    books = [
        playbook("a", {"environment.export": {}}, {"file.dropin": {}}),
        playbook("b", {"images.install_pillow": {}}),
        playbook("c", {"packages.install": {}}),
    ]
    made = make_plan([finding("SYS001")], books, context)
    assert [c.action for c in made.changes] == [
        "packages.install",
        "images.install_pillow",
        "environment.export",
        "file.dropin",
    ]
    assert [c.id for c in made.changes] == ["C01", "C02", "C03", "C04"]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Skipped(Bilingual("no peers are named", "未指定对端")), "no peers are named"),
        (Undetermined(Bilingual("its value is unknown", "无法判断")), "its value is unknown"),
        (Denied("/etc/secret"), "/etc/secret"),
        (ValueError("a slip of ours"), "envtune itself failed here: ValueError: a slip of ours"),
    ],
)
def test_what_an_action_raises_is_the_reason(context: Context, act: Any, error: Exception, told: str) -> None:
    def action(context: Context, findings: Sequence[Finding]) -> Iterator[Change]:
        yield proposal()
        raise error

    act("file.dropin", action)
    made = make_plan([finding("SYS001")], [playbook("b", {"file.dropin": {}})], context)
    assert made.changes == () and told in made.skipped[0].reason.en and made.skipped[0].reason.zh


def test_what_has_no_playbook_or_only_instructions_is_listed_with_its_steps(context: Context) -> None:
    by_hand = playbook("m", {"instructions": {"en": ["Press F10."], "zh": ["按 F10。"]}}, safety="manual")
    made = make_plan([finding("SYS001"), finding("SYS002")], [by_hand], context)
    first, second = made.skipped
    assert (first.finding, first.steps) == ("SYS001", (Bilingual("Press F10.", "按 F10。"),))
    assert [step.en for step in second.steps] == ["Do it by hand.", "do-it --now"]


def test_a_line_that_only_looks_says_so(context: Context) -> None:
    looked = finding("SYS001")._replace(commands=(Command("look", "ip address"), Command("look", "ip route")))
    (skipped,) = make_plan([looked], [], context).skipped
    assert [step.en for step in skipped.steps][-2:] == ["look: ip address", "look: ip route"]
    page = report.render(make_plan([looked], [], context), "en", verbose=False)
    assert "by hand: Do it by hand." in page and "ip route" not in page
    repaired = looked._replace(commands=(*looked.commands, Command("fix", "do-it --now")))
    (skipped,) = make_plan([repaired], [], context).skipped
    assert [step.en for step in skipped.steps][-1] == "do-it --now" and not any(map(only_looks, skipped.steps))


def test_what_could_not_be_told_is_not_repaired_and_named(context: Context, act: Any) -> None:
    act("file.dropin", offering(proposal()))
    unknown = finding("SYS001", Outcome.UNKNOWN, reason=Bilingual("no response", "没有响应"))
    made = make_plan([unknown], [playbook("b", {"file.dropin": {}})], context)
    assert made.changes == () and "no response" in made.skipped[0].reason.en


def test_two_changes_of_one_file_are_a_conflict_unless_one_goes_on_from_the_other(context: Context, act: Any) -> None:
    act("file.dropin", offering(proposal()))
    act("sysctl.set", offering(proposal("SYS002")))
    act("environment.export", offering(proposal("SYS003", "/etc/x.conf", wrote("/etc/x.conf", b"newer\n", b"new\n"))))
    kinds = {"SYS001": "file.dropin", "SYS002": "sysctl.set", "SYS003": "environment.export"}
    books = [playbook(check.lower(), {kind: {}}, fixes=[check]) for check, kind in kinds.items()]
    made = make_plan([finding(check) for check in kinds], books, context)
    assert [change.finding for change in made.changes] == ["SYS001", "SYS003"]
    assert made.skipped[0].finding == "SYS002" and "C01" in made.skipped[0].reason.en


def test_a_change_that_cures_more_speaks_for_them(context: Context, act: Any) -> None:
    act("file.dropin", offering(proposal(fixes=("SYS002",))))
    book = playbook("b", {"file.dropin": {}}, fixes=["SYS001", "SYS002"])
    made = make_plan([finding("SYS001"), finding("SYS002")], [book], context)
    assert len(made.changes) == 1 and made.skipped == ()


def test_the_commands_of_a_change_are_what_it_does() -> None:
    knob = wrote("/sys/devices/system/cpu/cpu0/online", b"1\n")
    run = {"op": "run", "argv": ["ufw", "allow", "from", "10.0.0.2 x"], "check": {"argv": ["true"]}}
    kill = {"op": "signal", "pid": 42, "started": 1, "uid": 0, "grace": 1}
    told = list(map(str, commands(proposal("SYS001", "x", wrote("/etc/x"), wrote("/etc/y", None), knob, run, kill))))
    (written, *_) = commands(proposal("SYS001", "x", wrote("/etc/x")))
    assert written.to("zh") == "写入 /etc/x（4 字节）"
    assert told[:3] == ["write /etc/x (4 B)", "rm /etc/y", "echo 1 > /sys/devices/system/cpu/cpu0/online"]
    assert told[3:] == ["ufw allow from '10.0.0.2 x'", "kill 42"]


def test_what_root_types_by_hand_does_the_same(tmp_path: Path) -> None:
    """The lines are given to a real shell; a file that was there keeps its mode."""
    there, fresh = tmp_path / "there", tmp_path / "a b" / "fresh"
    there.write_text("old\n")
    there.chmod(0o640)
    odd = b"tab\there and no newline"
    proposed = proposal(
        "SYS001",
        "x",
        {**wrote(str(there), b"it's $new\n`x`\n"), "expect": digest(b"old\n")},
        {**wrote(str(fresh), b"one\n\n"), "expect": "absent", "mode": 0o755},
        {**wrote(str(tmp_path / "odd"), odd), "expect": "absent"},
        wrote(str(tmp_path / "long"), b"x" * 5000),
        {"op": "run", "argv": ["touch", str(tmp_path / "$HOME")], "check": {"argv": ["true"]}, "env": {"PATH": "/"}},
        {"op": "swap", "root": str(tmp_path), "touches": ["site"], "prepare": [["touch", "{work}/one two"]],
         "env": {"WHERE": "{work}"}, "steps": [["cp", "{work}/one two", str(tmp_path / "copied")]], "verify": []},
    )  # fmt: skip
    text = "\n".join(shell_lines(proposed))
    done = subprocess.run(["sh", "-eu", "-c", text], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), text
    assert there.read_bytes() == b"it's $new\n`x`\n" and there.stat().st_mode & 0o777 == 0o640
    assert fresh.read_bytes() == b"one\n\n" and fresh.stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "odd").read_bytes() == odd and (tmp_path / "copied").exists() and (tmp_path / "$HOME").exists()
    assert not (tmp_path / "long").exists() and "5000 bytes, which only the plan holds" in text


# ---------------------------------------------------------------------- for a person


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_like_changes_are_one_block_and_control_characters_are_shown(lang: str) -> None:
    cpus = [f"/sys/devices/system/cpu/cpufreq/policy{n}/scaling_governor" for n in range(192)]
    changes = tuple(
        Change(
            "CPU001",
            f"cpu{n}",
            "set-governor",
            "cpu.set_governor",
            path,
            "powersave",
            "performance",
            "live",
            (wrote(path),),
        )._replace(id=f"C{n + 1:02d}", other_owners=(Bilingual("tuned sets it, \x1b[31mtoo", "tuned 也会设置"),))
        for n, path in enumerate(cpus)
    )
    page = report.render(Plan("h", changes, (SkippedFinding("X", "s", Bilingual("r", "由")),)), lang)
    assert page.count("-powersave") == page.count("+performance") == 1 and "C01-C192 (192)" in page
    assert "\x1b" not in page and len(page.splitlines()) < 30
    assert ("needs root" if lang == "en" else "需要 root") in page
    assert max(map(len, page.splitlines())) <= 140
    assert len(list(report.table(changes, lang, 100))) <= 3


def test_a_long_diff_is_cut_and_says_so() -> None:
    lines = report.diff("", "\n".join(map(str, range(1000))))
    assert len(lines) == report.MAX_DIFF + 1 and "960" in lines[-1]


# ---------------------------------------------------------------------- as data, and back


@pytest.fixture
def saved() -> dict[str, Any]:
    change = proposal(
        note=Literal("n"), other_owners=(Literal("tuned"),), verify={"script": "/root/train.sh"}, fixes=("SYS002",)
    )
    skipped = SkippedFinding("X", "", Literal("r"), (Literal("s"),))
    options = {"pid": 7, "owner": "root", "wheels": "/opt/wheels", "peers": ["10.0.0.2"]}
    plan = Plan("h", (change._replace(id="C01"),), (skipped,), {"pid": 7}, options, ("SYS001", "SYS002"), "0" * 64)
    data: dict[str, Any] = json.loads(render(plan, "en"))
    return data


def test_a_plan_survives_being_a_file(saved: dict[str, Any]) -> None:
    plan = load_plan(json.dumps(saved))
    assert plan_data(plan, "en") == saved and plan_data(plan, "zh") == saved
    wanted = {"id", "finding", "playbook", "action", "target", "before", "after", "view", "safety", "disruption"}
    assert wanted | {"root", "undoable", "rivals"} <= set(saved["changes"][0])
    assert set(saved["skipped"][0]) >= {"finding", "reason"} and saved["schema"] == "envtune.plan/1"


def test_the_published_schema_names_exactly_the_members_there_are(saved: dict[str, Any]) -> None:
    schema = document("envtune.plan/1", PLAN)
    assert set(schema["properties"]) == set(saved)
    assert set(saved) - set(schema["required"]) == {"machine", "options", "checks"}  # not in an earlier version's plan
    for name in ("changes", "skipped"):
        items = schema["properties"][name]["items"]
        assert set(items["properties"]) == set(saved[name][0]) and not items["additionalProperties"]
    kinds = schema["properties"]["changes"]["items"]["properties"]["operations"]["items"]["anyOf"]
    assert [kind["properties"]["op"]["const"] for kind in kinds] == list(OPERATIONS)


def spoiled(*path: Any, value: Any = None, drop: bool = False) -> Callable[[dict[str, Any]], None]:
    def spoil(data: Any) -> None:
        for step in path[:-1]:
            data = data[step]
        if drop:
            del data[path[-1]]
        else:
            data[path[-1]] = value

    return spoil


FIRST = ("changes", 0)
HOSTILE: list[tuple[str, Callable[[dict[str, Any]], None]]] = [
    ("schema", spoiled("schema", value="envtune.plan/2")),
    ("schema", spoiled("schema", drop=True)),
    ("more", spoiled("more", value=1)),
    ("host", spoiled("host", value=["h"])),
    ("target.home", spoiled("target", "home", value="/")),
    ("target.pid", spoiled("target", "pid", value="7")),
    ("target.python", spoiled("target", "python", value="../python")),
    ("target", spoiled("target", value=[])),
    ("changes", spoiled("changes", value={})),
    ("changes[0]", spoiled("changes", 0, value="C01")),
    ("changes[0].id", spoiled(*FIRST, "id", value="C01; rm")),
    ("changes[0].view", spoiled(*FIRST, "view", value="never")),
    ("changes[0].safety", spoiled(*FIRST, "safety", value="harmless")),
    ("changes[0].root", spoiled(*FIRST, "root", value="no")),
    ("changes[0].rivals[0]", spoiled(*FIRST, "rivals", 0, value=1)),
    ("changes[0].before", spoiled(*FIRST, "before", value="\0")),
    ("changes[0].verify.script", spoiled(*FIRST, "verify", "script", value="train.sh")),
    ("changes[0].finding", spoiled(*FIRST, "finding", drop=True)),
    ("changes[0].secret", spoiled(*FIRST, "secret", value=1)),
    ("changes[0].operations", spoiled(*FIRST, "operations", value={})),
    ("changes[1].id", lambda data: data["changes"].append(data["changes"][0])),
    ("machine", spoiled("machine", value=7)),
    ("options.pid", spoiled("options", "pid", value=0)),
    ("options.shell", spoiled("options", "shell", value="/bin/sh")),
    ("options.wheels", spoiled("options", "wheels", value="wheels")),
    ("options.peers", spoiled("options", "peers", value="10.0.0.2")),
    ("checks[0]", spoiled("checks", 0, value={})),
    ("skipped[0].steps[0]", spoiled("skipped", 0, "steps", value=[{}])),
]


@pytest.mark.parametrize(("member", "spoil"), HOSTILE, ids=[f"{n}-{m}" for n, (m, _) in enumerate(HOSTILE)])
def test_a_hostile_file_is_refused_by_its_member(saved: dict[str, Any], member: str, spoil: Any) -> None:
    data = copy.deepcopy(saved)
    spoil(data)
    with pytest.raises(PlanError) as caught:
        load_plan(json.dumps(data))
    assert caught.value.member == member and caught.value.to("zh")


NO_PLAN = ["", "[]", "null", "{", "[" * 100_000, '{"schema": 1, "schema": 2}', "\x00", '"x"', "NaN", r'"\ud800"']


@pytest.mark.parametrize("text", NO_PLAN)
def test_what_is_no_plan_at_all_is_refused(text: str) -> None:
    with pytest.raises(PlanError):
        load_plan(text)


# ---------------------------------------------------------------------- consent


def asks(change: Change, id_: str) -> Change:
    return change._replace(id=id_, safety="confirm", playbook="open-ports")


@pytest.mark.parametrize(
    ("consent", "ready"),
    [
        (Consent(), "C01"),
        (Consent(("SYS",)), "C01"),  # a family names no step
        (Consent(("sys002",)), "C01 C02"),
        (Consent(("open-ports",)), "C01 C02"),
        (Consent((), ("C02",)), "C02"),
        (Consent((), ("C03",)), "C03"),
        (Consent((), (), True), "C01 C02 C03"),
        (Consent(("SYS002", "SYS003")), "C01 C02"),  # ending a process is consented one by one
    ],
)
def test_what_asks_for_consent_is_named_or_left(consent: Consent, ready: str) -> None:
    kill = {"op": "signal", "pid": 42, "started": 1, "uid": 0, "grace": 1}
    ending = asks(proposal("SYS003", "42", kill), "C03")._replace(action="processes.terminate")
    changes = [proposal()._replace(id="C01"), asks(proposal("SYS002"), "C02"), ending]
    changes.append(proposal("SYS004", safety="manual")._replace(id="C04"))
    go, held = sort_changes(changes, consent, True)
    assert " ".join(change.id for change in go) == ready
    assert {one.change.id for one in held} == {c.id for c in changes} - set(ready.split())
    with pytest.raises(UsageError, match="C99"):
        sort_changes(changes, Consent((), ("C01", "C99")), True)


def test_without_root_the_rest_is_done() -> None:
    changes = [proposal()._replace(id="C01"), proposal("SYS002", root=False)._replace(id="C02")]
    go, held = sort_changes(changes, Consent(), False)
    assert [c.id for c in go] == ["C02"] and [(h.change.id, h.why) for h in held] == [("C01", "root")]


# ---------------------------------------------------------------------- what became of it


def result(id_: str, status: str = "done", error: Optional[str] = None) -> Mapping[str, Any]:
    state = "written" if status == "done" else "failed-restored"
    return {"change": id_, "status": status, "error": error, "state": state}


def test_what_was_right_before_is_not_called_fixed() -> None:
    """One subject of a check was wrong and another right: only the first one was mended."""
    wrong, right = finding("SYS001"), finding("SYS001", Outcome.PASS)._replace(subject="other")
    after = [wrong._replace(outcome=Outcome.PASS), right]
    found = reconcile([wrong, right], after, [proposal()._replace(id="C01")], ApplyResult("R", {"C01": result("C01")}))
    assert [row.finding.outcome for row in found] == [Outcome.FIXED, Outcome.PASS]


def test_every_finding_says_what_became_of_it() -> None:
    before = [finding(f"SYS00{n}") for n in range(1, 6)]
    changes = [proposal(f"SYS00{n}")._replace(id=f"C0{n}") for n in range(1, 5)]
    held = sort_changes([changes[3]], Consent(), False)[1]
    written = ApplyResult(
        "R", {"C01": result("C01"), "C02": result("C02"), "C03": result("C03", "failed", "EBUSY")}, tuple(held)
    )
    after = [finding("SYS001", Outcome.PASS), *before[1:], finding("SYS006", Outcome.PASS)]
    settled = {row.finding.id: row.finding for row in reconcile(before, after, changes, written)}
    outcomes = [settled[f"SYS00{n}"].outcome.value for n in range(1, 7)]
    assert outcomes == ["fixed", "error", "fail", "fail", "fail", "pass"]
    told = [settled[f"SYS00{n}"].reason for n in range(2, 5)]
    assert [word in str(text) for word, text in zip(("envtune undo R", "EBUSY", "needs root"), told)] == [True] * 3


@pytest.mark.parametrize(
    ("findings", "results", "status"),
    [
        ([], [], 0),
        ([finding("A1", Outcome.FIXED), finding("A2", Outcome.PASS)], [result("C01")], 0),
        ([finding("A1", Outcome.FAIL)], [], 1),
        ([finding("A1", Outcome.FAIL, Severity.LOW)], [], 0),
        ([finding("A1", Outcome.ERROR)], [result("C01")], 1),
        ([finding("A1", Outcome.FIXED)], [result("C01"), result("C02", "failed")], 1),
        ([finding("A1", Outcome.UNKNOWN)], [], 3),
        ([finding("A1", Outcome.UNKNOWN, needs_privilege=True)], [], 0),
    ],
)
def test_the_exit_status_tells_how_it_ended(findings: list[Finding], results: list[Any], status: int) -> None:
    assert exit_status(findings, results, Severity.MEDIUM) == status


# ---------------------------------------------------------------------- what a plan may not hold


def run(*argv: str, **more: Any) -> dict[str, Any]:
    return {"op": "run", "argv": list(argv), "check": {"argv": ["test", "-e", "/x"]}, **more}


def swap(root: str, touches: Sequence[str] = ("te",), *steps: Sequence[str]) -> dict[str, Any]:
    return {"op": "swap", "root": root, "touches": list(touches), "steps": [list(s) for s in steps], "verify": []}


RULE = ["-p", "tcp", "-s", "10.0.0.2", "-m", "multiport", "--dports", "29688"]
RULE += ["-m", "comment", "--comment", "envtune:0123456789ab", "-j", "ACCEPT"]
NFT_RULE = ["ip", "saddr", "10.0.0.2", "tcp", "dport", "29688", "accept", "comment", '"envtune:0"']
RUN_BY_THE_SYSTEM = [
    "/etc/cron.d/envtune",
    "/etc/crontab",
    "/var/spool/cron/crontabs/root",
    "/var/spool/cron/root",
    "/etc/anacrontab",
    "/etc/systemd/system/x.service",
    "/etc/systemd/system/envtune.service",
    "/usr/lib/systemd/system/x.service",
    "/run/systemd/system/x.service",
    "/lib/systemd/system/ssh.service.d/envtune.conf",
    "/etc/init.d/x",
    "/etc/rc.local",
    "/root/.bashrc",
    "/root/.profile",
    "/root/.bash_profile",
    "/root/.zshrc",
    "/root/.config/fish/config.fish",
    "/.profile",
    "/etc/profile",
    "/etc/bash.bashrc",
    "/etc/profile.d/x.sh",
    "/etc/environment",
    "/etc/zsh/zshenv",
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/fs/binfmt_misc/register",
    "/sys/kernel/uevent_helper",
    "/sys/fs/cgroup/x/release_agent",
    "/etc/ld.so.conf.d/envtune.conf",
    "/etc/ld.so.conf",
    "/usr/lib/python3/dist-packages/x.pth",
    "/opt/env/lib/python3.9/site-packages/x.pth",
    "/opt/env/lib/python3.9/site-packages/sitecustomize.py",
    "/opt/env/pyvenv.cfg",
    "/etc/udev/rules.d/95-envtune.rules",
    "/etc/polkit-1/rules.d/envtune.rules",
    "/usr/share/polkit-1/rules.d/x.rules",
    "/etc/modprobe.d/envtune.conf",
    "/etc/modules-load.d/envtune.conf",
    "/etc/apt/apt.conf.d/95-envtune.conf",
    "/etc/yum.repos.d/envtune.repo",
    "/etc/pip.conf",
    "/root/.config/pip/pip.conf",
    "/etc/dbus-1/system.d/envtune.conf",
    "/etc/pam.d/sshd",
    "/etc/security/limits.conf",
    "/etc/tmpfiles.d/x.conf",
    "/etc/sysctl.d/10-x.conf",
    "/etc/logrotate.d/envtune",
    "/etc/update-motd.d/95-envtune",
    "/etc/cron.d/x\ny",
    "/opt/env/lib/python3.9/site-packages/x\n.pth",
    "/etc/bash_completion.d/envtune",
    "/usr/share/bash-completion/completions/envtune",
    "/etc/skel/.bashrc",
    "/etc/X11/Xsession.d/95-envtune",
    "/etc/environment.d/95-envtune.conf",
    "/etc/rsyslog.d/95-envtune.conf",
    "/etc/sysconfig/network",
    "/etc/tuned/envtune/script.sh",
    "/var/run/udev/rules.d/x.rules",
    "/root/.gitconfig",
]
NEVER: list[tuple[str, dict[str, Any]]] = [
    ("processes by name", run("pkill", "-9", "python")),
    ("processes by name", run("killall", "python")),
    ("processes by name", run("/usr/bin/pkill", "-f", "train")),
    ("rm", run("rm", "-rf", "/tmp/*")),
    ("rm below /tmp", wrote("/tmp/cache.bin", None)),
    ("rm below /tmp", wrote("/var/tmp/cache.bin", None)),
    ("shell", run("bash", "-c", "rm -rf /tmp/*")),
    ("shell", run("env", "sh", "-c", "id")),
    ("shell as the way back", run("ufw", "allow", "22", undo={"argv": ["sh", "-c", "id"]})),
    ("shell in the check", {**run("ufw", "allow", "22"), "check": {"argv": ["sh", "-c", "id"]}}),
    ("shell in a swap", swap("/opt/py/lib/python3.7/site-packages", ["te"], ["sh", "-c", "id"])),
    ("firewall stopped", run("systemctl", "stop", "firewalld")),
    ("firewall stopped", run("systemctl", "disable", "--now", "ufw.service")),
    ("firewall stopped", run("systemctl", "mask", "nftables.service")),
    ("firewall stopped", run("ufw", "disable")),
    ("firewall stopped", run("ufw", "--force", "reset")),
    ("firewall emptied", run("iptables", "-F")),
    ("firewall emptied", run("ip6tables-legacy", "-P", "INPUT", "ACCEPT")),
    ("firewall emptied", run("nft", "flush", "ruleset")),
    ("firewall emptied", run("nft", "delete table inet filter")),
    ("firewall reloaded", run("firewall-cmd", "--reload")),
    ("firewall reloaded", run("firewall-cmd", "--runtime-to-permanent")),
    ("driver", run("/root/Ascend-hdk-910b-npu-driver_24.1.0_linux-aarch64.run", "--full")),
    ("driver", run("apt-get", "install", "-y", "Ascend-hdk-910-npu-firmware_7.1.run")),
    ("driver", run("rpm", "-Uvh", "Ascend910-driver.rpm")),
    ("driver", run("yum", "install", "ascend-npu-driver")),
    ("reboot", run("reboot")),
    ("reboot", run("systemctl", "reboot")),
    ("reboot", run("shutdown", "-r", "now")),
    ("reboot", run("npu-smi", "set", "-t", "reset", "-i", "0", "-c", "0")),
    ("gcc into /usr", run("./configure", "--prefix=/usr")),
    ("gcc into /usr", run("make", "install", "prefix=/usr/local")),
    ("prefix /usr", run("python3", "-m", "pip", "install", "--prefix", "/usr/local", "x")),
    ("prefix /usr", run("pip3", "install", "--prefix=/usr/", "x")),
    ("python3 relinked", wrote("/usr/bin/python3")),
    ("python3 relinked", wrote("/usr/local/bin/python3.7")),
    ("python3 relinked", run("ln", "-sf", "/usr/local/python3.7.5/bin/python3.7", "/usr/bin/python3")),
    ("python3 relinked", run("update-alternatives", "--set", "python3", "/x")),
    ("python3 relinked", swap("/usr", ["bin/python3"])),
    (
        "operator files",
        wrote("/usr/local/Ascend/ascend-toolkit/latest/opp/op_impl/ai_core/tbe/impl/conv2d.py"),
    ),
    ("operator files", wrote("/root/Ascend/nnae/latest/fwkacllib/python/site-packages/te/x.py")),
    ("torch's module.py", wrote("/usr/local/python3.7.5/lib/python3.7/site-packages/torch/nn/modules/module.py")),
    ("a Python script", run("python3", "/tmp/fix.py")),
    ("everything upgraded", run("apt-get", "dist-upgrade")),
    ("everything upgraded", run("yum", "update")),
    ("a directory of the system", swap("/usr", ["lib"])),
    ("accounts", wrote("/etc/sudoers.d/envtune")),
    ("accounts", wrote("/root/.ssh/authorized_keys")),
    ("accounts", wrote("/etc/ld.so.preload")),
    ("devices", wrote("/proc/sysrq-trigger", b"b")),
    ("devices", wrote("/sys/bus/pci/devices/0000:c1:00.0/remove", b"1")),
    ("other settings reloaded", run("sysctl", "--system")),
    ("the whole disk searched", run("find", "/", "-name", "msaccucmp.py")),
    ("an option that runs a program", run("apt-get", "-o", "DPkg::Pre-Invoke::=id", "install", "x")),
    ("an option that runs a program", run("apt-get", "-c", "/tmp/x", "install", "x")),
    ("an option that runs a program", run("dnf", "install", "--setopt=pluginpath=/tmp/x", "x")),
    ("pip led elsewhere", run("python3", "-m", "pip", "install", "--target", "/etc", "x")),
    ("pip led elsewhere", run("python3", "-m", "pip", "install", "--python", "/tmp/x", "x")),
    ("pip led elsewhere", run("python3", "-m", "pip", "install", "--config-settings", "a=b", "x")),
    ("pip led elsewhere", run("python3", "-m", "pip", "install", "x @ https://example.org/x.whl")),
    ("pip led elsewhere", run("python3", "-m", "pip", "install", "git+https://example.org/x")),
    ("pip led elsewhere", run("python3", "-m", "pip", "download", "--dest", "/etc/cron.d", "x")),
    ("another module", run("python3", "-m", "venv", "/opt/x")),
    ("an environment", run("ufw", "allow", "22", env={"LD_PRELOAD": "/tmp/x.so"})),
    ("an environment", run("apt-get", "install", "-y", "x", env={"APT_CONFIG": "/tmp/x"})),
    ("an environment", run("nft", "list", "ruleset", env={"PATH": "/tmp"})),
    ("an environment", {**swap("/opt/py37/lib/python3.7/site-packages"), "env": {"PYTHONPATH": "/tmp/x"}}),
    ("an environment", {**swap("/opt/py37/lib/python3.7/site-packages"), "env": {"PIP_INDEX_URL": "http://x"}}),
    *(("what the system runs", wrote(path)) for path in RUN_BY_THE_SYSTEM),
    ("a program of the kernel's", wrote("/etc/sysctl.d/95-envtune.conf", b"kernel.core_pattern = |/tmp/x\n")),
    ("a rule placed by a number alone", run("iptables", "-w", "-I", "INPUT", "3", *RULE)),
    ("a rule placed by a number alone", run("nft", "insert", "rule", "inet", "f", "input", "position", "8", *NFT_RULE)),
]


@pytest.mark.parametrize(("what", "operation"), NEVER, ids=[f"{n}-{what}" for n, (what, _) in enumerate(NEVER)])
def test_no_action_can_bring_into_a_plan_what_envtune_never_does(
    context: Context, act: Any, what: str, operation: dict[str, Any]
) -> None:
    reason = refusal(operation)
    assert reason is not None and reason.en and reason.zh != reason.en
    act("file.dropin", offering(proposal("SYS001", "x", wrote("/etc/harmless"), operation)))
    made = make_plan([finding("SYS001")], [playbook("b", {"file.dropin": {}})], context)
    assert made.changes == () and made.skipped[0].reason == reason


@pytest.mark.parametrize(
    "operation",
    [
        wrote("/etc/sysctl.d/95-envtune.conf"),
        wrote("/etc/tuned/envtune/tuned.conf"),
        wrote("/etc/tuned/profiles/envtune/tuned.conf"),
        wrote("/proc/sys/net/ipv4/ip_local_reserved_ports"),
        wrote("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor"),
        wrote("/usr/local/python3.7.5/lib/python3.7/site-packages/torchvision/transforms/functional.py"),
        run("apt-get", "install", "-y", "libjpeg-dev"),
        run(
            "systemctl",
            "enable",
            "envtune-apply.service",
            undo={"argv": ["systemctl", "disable", "envtune-apply.service"]},
        ),
        run("python3.7", "-I", "-m", "pip", "install", "--no-deps", "pillow-simd"),
        swap("/opt/py37/lib/python3.7/site-packages", ["te", "te-0.4.0.dist-info"]),
    ],
)
def test_what_playbooks_need_is_allowed(operation: dict[str, Any]) -> None:
    assert refusal(operation) is None


def test_shipped_playbooks_hold_no_shell() -> None:
    """Typed steps of the closed list, and arguments that are names and values, never a line for a shell."""
    from envtune.catalog.forms import STEP_KINDS

    for book in load().playbooks:
        for step in book.steps:
            assert step.kind in STEP_KINDS, book.id
            for word in words(step.arguments):
                assert not set(word) & set(";|&`<>\n") and "$(" not in word, (book.id, word)
                assert word.split(" ")[0] not in {"sh", "bash", "sudo", "rm", "pkill", "kill", "reboot"}, (
                    book.id,
                    word,
                )


DANGEROUS = re.compile(
    r"\b(pkill|killall)\b|\brm -\w*r|\bfind /( |$)|\bln -\w* .*python|--prefix[= ]/usr(/local)?/?(\s|$)"
    r"|systemctl (stop|disable|mask).*(firewalld|ufw|tables)|ufw disable|(iptables|nft) (-F|flush)|chmod (-R )?777"
    r"|npu-smi set|(^|[;&|] *)(sudo )?(reboot|shutdown|poweroff)\b"
)


def test_what_a_person_is_told_to_type_destroys_nothing_either() -> None:
    """The guide's `pkill -9 python`, `rm -rf /tmp/*` and the like are printed nowhere, not even as steps to read."""
    catalogue = load()
    for book in catalogue.playbooks:
        for line in (line for step in book.steps for line in step.lines):
            assert not DANGEROUS.search(line.en) and not DANGEROUS.search(line.zh), (book.id, line.en)
    for check in catalogue.checks:
        for command in (*check.commands, *(line for _, lines in check.commands_by for line in lines)):
            assert not DANGEROUS.search(str(command.line)), (check.id, command)


def words(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from words(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from words(item)
    elif isinstance(value, str):
        yield value
