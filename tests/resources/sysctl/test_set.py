"""Reserving ports: lists are merged, the file with the last word at boot is known, others' files stay as they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Optional

import pytest
from helpers.examples import ROOT
from hypothesis import given
from hypothesis import strategies as st

from envtune.resources.sysctl.files import boot_settings, effective_setting, key_path, parse_settings
from envtune.resources.sysctl.set import OWN_FILES, with_key
from envtune.snapshot.host import SnapshotHost

KEY = "net/ipv4/ip_local_reserved_ports"
DOTTED = "net.ipv4.ip_local_reserved_ports"
OWN = "/etc/sysctl.d/95-envtune.conf"


def in_effect(files: dict[str, Any], key: str = KEY) -> Optional[tuple[str, str]]:
    """(value, file) after a boot."""
    found = effective_setting(boot_settings(SnapshotHost({"files": files})), key_path(key))
    return None if found is None else (str(found.value), found.path)


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


def test_each_name_of_ours_wins_over_the_files_it_is_chosen_for() -> None:
    for theirs, ours in zip(("90-site.conf", "98-rival.conf", "99-zzz.conf"), OWN_FILES):
        files = {f"/usr/lib/sysctl.d/{theirs}": f"{DOTTED} = 1\n", f"/etc/sysctl.d/{ours}": f"{DOTTED} = 2\n"}
        assert in_effect(files) == ("2", f"/etc/sysctl.d/{ours}")


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

facts = {"container": "false", "ascend_job": "true"}
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
