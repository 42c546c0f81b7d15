"""The probes that a site's checks are written with, beyond their examples: odd contents, missing rights, recordings."""

from __future__ import annotations

from typing import Any, Mapping, Optional

import pytest
from helpers.examples import example_context

from envtune import expect
from envtune.context.registry import find_probe
from envtune.errors import HostError, NotRecorded, Undetermined
from envtune.resources.files.value import Value
from envtune.resources.system.mounts import mount_at

LIMITS = "Limit  Soft Limit  Hard Limit  Units\nMax open files  1024  unlimited  files\n"


def read(probe: str, example: Mapping[str, Any], **arguments: str) -> list[tuple[str, Any]]:
    """Subject and value of every reading."""
    return [(r.subject, r.value) for r in find_probe(probe)(example_context(example), **arguments)]


def values(probe: str, files: Mapping[str, Any], **arguments: str) -> list[Any]:
    return [value for _, value in read(probe, {"files": files}, **arguments)]


# ---------------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("text", "holds", "fails"),
    [
        ("1", [{"eq": 1}, {"eq": "1"}, {"in": [0, 1]}, {"ge": 1}], [{"eq": True}, {"ne": 1}, {"gt": 1}]),
        ("true", [{"eq": True}, {"eq": "true"}], [{"eq": 1}, {"ge": 0}, {"lt": 5}]),
        ("unlimited", [{"eq": "unlimited"}, {"ge": 10**12}], [{"le": 10**12}]),
        ("missing", [{"eq": "missing"}, {"empty": False}], [{"ge": 0}, {"le": 0}, {"ne": "missing"}]),
        ("", [{"empty": True}, {"eq": ""}], [{"ge": 0}]),
        ("4096 87380 6291456", [{"eq": "4096 87380 6291456"}, {"matches": r"4096 \d+ \d+"}], [{"ge": 4096}]),
    ],
)
def test_a_value_compares_as_what_it_looks_like(text: str, holds: list[Any], fails: list[Any]) -> None:
    assert [row for row in holds if not expect.matches(row, Value(text))] == []
    assert [row for row in fails if expect.matches(row, Value(text))] == []


# ---------------------------------------------------------------------- files


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        ("text", "file"),
        ({"dir": []}, "dir"),
        ({"char": True}, "char"),
        ({"link": "/etc/os-release"}, "file"),
        ({"link": "/nowhere"}, "link"),
        (None, "missing"),
    ],
)
def test_what_is_at_a_path(entry: Any, kind: str) -> None:
    assert values("file.kind", {"/x": entry}, path="/x") == [kind]


def test_an_owner_without_a_name_is_a_number() -> None:
    files = {"/x": {"text": "", "uid": 7, "gid": 8}, "/etc/passwd": "a:x:70::::\nnonsense\nb:x:7\n"}
    assert values("file.owner", files, path="/x") == ["b"]
    assert values("file.group", files, path="/x") == ["8"]
    assert values("file.owner", {}, path="/x") == ["missing"]


TEXT = "# a = 0\n[one]\na = 1\nb: two words\n[two] # more\na=3 \n; a = 4\nexport A='q'\nFlag yes\nempty =\n"


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({"key": "a"}, [("/x:3 a", "1"), ("/x:6 a", "3")]),
        ({"key": "a", "section": "two"}, [("/x:6 a", "3")]),
        ({"key": "b"}, [("/x:4 b", "two words")]),
        ({"key": "A"}, [("/x:8 A", "q")]),
        ({"key": "Flag"}, [("/x:9 Flag", "yes")]),
        ({"key": "empty"}, [("/x:10 empty", "")]),
        ({"key": "c"}, [("/x: c", "missing")]),
    ],
)
def test_settings_of_a_file(arguments: Mapping[str, str], wanted: list[tuple[str, str]]) -> None:
    assert read("file.setting", {"files": {"/x": TEXT}}, path="/x", **arguments) == wanted
    assert values("file.setting", {}, path="/x", **arguments) == ["missing"]


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("^a=(.*)", [("/x:6", "3 ")]),
        ("wor.s", [("/x:4", "words")]),
        ("(none)?Flag", [("/x:9", "")]),
        ("z", [("/x", "")]),
    ],
)
def test_lines_that_match(pattern: str, wanted: list[tuple[str, str]]) -> None:
    assert read("file.match", {"files": {"/x": TEXT}}, path="/x", pattern=pattern) == wanted


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("a.b", "1"),
        ("a.c.1", "y"),
        ("a.c", ("x", "y")),
        ("a.c.9", "missing"),
        ("a.c.x", "missing"),
        ("a.d.e", "dotted"),
        ("a.b.c", "missing"),
        ("on", "true"),
        ("none", "-"),
        ("a.o", '{"p": 1}'),
    ],
)
def test_a_value_of_json(key: str, value: Any) -> None:
    text = '{"a": {"b": 1, "c": ["x", "y"], "d.e": "dotted", "o": {"p": 1}}, "on": true, "none": null}'
    assert values("file.json", {"/x": text}, path="/x", key=key) == [value]


@pytest.mark.parametrize(
    ("probe", "arguments", "files"),
    [
        ("file.kind", {"path": "x"}, {}),
        ("file.kind", {"path": "/x/../y"}, {}),
        ("file.match", {"path": "/x", "pattern": "("}, {"/x": ""}),
        ("file.json", {"path": "/x", "key": "a"}, {"/x": "{"}),
        ("file.json", {"path": "/x", "key": "a"}, {"/x": "[" * 100_000}),
        ("file.match", {"path": "/x", "pattern": "a"}, {"/x": {"error": "EACCES"}}),
        ("file.mode", {"path": "/x"}, {"/x": {"error": "EACCES"}}),
        ("sysctl.value", {"key": "a.b"}, {"/proc/sys/a/b": {"error": "EIO"}}),
        ("limit.soft", {"name": "nproc"}, {"/proc/self/limits": LIMITS}),
        ("command.path", {"name": "a/b"}, {}),
    ],
)
def test_what_cannot_be_read_is_not_decided(probe: str, arguments: Mapping[str, str], files: Mapping[str, Any]) -> None:
    with pytest.raises((HostError, Undetermined)):
        values(probe, files, **arguments)


# ---------------------------------------------------------------------- the kernel


def test_kernel_parameters() -> None:
    files = {
        "/proc/sys/net/ipv4/tcp_rmem": "4096\t87380\t6291456\n",
        "/etc/sysctl.d/10-a.conf": "vm.swappiness = 1\n",
        "/etc/sysctl.d/20-b.conf": "vm/swappiness=10\n",
    }
    assert values("sysctl.value", files, key="net.ipv4.tcp_rmem") == ["4096 87380 6291456"]
    assert values("sysctl.value", files, key="vm.no_such_key") == ["missing"]
    assert values("sysctl.boot", files, key="vm.swappiness") == ["10"]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("quiet", ["set"]), ("console", ["tty0", "ttyS0"]), ("hugepages", ["missing"]), ("a_b", ["c=d"])],
)
def test_the_kernel_command_line(name: str, wanted: list[str]) -> None:
    files = {"/proc/cmdline": "quiet console=tty0 console=ttyS0 a-b=c=d\n"}
    assert values("kernel.parameter", files, name=name) == wanted


@pytest.mark.parametrize(
    ("name", "wanted"), [("nf-tables", "loaded"), ("ext4", "builtin"), ("xfs", "builtin"), ("nfs", "missing")]
)
def test_modules(name: str, wanted: str) -> None:
    files = {
        "/proc/modules": "nf_tables 1 0 - Live 0x0\n",
        "/sys/module/ext4": {"dir": []},
        "/lib/modules/4.19.90-2003.4.0.0036.oe1.aarch64/modules.builtin": "kernel/fs/xfs/xfs.ko\n",
    }
    assert values("kernel.module", files, name=name) == [wanted]


def test_a_part_of_the_list_of_modules_proves_no_absence() -> None:
    builtin = "kernel/a/a.ko\nkernel/net/netfilter/nf_tables.ko\n"
    files = {"/proc/modules": "", "/lib/modules/4.19.90-2003.4.0.0036.oe1.aarch64/modules.builtin": builtin}
    with pytest.raises(Undetermined):
        values("kernel.module", files, name="nfs")


# ---------------------------------------------------------------------- limits, mounts, services, packages


def test_limits_are_those_of_the_named_process() -> None:
    files = {"/proc/self/limits": LIMITS, "/proc/9/limits": LIMITS.replace("1024", "9"), "/proc/9/environ": ""}
    assert values("limit.hard", files, name="nofile") == ["unlimited"]
    target = {"pid": 9}
    assert read("limit.soft", {"files": files, "target": target}, name="nofile") == [("nofile", "9")]


def test_a_script_that_changes_limits_is_not_decided() -> None:
    files = {"/proc/self/limits": LIMITS, "/home/train/run.sh": "ulimit -n 65536\npython train.py\n"}
    with pytest.raises(Undetermined, match="ulimit"):
        read("limit.soft", {"files": files, "target": {"script": "/home/train/run.sh"}}, name="nofile")


MOUNTS = """\
22 1 253:0 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
30 22 0:50 / /my\\040data ro - nfs4 host:/a rw,vers=4.2
31 22 0:51 / /data rw - xfs /dev/vdb rw
32 31 0:52 / /data rw,noatime - lustre x:/fs rw,flock
cut short
"""


@pytest.mark.parametrize(
    ("path", "kind"), [("/", "ext4"), ("/my data", "nfs4"), ("/data", "lustre"), ("/dat", None), ("/data/x", None)]
)
def test_the_last_mount_at_a_point_counts(path: str, kind: Optional[str]) -> None:
    mount = mount_at(MOUNTS, path)
    assert (mount and mount.kind) == kind


def test_options_are_those_of_the_mount_and_of_its_file_system() -> None:
    assert values("mount.options", {"/proc/self/mountinfo": MOUNTS}, path="/data/") == [("rw", "noatime", "flock")]
    assert values("mount.options", {"/proc/self/mountinfo": MOUNTS}, path="/x") == [()]


def test_space_that_no_recording_holds_is_not_decided() -> None:
    files = {"/proc/self/mountinfo": MOUNTS, "/data/train": {"dir": []}}
    with pytest.raises(Undetermined, match="lustre"):
        values("mount.free", files, path="/data/train")
    assert values("mount.free", files, path="/tmp") == [400.0]


UNIT = "[Install]\nWantedBy=multi-user.target\n"


@pytest.mark.parametrize(
    ("files", "unit", "state"),
    [
        ({}, "a.service", "missing"),
        ({"/usr/lib/systemd/system/a.service": UNIT}, "a.service", "disabled"),
        ({"/usr/lib/systemd/system/a.service": "[Service]\n"}, "a.service", "static"),
        ({"/etc/systemd/system/a.service": {"link": "/dev/null"}}, "a.service", "masked"),
        (
            {
                "/usr/lib/systemd/system/a@.service": UNIT,
                "/etc/systemd/system/b.target.requires/a@1.service": {"link": "/usr/lib/systemd/system/a@.service"},
            },
            "a@1.service",
            "enabled",
        ),
    ],
)
def test_the_state_of_a_unit(files: Mapping[str, Any], unit: str, state: str) -> None:
    assert values("service.enabled", files, unit=unit) == [state]


@pytest.mark.parametrize("row", [{"rc": 1, "stderr": "System has not been booted with systemd"}, {"error": "timeout"}])
def test_a_service_manager_that_does_not_answer_is_not_decided(row: Mapping[str, Any]) -> None:
    with pytest.raises((HostError, Undetermined)):
        read("service.active", {"commands": {"systemctl is-active a.service": row}}, unit="a.service")


DEBIAN = {"/etc/os-release": "ID=debian\n"}
DPKG = "dpkg-query -W -f=${db:Status-Status}=${Version}; "


@pytest.mark.parametrize(
    ("files", "command", "row", "wanted"),
    [
        (DEBIAN, f"{DPKG}jq", "installed=1.6-2.1;", ["1.6-2.1"]),
        (DEBIAN, f"{DPKG}jq", "config-files=1.6-2.1;", ["missing"]),
        (DEBIAN, f"{DPKG}jq", {"rc": 1, "stderr": "dpkg-query: no packages found matching jq\n"}, ["missing"]),
        ({}, "rpm -q --qf %{VERSION}-%{RELEASE}; jq", "1.6-1;1.7-1;", ["1.6-1", "1.7-1"]),
    ],
)
def test_versions_of_packages(files: Mapping[str, Any], command: str, row: Any, wanted: list[str]) -> None:
    found = read("package.version", {"files": files, "commands": {command: row}}, name="jq")
    assert [value for _, value in found] == wanted


def test_a_package_database_that_cannot_be_read_is_not_decided() -> None:
    failed = {"rc": 1, "stderr": "error: cannot open Packages database"}
    with pytest.raises(Undetermined):
        read("package.version", {"commands": {"rpm -q --qf %{VERSION}-%{RELEASE}; jq": failed}}, name="jq")
    with pytest.raises(NotRecorded):
        read("package.version", {}, name="jq")


def test_processes_are_counted_by_name() -> None:
    processes = [
        {"pid": 1, "ppid": 0, "user": "root", "name": "systemd"},
        {"pid": 2, "ppid": 1, "user": "root", "name": "prometheus-node"},
        {"pid": 3, "ppid": 1, "user": "root", "name": "python3", "argv": ["/opt/bin/agent", "x"]},
        {"pid": 4, "ppid": 1, "user": "root", "name": "agent", "state": "Z"},
    ]
    counted = {
        name: read("process.count", {"processes": processes}, name=name)[0][1]
        for name in ("systemd", "prometheus-node-exporter", "agent", "none")
    }
    assert counted == {"systemd": 1, "prometheus-node-exporter": 1, "agent": 1, "none": 0}
