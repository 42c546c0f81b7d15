"""Plan files that somebody else wrote, as root: nothing is started or written for them, and the rest is as shown.

One process has every file refused under strace, in namespaces of its own: a packet filter, a /proc/sys/net and an
/etc/sysctl.d that nobody else sees. Then it carries out the plan that nobody changed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator, NamedTuple

import pytest
from helpers.examples import ROOT
from helpers.plan_fuzz import EVIL, says_the_same
from helpers.yaml_text import load_yaml

from envtune.trust.programs import resolve_program

MUTATIONS = int(os.environ.get("ENVTUNE_PLAN_MUTATIONS", "2000"))
HOSTILE = load_yaml((Path(__file__).parent / "hostile_plans.yaml").read_text("utf-8"))
CALLS = "execve,open,openat,creat,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,link,linkat,symlink"
CALLS += ",symlinkat,chmod,fchmodat,chown,lchown,fchownat,truncate,mknod,mknodat,mount,umount2,kill,tkill,setxattr"
SETUP = """\
set -e
ip link set lo up; ip link add eth0 type veth peer name peer0; ip link set peer0 up; ip link set eth0 up
ip addr add 10.77.0.2/24 dev eth0
mkdir "$1/sysctl.d"; mount --bind "$1/sysctl.d" /etc/sysctl.d
nft 'table inet f { chain input { type filter hook input priority 0; ct state established accept; reject; }; }'
exec strace -f -qq -y -s 4096 --seccomp-bpf -o "$1/trace" -e trace="$2" "$3" -m helpers.plan_fuzz "$1"
"""


class Run(NamedTuple):
    """What became of the files, and what the system was asked for: the calls of each part, by its mark."""

    folder: Path
    plan: dict[str, Any]
    outcomes: dict[str, tuple[int, str, str, str]]
    calls: dict[str, list[str]]


@pytest.fixture(scope="module")
def fuzz(tmp_path_factory: pytest.TempPathFactory) -> Run:
    if os.geteuid() != 0 or any(shutil.which(name) is None for name in ("strace", "nft", "unshare", "ip")):
        pytest.skip("needs root, strace, nftables, util-linux and iproute2")
    folder = tmp_path_factory.mktemp("plans")
    (folder / "hostile.json").write_text(json.dumps(HOSTILE))
    env = {
        **os.environ,
        "MUTATIONS": str(MUTATIONS),
        "ENVTUNE_STATE": str(folder / "state"),
        "ENVTUNE_HOST_LOCK": str(folder / "lock"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}",
        "MASTER_PORT": "29688",
        "LC_ALL": "C.UTF-8",
    }
    argv = ["unshare", "-m", "-n", "bash", "-c", SETUP, "sh", str(folder), CALLS, sys.executable]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    plan = json.loads((folder / "plan.json").read_text())
    return Run(folder, plan, json.loads((folder / "outcomes.json").read_text()), parts(folder / "trace"))


def parts(trace: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in trace.read_text("utf-8", "replace").splitlines():
        mark = re.search('"/mark-([a-z]+)"', line)
        if mark:
            found[mark[1]] = []
        elif found:
            whole = re.sub(r'[A-Z_0-9]+<([^>]*)>, "([^/"][^"]*)"', r'"\1/\2"', line)  # of names in an open directory
            found[list(found)[-1]].append(whole.partition(" ")[2].strip())
    return found


def commands(calls: list[str]) -> set[str]:
    """The command lines that were started, whatever folder of PATH they were looked for in."""
    return {found[1] for call in calls if (found := re.search(r"^execve\(\".*?\", (\[.*?\]), 0x", call))}


def writes(calls: list[str]) -> Iterator[str]:
    """The calls that change something, by what they name."""
    for call in calls:
        opened = re.match(r"open(at)?\(", call)
        if call.startswith("execve") or (opened and not re.search("O_(WRONLY|RDWR|CREAT|TRUNC|APPEND)", call)):
            continue
        if re.match(r"[a-z0-9]+\(", call) and '"/dev/null"' not in call:
            yield call


pytestmark = [pytest.mark.root, pytest.mark.firewall, pytest.mark.slow]


def test_the_plan_has_something_of_everything(fuzz: Run) -> None:
    assert [(row["action"], row["view"]) for row in fuzz.plan["changes"]] == [
        ("firewall.allow", "live"),
        ("sysctl.set", "live"),
        ("sysctl.set", "boot"),
    ]
    assert len(HOSTILE) >= 60 and len(fuzz.outcomes) == len(HOSTILE) + MUTATIONS + 2
    assert len({row["name"] for row in HOSTILE}) == len(HOSTILE)


@pytest.mark.parametrize("row", HOSTILE, ids=[row["name"] for row in HOSTILE])
def test_a_hostile_plan_is_refused_for_what_is_wrong_with_it(fuzz: Run, row: dict[str, Any]) -> None:
    code, out, err, error = fuzz.outcomes[f"hostile-{row['name']}"]
    assert (code, out, error) == (2, "", "SystemExit(2)"), err
    assert row["told"] in err, err


def test_of_changed_plans_only_what_this_host_says_itself_is_shown(fuzz: Run) -> None:
    accepted = 0
    for name, (code, out, _err, error) in fuzz.outcomes.items():
        if not name.startswith("random-"):
            continue
        assert error in ("None", f"SystemExit({code})"), (name, error)
        text = (fuzz.folder / "files" / name).read_text()
        if code == 2 and not out:
            continue
        accepted += 1
        assert says_the_same(text, fuzz.plan), (name, text, out)
        assert EVIL not in out
    assert 0 < accepted < MUTATIONS / 5  # a note, a number or the order may be others


def test_before_consent_nothing_is_started_or_written(fuzz: Run) -> None:
    """Only what the checks themselves ask: the very commands with which the plan was made."""
    assert len(fuzz.calls["refused"]) > MUTATIONS  # there is something to judge
    assert commands(fuzz.calls["refused"]) <= commands(fuzz.calls["plan"])
    assert list(writes(fuzz.calls["refused"])) == []


def test_after_consent_only_what_the_plan_shows(fuzz: Run) -> None:
    assert fuzz.outcomes["plan"][0] == 0, fuzz.outcomes["plan"]
    (run,) = (row["operations"][0] for row in fuzz.plan["changes"] if row["operations"][0]["op"] == "run")
    shown = [
        [resolve_program(argv[0]), *argv[1:]] for argv in (run["argv"], run["check"]["argv"], run["given"]["argv"])
    ]
    known = commands(fuzz.calls["plan"]) | {json.dumps(argv) for argv in shown}
    started = {json.dumps(json.loads(argv)) for argv in commands(fuzz.calls["consent"])}
    assert started <= {json.dumps(json.loads(argv)) for argv in known} and json.dumps(shown[0]) in started
    places = [row["operations"][0]["path"] for row in fuzz.plan["changes"] if row["operations"][0]["op"] == "file"]
    own = [str(fuzz.folder / name) for name in ("state", "lock")]
    folders = [*own, *map(os.path.dirname, places), os.path.dirname(own[0])]
    for call in writes(fuzz.calls["consent"]):
        assert any(f'"{folder}' in call for folder in folders), call
    assert any(f'"{places[0]}"' in call for call in writes(fuzz.calls["consent"]))
    assert fuzz.outcomes["undo"][0] == 0
