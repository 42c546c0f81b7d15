"""Staged fixes of real SSH servers: stopped where the rule says, undone to the byte; a controller that is killed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from helpers import fleet_fix
from helpers.fleet_fix import SLOW, fixed, killed, run, run_json, state
from helpers.sshd_farm import Target, farm

pytestmark = [pytest.mark.sshd, pytest.mark.root]
NAMES = [f"h{number}" for number in range(1, 9)]
REFUSING = ("h4", "h5")  # the fourth of five stages: h1, h2, h3, h4-5, h6-8


@pytest.fixture(autouse=True)
def needs_sudo() -> None:
    if shutil.which("sudo") is None:
        pytest.skip("no sudo here")


def test_it_stops_where_the_rule_says_and_is_undone_to_the_byte(tmp_path: Path) -> None:
    store = tmp_path / "db" / "fleet.db"
    targets = [fleet_fix.host(tmp_path, name, refuses=name in REFUSING) for name in NAMES]
    common = ["SITE901", "-w", "h[1-8]", "--become", "--soak", "0", "--timeout", "60"]
    with farm(tmp_path, targets) as servers:
        common += ["--catalog", str(fleet_fix.catalogue(tmp_path))]
        before = state(tmp_path, NAMES)

        shown = run(servers, "fix", store, *common, "--check", "--diff")
        assert shown.returncode == 1 and shown.stderr == ""
        assert "-8080" in shown.stdout and "+60000-60031" in shown.stdout and "h[1-8] (8 hosts)" in shown.stdout
        asked = run(servers, "fix", store, *common, "-w", "h1")
        assert asked.returncode == 2 and "use --yes" in asked.stderr
        assert state(tmp_path, NAMES) == before

        status, report = run_json(servers, "fix", store, *common, "--yes")
        assert status == 1 and "2 of 2 hosts of the stage failed" in report["stopped"]
        assert report["stages"] == [["h1"], ["h2"], ["h3"], ["h4", "h5"], ["h6", "h7", "h8"]]
        states = {row["host"]: row["state"] for row in report["hosts"]}
        assert states == {
            **dict.fromkeys(("h1", "h2", "h3"), "changed"),
            **dict.fromkeys(REFUSING, "refused"),
            **dict.fromkeys(("h6", "h7", "h8"), "planned"),
        }
        assert fixed(tmp_path, NAMES) == ["h1", "h2", "h3"]
        untouched = NAMES[3:]
        assert state(tmp_path, untouched) == {name: before[name] for name in untouched}
        assert [name for name in NAMES if list((tmp_path / name / "lib").iterdir())] == ["h1", "h2", "h3"]

        status, report = run_json(servers, "undo", store, report["run"], "--yes")
        assert status == 0
        undone = {row["host"] for row in report["hosts"] if row["state"] == "undone"}
        assert undone == {"h1", "h2", "h3"}
        assert state(tmp_path, NAMES) == before
        again = run(servers, "undo", store, report["run"], "--yes")
        assert again.returncode == 2 and "nothing to undo" in again.stderr


def test_the_variables_of_a_named_job(tmp_path: Path) -> None:
    """Named as for an audit; a gateway that cannot be reached costs nothing, for the fix connects directly."""
    store, names = tmp_path / "db" / "fleet.db", NAMES[:2]
    targets = [fleet_fix.host(tmp_path, name, more=f"mount --bind /media/{name}/sysctl.d /opt") for name in names]
    for name in names:
        (tmp_path / name / "sysctl.d" / "job.env").write_text("export ASCEND_GLOBAL_LOG_LEVEL=0\n")
    common = ["SITE902", "-w", "h[1-2]", "--become", "--soak", "0", "--timeout", "60"]
    with farm(tmp_path, [*targets, Target("gw1", fault="refused")]) as servers:
        common += ["--catalog", str(fleet_fix.catalogue(tmp_path)), "--gateways", "gw1"]
        _, unnamed = run_json(servers, "fix", store, *common, "--check")
        assert unnamed["stages"] == []
        _, missing = run_json(servers, "fix", store, *common, "--check", "--job", "no-such-job")
        assert missing["stages"] == []

        before = state(tmp_path, names)
        named = [*common, "--env-file", "/opt/job.env", "--python", "/usr/bin/python3"]
        status, report = run_json(servers, "fix", store, *named, "--yes")
        assert status == 0, report
        assert {row["host"]: row["state"] for row in report["hosts"]} == dict.fromkeys(names, "changed")
        for name in names:
            assert "ASCEND_GLOBAL_LOG_LEVEL=3" in (tmp_path / name / "sysctl.d" / "job.env").read_text()
        status, _ = run_json(servers, "undo", store, report["run"], "--yes")
        assert status == 0 and state(tmp_path, names) == before


def test_the_next_run_knows_what_a_killed_one_changed(tmp_path: Path) -> None:
    """h3 is under way when the controller ends: it is changed, though nobody heard of it; h4-5 are never begun."""
    store, names = tmp_path / "db" / "fleet.db", NAMES[:5]
    targets = [fleet_fix.host(tmp_path, name, python=SLOW if name == "h3" else "") for name in names]
    common = ["SITE901", "-w", "h[1-5]", "--become", "--soak", "0", "--timeout", "60"]
    with farm(tmp_path, targets) as servers:
        common += ["--catalog", str(fleet_fix.catalogue(tmp_path))]
        before = state(tmp_path, names)
        killed(servers, tmp_path, store, "h3", *common, "--yes")
        done = run(servers, "fix", store, *common, "--check")
        said = done.stderr
        changed = fixed(tmp_path, names)
        assert changed == ["h1", "h2", "h3"]
        assert "changed: h[1-3] (3 hosts)" in said and "not started: h[4-5] (2 hosts)" in said
        assert "h[4-5] (2 hosts)" in done.stdout
        name = said.split()[1].rstrip(":")
        status, _ = run_json(servers, "undo", store, name, "--yes")
        assert status == 0 and state(tmp_path, names) == before
