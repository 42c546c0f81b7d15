"""A recorded host answers like a live one, and what it does not know it does not make up."""

from __future__ import annotations

import math
from typing import Any, Callable

import pytest
from helpers.recorded import host_data, judge
from helpers.search import examples as search
from hypothesis import given
from hypothesis import strategies as st

from envtune.errors import Denied, HostError, Missing, NotRecorded, SnapshotError, TimedOut, Unreadable
from envtune.model import Outcome
from envtune.snapshot.host import SnapshotHost

LOOKED = ["/etc/*", "/usr/local/Ascend/**", "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor"]


def host(files: dict[str, Any], **more: Any) -> SnapshotHost:
    return SnapshotHost({"files": files, **more})


def test_without_covered_what_is_not_mentioned_is_not_there() -> None:
    here = host({"/etc/hostname": "n\n"})
    for path in ("/etc/passwd", "/etc/hostname/x", "/opt"):
        with pytest.raises(Missing):
            here.stat(path)
    assert here.listdir("/etc") == ("hostname",)
    assert here.glob("/etc/*.conf") == ()


def test_with_covered_it_is_missing_where_somebody_looked_and_unknown_elsewhere() -> None:
    here = host({"/etc/hostname": "n\n", "/opt/x": "1"}, covered=LOOKED)
    for path in ("/etc/passwd", "/usr/local/Ascend/driver/version.info"):
        with pytest.raises(Missing):
            here.read(path)
    for path in ("/opt/y", "/etc/a/b", "/root/.bashrc"):
        with pytest.raises(NotRecorded):
            here.read(path)
    assert here.listdir("/etc") == ("hostname",)
    with pytest.raises(NotRecorded):
        here.listdir("/opt")
    with pytest.raises(NotRecorded):
        here.glob("/opt/*")
    assert here.glob("/opt/x") == ("/opt/x",)
    assert here.glob("/etc/*") == ("/etc/hostname",)
    assert here.glob("/sys/devices/system/cpu/cpufreq/policy[0-9]*/scaling_governor") == ()
    assert here.glob("/usr/local/Ascend/*/version.info") == ()


def test_a_listing_speaks_for_its_names() -> None:
    here = host({"/opt": {"dir": ["a", "b"]}, "/opt/a": "1", "/srv": {"dir": None}}, covered=[])
    assert here.listdir("/opt") == ("a", "b")
    assert here.glob("/opt/*") == ("/opt/a", "/opt/b")
    with pytest.raises(Missing):
        here.stat("/opt/c")
    with pytest.raises(Missing):
        here.read("/opt/c/d")
    with pytest.raises(NotRecorded):
        here.stat("/opt/b")
    assert here.stat("/srv").kind == "dir"
    with pytest.raises(NotRecorded):
        here.listdir("/srv")


def test_nothing_is_below_what_is_not_there_or_no_directory() -> None:
    here = host({"/opt": None, "/etc/hosts": "x", "/dev/null": {"char": True}}, covered=[])
    for path in ("/opt/a/b", "/etc/hosts/x", "/dev/null/x"):
        with pytest.raises(Missing):
            here.stat(path)


@pytest.mark.parametrize(
    ("code", "error"),
    [("EACCES", Denied), ("EPERM", Denied), ("EIO", Unreadable), ("ETIMEDOUT", TimedOut), ("ENOENT", Missing)],
)
def test_recorded_errors(code: str, error: type[HostError]) -> None:
    here = host(
        {
            "/a": {"error": code},
            "/b": {"size": 7, "error": code},
            "/c": {"dir": None, "error": code, "mode": "0700"},
        }
    )
    for read in (here.read, here.stat):
        with pytest.raises(error):
            read("/a")
    assert here.stat("/b").size == 7
    assert here.stat("/c").mode == 0o700
    asked: list[Callable[[], Any]] = [lambda: here.read("/b"), lambda: here.listdir("/c"), lambda: here.read("/c/d/e")]
    for ask in asked:
        with pytest.raises(error):
            ask()


def test_links_resolve_inside_the_recorded_tree() -> None:
    here = host(
        {
            "/usr/local/Ascend/8.0/version.info": "8.0\n",
            "/usr/local/Ascend/latest": {"link": "8.0"},
            "/opt/ascend": {"link": "/usr/local/Ascend/latest"},
            "/opt/up": {"link": "../../../../usr/local/Ascend"},
            "/a": {"link": "/b"},
            "/b": {"link": "/a"},
            "/gone": {"link": "/nowhere"},
        }
    )
    assert here.read("/opt/ascend/version.info") == "8.0\n"
    assert here.read("/opt/up/latest/version.info") == "8.0\n"
    assert here.read("/opt/ascend/../8.0/version.info") == "8.0\n"
    assert here.stat("/opt/ascend", follow=False).kind == "link"
    with pytest.raises(Unreadable):
        here.read("/a")
    with pytest.raises(Missing):
        here.stat("/gone")
    assert here.readlink("/gone") == "/nowhere"
    with pytest.raises(Unreadable):
        here.readlink("/usr/local/Ascend/8.0/version.info")


def test_content_that_is_not_text() -> None:
    here = host({"/a": {"base64": "/w=="}, "/b": b"\xff", "/c": {"size": 9}, "/d": {"size": 9, "head": "7f454c46"}})
    for path in ("/a", "/b"):
        assert here.read_bytes(path) == b"\xff"
        with pytest.raises(Unreadable):
            here.read(path)
    assert here.head("/d") == b"\x7fELF"
    for path in ("/c", "/d"):
        with pytest.raises(NotRecorded):
            here.read(path)


def test_commands() -> None:
    here = host(
        {},
        commands={
            "npu-smi info": "table",
            "ufw status": {"rc": 1, "stderr": "no"},
            "nft list ruleset": {"error": "denied"},
            "firewall-cmd --state": {"error": "missing"},
            "yes": {"error": "timeout", "seconds": 5},
        },
    )
    assert here.run(["npu-smi", "info"]).stdout == "table"
    assert (here.run(["ufw", "status"]).returncode, here.run(["ufw", "status"]).stderr) == (1, "no")
    for line, error in (
        ("nft list ruleset", Denied),
        ("firewall-cmd --list-all", Missing),
        ("yes", TimedOut),
        ("npu-smi info -t board", NotRecorded),
        ("hccn_tool", NotRecorded),
    ):
        with pytest.raises(error):
            here.run(line.split())


def test_tables_that_are_not_there_are_not_recorded() -> None:
    here = host({}, listeners={"error": "EACCES"})
    for ask in (here.processes, here.interfaces, lambda: here.disk("/")):
        with pytest.raises(NotRecorded):
            ask()
    with pytest.raises(Denied):
        here.listeners()


def test_tables_as_people_write_them() -> None:
    here = host(
        {},
        processes=[{"pid": 7, "user": 1000, "argv": "python3 train.py --lr 1"}],
        listeners=[{"address": "[::]", "port": 60000, "pid": 7}],
        interfaces=[{"name": "eth0", "addresses": ["192.0.2.1/24", "fe80::1%eth0"]}],
        disks=[{"path": "/", "total": 10, "free": 5}, {"path": "/data", "total": 20, "free": 9}],
    )
    assert (here.processes()[0].name, here.processes()[0].user) == ("python3", "1000")
    assert here.listeners()[0].address == "::"
    assert here.owner(here.listeners()[0]).pid == 7
    assert here.interfaces()[0].addresses == ("192.0.2.1", "fe80::1")
    assert [here.disk(path).total for path in ("/home", "/data", "/data/x", "/database")] == [10, 20, 20, 10]


# ---------------------------------------------------------------------------------------------------- any mapping

paths = st.sampled_from(["/", "/a", "/a/b", "/a/b/c", "/etc/os-release", "/x*", "/a/..", "a", "", "/a\0", "/\ud800"])
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.binary(max_size=4),
    st.sampled_from(["/a", "/a/b", "..", "EACCES", "missing", "0644", math.nan, 1 << 80]),
)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(scalars, inner, max_size=3))
entries = st.one_of(
    values,
    st.fixed_dictionaries(
        {},
        optional={
            "link": paths | values,
            "dir": st.lists(st.sampled_from(["a", "b", "c"])) | values,
            "text": st.text(max_size=5) | values,
            "size": st.integers(0, 9) | values,
            "error": st.sampled_from(["EACCES", "EIO"]) | values,
            "mode": st.just("0644") | values,
            "char": st.just(True) | values,
        },
    ),
)
rows = st.lists(
    st.fixed_dictionaries(
        {}, optional={k: values | st.integers(0, 9) | st.just("/") for k in ("pid", "port", "address", "name", "path")}
    )
)
mappings = st.fixed_dictionaries(
    {},
    optional={
        "files": st.dictionaries(paths, entries, max_size=6) | values,
        "covered": st.lists(paths, max_size=3) | values,
        "commands": st.dictionaries(st.text(max_size=5), values, max_size=3) | values,
        "processes": rows | values,
        "listeners": rows | values,
        "interfaces": rows | values,
        "disks": rows | values,
        "environ": values,
        "uname": values,
        "target": values,
        "now": values,
        "euid": values,
        "cwd": values,
        "schema": st.just("envtune.snapshot/1") | values,
    },
)


@search(300)
@given(mappings | values)
def test_any_mapping_is_refused_or_answers(data: Any) -> None:
    try:
        here = SnapshotHost(data)
    except SnapshotError:
        return
    asked: list[Callable[[], Any]] = [here.processes, here.listeners, here.interfaces, lambda: here.run(["a", "b"])]
    for path in ("/", "/a", "/a/b/c", "/a/../b", "/etc/os-release", "/x*"):
        for read in (here.read, here.stat, here.readlink, here.listdir, here.disk, here.head, here.record_digest):
            asked.append(lambda read=read, path=path: read(path))
        asked.append(lambda path=path: here.glob(f"{path}/*"))
    for ask in asked:
        try:
            ask()
        except HostError:
            continue


@search(40)
@given(st.data())
def test_a_damaged_recording_of_a_real_host_never_passes_on_what_it_lost(data: st.DataObject) -> None:
    recorded = host_data("910b-openeuler2203-cann82")
    path = data.draw(st.sampled_from(sorted(p for p, e in recorded["files"].items() if e is not None)))
    recorded["files"][path] = data.draw(entries)
    try:
        findings = judge(recorded)
    except SnapshotError:
        return
    lost = isinstance(recorded["files"][path], dict) and "error" in recorded["files"][path]
    for finding in findings:
        assert finding.outcome is not Outcome.ERROR, (finding.id, finding.reason)
        assert not (lost and finding.evidence.source == path and finding.outcome is Outcome.PASS), finding.id
