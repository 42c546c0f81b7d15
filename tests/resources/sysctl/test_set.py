"""Reserving ports: lists are merged, the file with the last word at boot is known, others' files stay as they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Optional

import pytest
from helpers.examples import ROOT, example_context
from hypothesis import given
from hypothesis import strategies as st

from envtune.audit import examine
from envtune.catalog import load
from envtune.fix.plan import Plan, make_plan
from envtune.resources.sysctl.files import boot_settings, effective_setting, key_path, parse_settings
from envtune.resources.sysctl.set import with_key
from envtune.snapshot.host import SnapshotHost

KEY = "net/ipv4/ip_local_reserved_ports"
DOTTED = "net.ipv4.ip_local_reserved_ports"
OWN = "/etc/sysctl.d/95-envtune.conf"


def in_effect(files: dict[str, Any], key: str = KEY) -> Optional[tuple[str, str]]:
    """(value, file) after a boot."""
    found = effective_setting(boot_settings(SnapshotHost({"files": files})), key_path(key))
    return None if found is None else (str(found.value), found.path)


def planned(files: dict[str, Any], live: str = "", environ: Optional[dict[str, str]] = None, **more: Any) -> Plan:
    """The plan for a host whose ephemeral ports hold HCCL's."""
    kernel = {f"/proc/sys/{KEY}": live + "\n", "/proc/sys/net/ipv4/ip_local_port_range": "32768\t60999\n"}
    example: dict[str, Any] = {
        "files": {**kernel, **files},
        "listeners": [],
        "interfaces": [],
        "environ": environ or {},
        **more,
    }
    context = example_context(example)
    checks = [check for check in load().checks if check.id in ("NET003", "NET005")]
    found = [finding for check in checks for finding in examine(check, context)]
    return make_plan(found, load().playbooks, context)


# ---------------------------------------------------------------------- which file wins


def test_the_last_name_wins_over_all_directories() -> None:
    files = {
        "/usr/lib/sysctl.d/99-vendor.conf": f"{DOTTED} = 1\n",
        "/etc/sysctl.d/50-site.conf": f"{DOTTED} = 2\n",
        "/run/sysctl.d/60-agent.conf": f"{DOTTED} = 3\n",
    }
    assert in_effect(files) == ("1", "/usr/lib/sysctl.d/99-vendor.conf")


def test_the_same_name_in_etc_hides_the_vendors() -> None:
    files = {"/usr/lib/sysctl.d/50-a.conf": f"{DOTTED} = 1\n", "/etc/sysctl.d/50-a.conf": "# nothing\n"}
    assert in_effect(files) is None


def test_a_link_to_dev_null_masks() -> None:
    files = {
        "/usr/lib/sysctl.d/50-a.conf": f"{DOTTED} = 1\n",
        "/etc/sysctl.d/50-a.conf": {"link": "/dev/null"},
        "/dev/null": {"char": True},
    }
    assert in_effect(files) is None


def test_the_last_line_of_a_file_wins() -> None:
    assert in_effect({OWN: f"{DOTTED} = 1\n{DOTTED}=2\n"}) == ("2", OWN)


def test_sysctl_conf_counts_where_a_link_leads_to_it() -> None:
    main = {"/etc/sysctl.conf": f"{DOTTED} = 9\n"}
    assert in_effect(main) is None
    link = {"/etc/sysctl.d/99-sysctl.conf": {"link": "../sysctl.conf"}}
    assert in_effect({**main, **link}) == ("9", "/etc/sysctl.d/99-sysctl.conf")


@pytest.mark.parametrize(
    "row",
    [
        f"{DOTTED}=7",
        f"{KEY} = 7",
        f"-{DOTTED} = 7",
        f"  {DOTTED}\t=\t7  ",
        f"- {DOTTED} = 7",
        f"# {DOTTED} = 1\n; {DOTTED} = 2\n\n{DOTTED} = 7\r",
    ],
)
def test_ways_to_write_a_setting(row: str) -> None:
    assert in_effect({OWN: row + "\n"}) == ("7", OWN)


def test_a_key_that_is_named_wins_over_a_glob_that_comes_later() -> None:
    named, glob = "net.ipv4.conf.eth0.rp_filter = 1\n", "net.ipv4.conf.*.rp_filter = 2\n"
    key = "net.ipv4.conf.eth0.rp_filter"
    assert in_effect({"/etc/sysctl.d/10-a.conf": named, "/etc/sysctl.d/20-b.conf": glob}, key) == (
        "1",
        "/etc/sysctl.d/10-a.conf",
    )
    assert in_effect({"/etc/sysctl.d/20-b.conf": glob}, key) == ("2", "/etc/sysctl.d/20-b.conf")
    assert in_effect({"/etc/sysctl.d/20-b.conf": "net.*.rp_filter = 2\n"}, key) is None, "* does not cross a slash"
    excluded = {"/etc/sysctl.d/20-b.conf": glob, "/etc/sysctl.d/10-a.conf": "-net.ipv4.conf.eth0.rp_filter\n"}
    assert in_effect(excluded, key) is None


def test_dots_and_slashes_in_names() -> None:
    assert key_path("net.ipv4.conf.eth0/7.mtu") == key_path("net/ipv4/conf/eth0.7/mtu") == "net/ipv4/conf/eth0.7/mtu"


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    for line in parse_settings(text, "x.conf"):
        assert line.key


@given(st.text(alphabet="net.ipv4/=-#;* \n7\r"), st.sampled_from(["60000-60031", "1,2-3"]))
def test_a_key_is_set_once_and_every_other_line_stays(text: str, value: str) -> None:
    done = with_key(text, DOTTED, value)
    assert with_key(done, DOTTED, value) == done, "written twice is the same"
    assert [line.value for line in parse_settings(done, "") if line.key == KEY] == [value]
    others = [row for row in text.splitlines() if not any(line.key == KEY for line in parse_settings(row, ""))]
    assert [row for row in done.splitlines() if row in others] == others or not text


# ---------------------------------------------------------------------- the plan


def test_both_views_are_set_and_the_list_is_kept() -> None:
    live, boot = planned({}, live="8080,30000-30010").changes
    assert (live.view, live.before, live.after) == ("live", "8080,30000-30010", "8080,30000-30010,60000-60031")
    assert (boot.view, boot.target) == ("boot", OWN)
    assert boot.after.endswith(f"{DOTTED} = 8080,30000-30010,60000-60031\n")
    assert live.finding == boot.finding == "NET005" and live.safety == "confirm"


def test_other_keys_of_ours_are_kept() -> None:
    (_, boot) = planned({OWN: "# mine\nvm.swappiness = 10\n"}).changes
    assert boot.after == f"# mine\nvm.swappiness = 10\n{DOTTED} = 60000-60031\n"


def test_a_rival_with_a_later_name_is_named_merged_and_comes_before_us() -> None:
    rival = "/etc/sysctl.d/98-rival.conf"
    (_, boot) = planned({rival: f"{DOTTED} = 7000\n"}, live="8080").changes
    assert boot.target == "/etc/sysctl.d/99-zz-envtune.conf"
    assert boot.after.endswith("= 7000,8080,60000-60031\n")
    assert rival in boot.rivals[0].en and "7000" in boot.rivals[0].en
    assert all(o["path"] != rival for o in boot.operations)
    files = {rival: f"{DOTTED} = 7000\n", boot.target: boot.after}
    assert in_effect(files) == ("7000,8080,60000-60031", boot.target)


def test_an_earlier_choice_of_ours_is_taken_back() -> None:
    files = {OWN: f"{DOTTED} = 1\nvm.swappiness = 1\n", "/etc/sysctl.d/98-rival.conf": f"{DOTTED} = 7000\n"}
    (_, boot) = planned(files).changes
    assert [o["path"] for o in boot.operations] == ["/etc/sysctl.d/99-zz-envtune.conf", OWN]


def test_nothing_of_ours_comes_behind_it() -> None:
    (live,) = planned({"/etc/sysctl.d/zzzz.conf": f"{DOTTED} = 7000\n"}).changes
    assert live.view == "live" and live.note is not None
    assert "until the next boot only: /etc/sysctl.d/zzzz.conf:1 sets" in live.note.en


def test_sysctl_conf_and_ufw_are_named() -> None:
    files = {"/etc/sysctl.conf": f"{DOTTED}=5\n", "/etc/ufw/sysctl.conf": f"{KEY}=6\n"}
    (_, boot) = planned(files).changes
    words = " | ".join(rival.en for rival in boot.rivals)
    assert "/etc/sysctl.conf:1 holds 5" in words and "/etc/ufw/sysctl.conf:1 holds 6" in words


def test_tuned_that_sets_the_key_is_named() -> None:
    files = {
        "/etc/systemd/system/multi-user.target.wants/tuned.service": {"link": "/usr/lib/systemd/system/tuned.service"},
        "/etc/tuned/active_profile": "net\n",
        "/etc/tuned/net/tuned.conf": f"[sysctl]\n{DOTTED}=5\n",
    }
    (live, _) = planned(files).changes
    assert "tuned (net) sets" in live.rivals[0].en


def test_the_boot_view_alone_when_the_running_kernel_is_right() -> None:
    assert not planned({}, live="60000-60031").changes, "nothing failed, so nothing is planned"


def test_master_port_is_reserved_with_hccls() -> None:
    live, boot = planned({}, environ={"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "40000"}).changes
    assert live.after == "40000,60000-60031" and {live.finding, *live.cures} == {"NET003", "NET005"}
    assert boot.cures == live.cures


def test_a_port_that_is_taken_is_not_reserved() -> None:
    taken = [{"address": "0.0.0.0", "port": 29688}]
    environ = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29688"}
    plan = planned({}, live="60000-60031", environ=environ, listeners=taken)
    assert not plan.changes
    assert any("taken" in s.reason.en and s.finding == "NET003" for s in plan.skipped)


def test_what_is_no_list_is_not_touched() -> None:
    (live,) = planned({OWN: f"{DOTTED} = all of them\n"}).changes
    assert live.view == "live" and live.note is not None and "no list of ports" in live.note.en
    plan = planned({}, live="what")
    assert not plan.changes


def test_a_container_is_told_what_its_host_has_to_do() -> None:
    mounts = "22 1 0:21 / / rw - overlay overlay rw\n23 22 0:22 / /proc/sys ro - proc proc rw\n"
    plan = planned({"/.dockerenv": "", "/proc/self/mountinfo": mounts}, live="8080")
    assert not plan.changes
    assert f"docker run --sysctl {DOTTED}=8080,60000-60031" in plan.skipped[0].reason.en


# ---------------------------------------------------------------------- the kernel

REAL = """
import json, os, subprocess, sys
from helpers import fixing

key, rival, state = "/proc/sys/net/ipv4/ip_local_reserved_ports", sys.argv[1], sys.argv[2]
subprocess.run(["mount", "--make-rprivate", "/"], check=True)
for name in ("/etc/sysctl.d", "/run/sysctl.d", "/usr/lib/sysctl.d"):
    if os.path.isdir(name):
        subprocess.run(["mount", "-t", "tmpfs", "none", name], check=True)
with open(key, "w") as file:
    file.write("8080,30000-30010")
with open(rival, "w") as file:
    file.write("net.ipv4.ip_local_reserved_ports = 7000,7001\\n")

def live():
    with open(key) as file:
        return file.read().strip()

def conf():
    folders = ("/etc/sysctl.d/", os.path.dirname(rival) + "/")
    return {folder + name: open(folder + name).read() for folder in folders for name in sorted(os.listdir(folder))}

def boot(*argv):
    with open(key, "w") as file:
        file.write("\\n")
    subprocess.run(argv, check=True, capture_output=True)
    return live()

facts = {"container": "false"}
before = [live(), conf()]
made = fixing.plan(fixing.local_context(facts), "NET005")
run, results = fixing.apply(made, state)
after = [live(), conf()]
again = [f.outcome.value for f in fixing.find(fixing.local_context(facts), "NET005") if f.subject.startswith("HCCL")]
booted = [boot("sysctl", "--system"), boot("/lib/systemd/systemd-sysctl")]
with open(key, "w") as file:  # what the run left
    file.write(after[0] + "\\n")
wrong = fixing.undo(run, state)
told = {target: row["status"] for target, row in results.items()}
print(json.dumps({"before": before, "after": after, "results": told, "again": again, "booted": booted, "wrong": wrong,
                  "back": [live(), conf()]}))
"""


@pytest.mark.root
@pytest.mark.parametrize("rival", ["/etc/sysctl.d/98-rival.conf", "/usr/lib/sysctl.d/98-rival.conf"])
def test_merged_in_a_namespace_with_a_rival_file(tmp_path: Path, rival: str) -> None:
    """The name decides which file wins, whatever directory it lies in."""
    if os.geteuid() != 0 or not os.path.exists("/lib/systemd/systemd-sysctl"):
        pytest.skip("needs root, and systemd-sysctl")
    argv = ["unshare", "-m", "-n", sys.executable, "-c", REAL, rival, str(tmp_path / "state")]
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HCCL", "MASTER"))}
    env["PYTHONPATH"] = str(ROOT / "tests")
    machine = Path("/proc/sys/net/ipv4/ip_local_reserved_ports").read_text()
    done = subprocess.run(argv, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout)
    assert set(said["results"].values()) == {"done"}
    assert said["after"][0] == "8080,30000-30010,60000-60031", "the running kernel, as it shows its list"
    assert said["again"] == ["pass"]
    merged = "7000-7001,8080,30000-30010,60000-60031"
    assert said["booted"] == [merged, merged], "by `sysctl --system` and by systemd, over the rival file"
    assert said["after"][1][rival] == said["before"][1][rival]
    assert sorted(said["after"][1]) == sorted([rival, "/etc/sysctl.d/99-zz-envtune.conf"])
    assert said["wrong"] == [] and said["back"] == said["before"], "undone exactly"
    assert Path("/proc/sys/net/ipv4/ip_local_reserved_ports").read_text() == machine
