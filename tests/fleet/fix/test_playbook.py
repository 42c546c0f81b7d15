"""The playbooks, as Ansible runs them: what they refuse, what --check shows, and nodes of Slurm that are drained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers.examples import ROOT

from envtune.fleet.fix.folder import RunFolder
from envtune.fleet.fix.playbook import COLLECTION, Ansible, find_ansible, play
from envtune.fleet.ssh import Ssh

PLAYBOOKS = ROOT / "ansible" / COLLECTION / "playbooks"
NOWHERE = Ssh("-p 1", path="/usr/bin/ssh", connect_timeout=5)
VARIABLES = {"run": "fleet-1", "most_failed": 0, "slurm_drain": False, "scontrol": "", "drain_minutes": 1}
SCONTROL = """\
#!/bin/sh
cd "$(dirname "$0")"
echo "$*" >>log
case "$*" in
  *DRAIN*) echo "NodeName=127.0.0.1 State=IDLE+DRAIN Reason=envtune fleet-1 [root@now]" >state ;;
  *RESUME*) echo "NodeName=127.0.0.1 State=IDLE" >state ;;
  *) cat state ;;
esac
"""


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = RunFolder(tmp_path / "fleet.db", "fleet-1")
    made.make()
    made.write("program", b"@REQUEST@")
    made.write("command", b"python3 -")
    made.write("requests/127.0.0.1", b"")
    made.write("shown/127.0.0.1", json.dumps([["/etc/x", "old\n", "new\n"]]).encode())
    return made


def log(folder: RunFolder) -> str:
    return (folder.path / "ansible.log").read_text()


def test_every_play_is_linear_and_a_stage_stops() -> None:
    plays = {path.name: yaml.safe_load(path.read_text()) for path in PLAYBOOKS.glob("*.yml")}
    assert set(plays) == {"fix.yml", "undo.yml", "resume.yml"}
    assert {play["strategy"] for each in plays.values() for play in each} == {"linear"}
    assert plays["fix.yml"][0]["max_fail_percentage"] == "{{ most_failed }}"


def test_the_collection_has_its_licence_and_stays_apart() -> None:
    folder = ROOT / "ansible" / COLLECTION
    assert "GNU GENERAL PUBLIC LICENSE" in (folder / "LICENSE").read_text()
    source = (folder / "plugins" / "action" / "execute.py").read_text()
    assert "import envtune" not in source and "from envtune" not in source
    for path in (ROOT / "envtune").rglob("*.py"):
        assert "import ansible" not in path.read_text("utf-8") and "from ansible" not in path.read_text("utf-8"), path


@pytest.mark.slow
def test_another_strategy_is_refused_before_anything_is_sent(folder: RunFolder, tmp_path: Path) -> None:
    own = find_ansible()
    copied = tmp_path / "site"
    place = copied / COLLECTION
    place.parent.mkdir(parents=True)
    place.mkdir()
    (place / "plugins").symlink_to(own.collections / COLLECTION / "plugins")
    (place / "playbooks").mkdir()
    text = (PLAYBOOKS / "fix.yml").read_text().replace("strategy: linear", "strategy: free")
    (place / "playbooks" / "fix.yml").write_text(text)
    play(Ansible(own.program, copied), "fix.yml", folder, ["127.0.0.1"], NOWHERE, VARIABLES)
    assert "a staged fix needs linear" in log(folder)
    assert folder.answer("127.0.0.1").state == "planned"


@pytest.mark.slow
def test_check_shows_the_difference_and_sends_nothing(folder: RunFolder) -> None:
    play(find_ansible(), "fix.yml", folder, ["127.0.0.1"], NOWHERE, VARIABLES, ("--check", "--diff"))
    assert "-old\n+new\n" in log(folder)
    assert folder.answer("127.0.0.1").state == "planned"


@pytest.mark.slow
@pytest.mark.parametrize("ended", ["stop", "released"])
def test_nothing_is_sent_once_the_controller_has_stopped_or_ended(folder: RunFolder, ended: str) -> None:
    folder.stop() if ended == "stop" else folder.release()
    play(find_ansible(), "fix.yml", folder, ["127.0.0.1"], NOWHERE, VARIABLES)
    assert "nothing was sent to this host" in log(folder)
    assert folder.answer("127.0.0.1").state == "planned"


def scontrol(folder: RunFolder, state: str) -> Path:
    place = folder.path / "slurm"
    place.mkdir()
    (place / "scontrol").write_text(SCONTROL)
    (place / "scontrol").chmod(0o755)
    (place / "state").write_text(state)
    return place


@pytest.mark.slow
@pytest.mark.parametrize("drained", [False, True])
def test_a_node_is_drained_first_and_resumed_if_it_was_drained_here(folder: RunFolder, drained: bool) -> None:
    before = "State=IDLE+DRAIN Reason=disk [root@then]" if drained else "State=IDLE"
    place = scontrol(folder, f"NodeName=127.0.0.1 {before}\n")
    variables: dict[str, Any] = {**VARIABLES, "slurm_drain": True, "scontrol": str(place / "scontrol")}
    play(find_ansible(), "fix.yml", folder, ["127.0.0.1"], NOWHERE, variables)
    show, drain = "show node 127.0.0.1 --oneliner", "update NodeName=127.0.0.1 State=DRAIN Reason=envtune fleet-1"
    expected = [show, show] if drained else [show, drain, show]
    assert (place / "log").read_text().splitlines() == expected, log(folder)
    assert folder.answer("127.0.0.1").state == "unreachable"  # nothing listens there
    play(find_ansible(), "resume.yml", folder, ["127.0.0.1"], NOWHERE, variables)
    more = [show] if drained else [show, "update NodeName=127.0.0.1 State=RESUME"]
    assert (place / "log").read_text().splitlines() == [*expected, *more], log(folder)
