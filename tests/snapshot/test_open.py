"""Opening snapshots: the forms a person may write, and everything a hostile one may try."""

from __future__ import annotations

import gzip
import io
import json
import os
import resource
import socket
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Union

import pytest
from helpers.rows import sampled
from helpers.search import examples as search
from hypothesis import given
from hypothesis import strategies as st

from envtune.errors import HostError, Missing, NotRecorded, SnapshotError
from envtune.snapshot import open as snapshot_file
from envtune.snapshot.open import open_snapshot

MANIFEST = {"schema": "envtune.snapshot/1", "host": "node1"}


def directory(root: Path, **members: Any) -> Path:
    """A snapshot directory with the manifest and JSON members."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "manifest.json").write_text(json.dumps({**MANIFEST, **members.pop("manifest", {})}))
    for name, value in members.items():
        (root / f"{name}.json").write_text(value if isinstance(value, str) else json.dumps(value))
    return root


Content = Union[bytes, str, None]


def archive(
    path: Path, members: Mapping[str, Content], change: Optional[Callable[[tarfile.TarInfo], None]] = None
) -> Path:
    """A tar.gz: bytes are files, text is a symbolic link, None a directory."""
    with tarfile.open(path, "w:gz") as tar:
        for name, content in {"manifest.json": json.dumps(MANIFEST).encode(), **members}.items():
            member = tarfile.TarInfo(name)
            if content is None:
                member.type = tarfile.DIRTYPE
            elif isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
            else:
                member.size = len(content)
            if change is not None and name != "manifest.json":
                change(member)
            tar.addfile(member, io.BytesIO(content) if isinstance(content, bytes) else None)
    return path


# ---------------------------------------------------------------------------------------------------- what is accepted


def test_a_directory_with_a_root_file_system(tmp_path: Path) -> None:
    root = directory(tmp_path / "host")
    (root / "files/etc").mkdir(parents=True)
    (root / "files/etc/hostname").write_text("node1\n")
    (root / "files/usr/local/Ascend/8.0").mkdir(parents=True)
    (root / "files/usr/local/Ascend/8.0/version.info").write_text("Version=8.0\n")
    (root / "files/usr/local/Ascend/latest").symlink_to("/usr/local/Ascend/8.0")
    (root / "files/usr/local/Ascend/now").symlink_to("8.0")
    host = open_snapshot(root)
    assert host.name == "node1"
    assert host.read("/etc/hostname") == "node1\n"
    assert host.read("/usr/local/Ascend/latest/version.info") == "Version=8.0\n"
    assert host.read("/usr/local/Ascend/now/version.info") == "Version=8.0\n"
    assert host.readlink("/usr/local/Ascend/latest") == "/usr/local/Ascend/8.0"
    assert host.listdir("/usr/local/Ascend") == ("8.0", "latest", "now")
    assert host.glob("/usr/local/Ascend/*/version.info") == (
        "/usr/local/Ascend/8.0/version.info",
        "/usr/local/Ascend/latest/version.info",
        "/usr/local/Ascend/now/version.info",
    )
    with pytest.raises(Missing):
        host.read("/etc/passwd")
    with pytest.raises(NotRecorded):
        host.processes()


def test_files_json_says_what_a_tree_cannot(tmp_path: Path) -> None:
    entries = {
        "/dev/davinci0": {"char": True, "mode": "0660", "gid": 1000},
        "/etc/shadow": {"error": "EACCES"},
        "/etc/hosts": None,
        "/opt/run.sh": {"mode": "0755"},
        "/opt/blob": {"size": 12345, "record_digest": "sha256:00"},
    }
    root = directory(tmp_path / "host", files=entries)
    (root / "files/etc").mkdir(parents=True)
    (root / "files/etc/hosts").write_text("127.0.0.1 localhost\n")
    (root / "files/opt").mkdir()
    (root / "files/opt/run.sh").write_text("#!/bin/sh\n")
    host = open_snapshot(root)
    assert host.stat("/dev/davinci0").kind == "char"
    assert (host.stat("/opt/run.sh").mode, host.read("/opt/run.sh")) == (0o755, "#!/bin/sh\n")
    assert host.stat("/opt/blob").size == 12345
    with pytest.raises(Missing):
        host.read("/etc/hosts")
    with pytest.raises(PermissionError):
        host.read("/etc/shadow")


def test_commands_as_files(tmp_path: Path) -> None:
    root = directory(tmp_path / "host", commands={"ufw status verbose": {"error": "missing"}})
    (root / "commands").mkdir()
    (root / "commands/npu-smi info").write_text("+---+\n")
    host = open_snapshot(root)
    assert host.run(["npu-smi", "info"]).stdout == "+---+\n"
    assert host.stat("/usr/bin/npu-smi").kind == "file"
    with pytest.raises(Missing):
        host.run(["ufw", "status", "verbose"])
    with pytest.raises(NotRecorded):
        host.run(["nft", "list", "ruleset"])


def test_one_json_file(tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    path.write_text(
        json.dumps({**MANIFEST, "files": {"/etc/hostname": "n\n"}, "processes": [], "environ": {"RANK": 0}})
    )
    host = open_snapshot(path)
    assert (host.read("/etc/hostname"), host.processes(), host.environ["RANK"]) == ("n\n", (), "0")


@pytest.mark.parametrize("prefix", ["", "./", "host1/"])
@pytest.mark.parametrize("mode", ["w:gz", "w"])
def test_an_archive_made_with_tar(tmp_path: Path, prefix: str, mode: Any) -> None:
    root = directory(tmp_path / "host1", processes=[{"pid": 1, "name": "init"}])
    (root / "files/etc").mkdir(parents=True)
    (root / "files/etc/hostname").write_text("n\n")
    os.link(root / "files/etc/hostname", root / "files/etc/other")
    path = tmp_path / "host.tar"
    with tarfile.open(path, mode) as tar:
        tar.add(root, arcname=prefix.rstrip("/") or ".")
    host = open_snapshot(path)
    assert (host.read("/etc/hostname"), host.read("/etc/other")) == ("n\n", "n\n")
    assert [p.name for p in host.processes()] == ["init"]


# ---------------------------------------------------------------------------------------------------- what is refused


def refused(path: Path) -> str:
    with pytest.raises(SnapshotError) as caught:
        open_snapshot(path)
    return str(caught.value)


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "files/../../outside", "files/etc/../../../x"])
def test_a_name_that_leads_out(tmp_path: Path, name: str) -> None:
    assert repr(name) in refused(archive(tmp_path / "a.tgz", {name: b"x"}))


@pytest.mark.parametrize("target", ["../../../../etc/passwd", "../../outside", "a/../../../.."])
def test_a_link_that_climbs_out(tmp_path: Path, target: str) -> None:
    assert "files/etc/hostname" in refused(archive(tmp_path / "a.tgz", {"files/etc/hostname": target}))
    root = directory(tmp_path / "host")
    (root / "files/etc").mkdir(parents=True)
    (root / "files/etc/hostname").symlink_to(target)
    assert "files/etc/hostname" in refused(root)


@pytest.mark.parametrize("member", ["files.json", "processes.json", "commands/npu-smi info", "files"])
def test_a_link_in_the_place_of_a_member(tmp_path: Path, member: str) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "inner").write_text("{}")
    root = directory(tmp_path / "host")
    (root / "commands").mkdir()
    (root / member).symlink_to(secret if member == "files" else secret / "inner")
    assert member in refused(root)
    if member != "files":
        assert member in refused(archive(tmp_path / "a.tgz", {member: str(secret / "inner")}))


def test_a_recorded_link_is_never_followed_on_this_machine(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    root = directory(tmp_path / "host")
    (root / "files/etc").mkdir(parents=True)
    (root / "files/etc/hostname").symlink_to(tmp_path / "secret")
    (root / "files/proc").symlink_to("/proc")
    for path in (root, archive(tmp_path / "a.tgz", {"files/etc/hostname": str(tmp_path / "secret")})):
        host = open_snapshot(path)
        with pytest.raises(Missing):
            host.read("/etc/hostname")
        with pytest.raises(HostError):
            host.read("/proc/self/status")


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.CONTTYPE, b"Z"])
def test_devices_and_other_kinds_in_an_archive(tmp_path: Path, kind: bytes) -> None:
    def change(member: tarfile.TarInfo) -> None:
        member.type = kind

    path = archive(tmp_path / "a.tgz", {"files/dev/zero": b""}, change)
    if kind == tarfile.CONTTYPE:
        open_snapshot(path)  # POSIX: to be read as a plain file
    else:
        assert "files/dev/zero" in refused(path)


def test_a_fifo_and_a_socket_in_a_directory(tmp_path: Path) -> None:
    root = directory(tmp_path / "host")
    (root / "files").mkdir()
    os.mkfifo(root / "files/pipe")
    assert "files/pipe" in refused(root)
    os.unlink(root / "files/pipe")
    os.mkfifo(root / "processes.json")
    assert "processes.json" in refused(root)
    os.unlink(root / "processes.json")
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.getcwd()
        os.chdir(root / "files")
        try:
            listener.bind("s")
        finally:
            os.chdir(here)
        assert "files/s" in refused(root)


@pytest.mark.parametrize("link", ["files/none", "/etc/passwd", "../../etc/passwd"])
def test_a_hard_link_to_no_member(tmp_path: Path, link: str) -> None:
    def change(member: tarfile.TarInfo) -> None:
        member.type, member.linkname, member.size = tarfile.LNKTYPE, link, 0

    assert "files/etc/x" in refused(archive(tmp_path / "a.tgz", {"files/etc/x": b""}, change))


def test_a_member_that_stands_twice(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tar:
        for content in (json.dumps(MANIFEST).encode(), b"{}"):
            member = tarfile.TarInfo("manifest.json")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    assert "manifest.json: duplicate member" in refused(path)


def bomb(path: Path, gigabytes: int) -> Path:
    """A tar.gz whose one member unpacks to that many GB; written compressed block by block."""
    size = gigabytes << 30
    head = tarfile.TarInfo("files/bomb")
    head.size = size
    manifest = tarfile.TarInfo("manifest.json")
    content = json.dumps(MANIFEST).encode()
    manifest.size = len(content)
    block = b"\0" * (1 << 24)
    with gzip.open(path, "wb", compresslevel=1) as stream:
        stream.write(manifest.tobuf() + content.ljust(512, b"\0") + head.tobuf())
        for _ in range(size // len(block)):
            stream.write(block)
    return path


@pytest.mark.slow
def test_a_bomb_is_refused_by_its_header(tmp_path: Path) -> None:
    path = bomb(tmp_path / "a.tgz", 1)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])  # it is refused before it is unpacked, so half of it does
    assert "files/bomb: larger than" in refused(path)


@pytest.mark.slow
def test_a_bomb_of_ten_gigabytes_costs_neither_memory_nor_time(tmp_path: Path) -> None:
    path = bomb(tmp_path / "a.tgz", 10)
    code = (
        "import resource, sys; from envtune.snapshot.open import open_snapshot; "
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29)); open_snapshot(sys.argv[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert "files/bomb: larger than" in done.stderr


def test_many_members_that_unpack_to_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        snapshot_file, "LIMITS", snapshot_file.Limits(total=1 << 20, member=1 << 19, members=50, depth=8)
    )
    big = {f"files/f{n}": b"\0" * (1 << 18) for n in range(10)}
    assert "files/f" in refused(archive(tmp_path / "a.tgz", big))
    assert "more than 50 members" in refused(archive(tmp_path / "b.tgz", {f"files/f{n}": b"" for n in range(60)}))
    assert "nested deeper" in refused(archive(tmp_path / "c.tgz", {"files/" + "d/" * 20 + "f": b""}))
    root = directory(tmp_path / "host")
    (root / "files" / Path(*["d"] * 20)).mkdir(parents=True)
    assert "nested deeper" in refused(root)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x1f\x8b",
        b"\x1f\x8b\x08\0garbage",
        b"garbage" * 500,
        b"\0" * 2000,
        b"BZh91AY",
        b"{",
        b"{}",
        b"[]",
        b"null",
    ],
)
def test_no_archive_at_all(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.tgz"
    path.write_bytes(content)
    assert str(path) in refused(path)


def test_a_damaged_archive(tmp_path: Path) -> None:
    data = archive(tmp_path / "a.tgz", {f"files/f{n}": os.urandom(300) for n in range(20)}).read_bytes()
    for size in range(0, len(data), 97):
        (tmp_path / "b.tgz").write_bytes(data[:size])
        assert str(tmp_path / "b.tgz") in refused(tmp_path / "b.tgz")
    for place in range(12, len(data), 61):
        (tmp_path / "b.tgz").write_bytes(data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :])
        try:
            open_snapshot(tmp_path / "b.tgz")
        except SnapshotError:
            continue


@search(200)
@given(st.binary(max_size=2048))
def test_bytes_from_anywhere(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.tar"
    path.write_bytes(content)
    with pytest.raises(SnapshotError):
        open_snapshot(path)


def test_what_is_not_there_or_not_readable(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path / "none.tgz")
    os.mkfifo(tmp_path / "pipe")
    assert "neither a directory nor a file" in refused(tmp_path / "pipe")
    (tmp_path / "empty").mkdir()
    assert "manifest.json is missing" in refused(tmp_path / "empty")
    assert "neither" in refused(Path("/dev/null"))


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ('{"schema": "envtune.snapshot/2"}', 'this envtune reads "envtune.snapshot/1"'),
        ('{"host": "x"}', '"schema" is missing'),
        ('{"schema": "envtune.snapshot/1", "now": NaN}', "NaN is not a number"),
        ('{"schema": "envtune.snapshot/1", "now": 1e999}', "too large"),
        (f'{{"schema": "envtune.snapshot/1", "now": {"9" * 100_000}}}', "more than 20 digits"),
        (f'{{"schema": "envtune.snapshot/1", "x": {"[" * 100_000}1{"]" * 100_000}}}', "nested"),
        ('{"schema": "envtune.snapshot/1", "host": "\\ud800"}', "half a surrogate pair"),
        ('{"schema": "envtune.snapshot/1", "host": "a", "host": "b"}', "duplicate"),
        ('{"schema": "envtune.snapshot/1", "euid": "0"}', "euid: expected a whole number"),
        ('{"schema": "envtune.snapshot/1", "euid": true}', "euid: expected a whole number"),
        ('{"schema": "envtune.snapshot/1", "environ": ["a"]}', "environ: expected a mapping"),
        ('{"schema": "envtune.snapshot/1", "environ": {"A": ["x"]}}', "environ.A: expected text, not a list"),
        ('{"schema": "envtune.snapshot/1", "cwd": "home"}', "cwd: expected an absolute path"),
        ('{"schema": "envtune.snapshot/1", "target": {"pid": "7"}}', "target.pid: expected a whole number"),
        ('{"schema": "envtune.snapshot/1", "covered": "/etc"}', "covered: expected a list"),
        ('{"schema": "envtune.snapshot/1", "covered": ["etc"]}', "covered[0]: expected an absolute path"),
    ],
)
def test_a_manifest_that_is_wrong(tmp_path: Path, manifest: str, words: str) -> None:
    (tmp_path / "manifest.json").write_text(manifest)
    assert words in refused(tmp_path)


@pytest.mark.parametrize(
    ("member", "content", "words"),
    [
        ("files", [], "files: expected a mapping"),
        ("files", {"etc/hosts": "x"}, "files: etc/hosts: expected an absolute path"),
        ("files", {"/etc/../x": "x"}, "no `..`"),
        ("files", {"/etc/": "x"}, "final `/`"),
        ("files", {"/x": 5}, "files: /x: expected text or a mapping"),
        ("files", {"/x": {"content": "x"}}, "files: /x: content: content is not a known key"),
        ("files", {"/x": {"mode": 644}}, "an octal mode in quotes"),
        ("files", {"/x": {"mode": "0999"}}, "an octal mode"),
        ("files", {"/x": {"dir": "a"}}, "a list"),
        ("files", {"/x": {"dir": ["a/b"]}}, "the name of a file"),
        ("files", {"/x": {"dir": [".."]}}, "the name of a file"),
        ("files", {"/x": {"char": "yes"}}, "true"),
        ("files", {"/x": {"size": "1"}}, "size: expected a whole number"),
        ("files", {"/x": {"base64": "%%%"}}, "base64"),
        ("files", {"/x": {"head": "zz"}}, "hexadecimal"),
        ("files", {"/x": {"link": 5}}, "files: /x: link: expected text"),
        ("commands", "npu-smi", "commands: expected a mapping or a list"),
        ("commands", [{"rc": 0}], "commands[0].argv: the key argv is missing"),
        ("commands", [{"argv": []}], "at least one word"),
        ("commands", [{"argv": ["x", 5]}], "commands[0].argv[1]: expected text"),
        (
            "commands",
            {"npu-smi info": {"out": "x"}},
            "commands: npu-smi info: out: out is not a known key",
        ),
        ("commands", {"npu-smi info": {"error": "gone"}}, "gone is not one of missing, denied, timeout"),
        ("commands", {"npu-smi info": {"rc": "0"}}, "rc: expected a whole number"),
        ("commands", {"": "x"}, "at least one word"),
        ("processes", {}, "processes.error: the key error is missing"),
        ("processes", 5, 'a list, or {"error": "EACCES"}'),
        ("processes", [5], "processes[0]: expected a mapping"),
        ("processes", [{"name": "x"}], "processes[0].pid: the key pid is missing"),
        ("processes", [{"pid": 1 << 63}], "processes[0].pid: expected a whole number"),
        ("processes", [{"pid": 1, "argv": [1]}], "processes[0].argv[0]: expected text"),
        ("processes", [{"pid": 1, "started": "yesterday"}], "started: expected a number"),
        ("listeners", [{"address": "0.0.0.0", "port": 70000}], "listeners[0].port: 70000: must be in 0 .. 65535"),
        ("listeners", [{"port": 7}], "address is missing"),
        ("interfaces", [{"addresses": ["192.0.2.1"]}], "name is missing"),
        ("interfaces", [{"name": "eth0", "addresses": "192.0.2.1"}], "addresses: expected a list"),
        ("interfaces", [{"name": "eth0", "addresses": ["192.0.2.300"]}], "addresses[0]: not an IP address"),
        ("disks", [{"path": "/", "total": 5}], "free is missing"),
    ],
)
def test_a_table_that_is_wrong(tmp_path: Path, member: str, content: Any, words: str) -> None:
    assert words in refused(directory(tmp_path / "host", **{member: json.dumps(content)}))


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_headers_of_any_size_are_not_read(tmp_path: Path, kind: bytes) -> None:
    """A few KB of gzip hold a name, or PAX headers, of a hundred MB."""
    header = tarfile.TarInfo("name")
    header.type, header.size = kind, 100 << 20
    (tmp_path / "a.tgz").write_bytes(gzip.compress(header.tobuf(tarfile.GNU_FORMAT) + b"a" * (4 << 20)))
    assert "a header of 104857600 bytes" in refused(tmp_path / "a.tgz")


def test_the_same_table_in_two_places(tmp_path: Path) -> None:
    root = directory(tmp_path / "host", manifest={"processes": []}, processes=[])
    assert "processes.json: the same table" in refused(root)


def test_names_that_are_not_text(tmp_path: Path) -> None:
    root = directory(tmp_path / "host")
    (root / "files").mkdir()
    with open(os.fsencode(root / "files") + b"/\xff", "w"):
        pass
    assert "not UTF-8" in refused(root)
    archived = archive(tmp_path / "a.tgz", {"files/\udcff": b""})
    assert "not UTF-8" in refused(archived)


@pytest.mark.slow
def test_memory_stays_bounded(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(bomb(tmp_path / "a.tgz", 1))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024


@pytest.mark.parametrize(("lang", "words"), sampled([("zh", "指向快照之外"), ("en", "points outside")], 2))
def test_the_reader_is_told_in_both_languages(tmp_path: Path, lang: str, words: str) -> None:
    path = archive(tmp_path / "a.tgz", {"files/x": "../../out"})
    with pytest.raises(SnapshotError) as caught:
        open_snapshot(path)
    assert caught.value.to("en") == f"{path}: files/x: the link points outside the snapshot (../../out)"
    assert caught.value.to("zh") == f"{path}: files/x：链接指向快照之外（../../out）"
    argv = [sys.executable, "-m", "envtune", "check", "--snapshot", str(path), "--lang", lang]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert words in done.stderr and "files/x" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("data", [{"now": 1e300}, {"now": -1e300}, {"files": {"/x": {"text": "", "mtime": 1e300}}}])
def test_a_time_that_no_calendar_has_is_refused(tmp_path: Path, data: dict[str, Any]) -> None:
    file = tmp_path / "host.json"
    file.write_text(json.dumps({**MANIFEST, **data}))
    with pytest.raises(SnapshotError, match="253402300799"):
        open_snapshot(file)


def test_a_snapshot_that_is_not_there_is_said_in_both_languages(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError) as caught:
        open_snapshot(tmp_path / "none.tar.gz")
    reason = caught.value.reason
    assert reason.en == "No such file or directory" and reason.zh != reason.en
