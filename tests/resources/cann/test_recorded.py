"""A CANN host on disk, recorded by the collector, gives the findings of the host itself."""

from __future__ import annotations

import base64
import hashlib
import os
import zipfile
from pathlib import Path
from typing import Any, Mapping

import pytest
from helpers.examples import shared_host
from helpers.rows import sampled

from envtune import catalog
from envtune.audit import audit
from envtune.catalog.examples import example_data
from envtune.collector.machine import Machine
from envtune.collector.snapshot import take
from envtune.collector.wheels import record_digest, wheel_record
from envtune.context.open import open_context
from envtune.model import Finding
from envtune.snapshot.host import SnapshotHost

HOSTS = ("cann-old", "cann-mid", "cann-new")


def host_data(name: str) -> dict[str, Any]:
    return example_data({"like": name}, shared_host)


def lay_out(data: Mapping[str, Any], root: Path) -> None:
    """The recorded files as real ones; a digest-only wheel becomes a wheel with its own RECORD."""
    for path, entry in data["files"].items():
        place = root / path.lstrip("/")
        if not path.startswith(("/usr", "/etc", "/home")) or entry is None:
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(entry, str):
            place.write_text(entry, "utf-8")
        elif "link" in entry:
            place.symlink_to(entry["link"])
        elif "dir" in entry:
            place.mkdir(exist_ok=True)
        elif path.endswith(".whl"):
            write_wheel(place)
        else:
            place.write_bytes(bytes.fromhex(entry.get("head", "")) + b"\0" * 5_000_000)


def write_wheel(place: Path) -> None:
    name = place.name.split("-")[0]
    body = f"# {name}\n".encode()
    digest = base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()
    record = f"{name}/__init__.py,sha256={digest},{len(body)}\n{name}-0.4.0.dist-info/RECORD,,\n"
    with zipfile.ZipFile(place, "w") as wheel:
        wheel.writestr(f"{name}/__init__.py", body)
        wheel.writestr(f"{name}-0.4.0.dist-info/RECORD", record)


def taken(data: Mapping[str, Any], root: Path) -> SnapshotHost:
    recorded = take({}, Machine(str(root)), data["environ"])
    return SnapshotHost({**recorded, "uname": data["uname"], "cwd": data["cwd"], "environ": data["environ"]})


def findings(host: SnapshotHost) -> set[tuple[str, str, str, str]]:
    by_smi = ("CANN007", "CANN015", "CANN103", "CANN105")
    checks = [check for check in catalog.load().checks if check.family == "CANN" and check.id not in by_smi]
    return {told(finding) for finding in audit(checks, open_context(host))}


def told(finding: Finding) -> tuple[str, str, str, str]:
    return finding.id, finding.subject, finding.outcome.value, finding.actual.en if finding.actual else ""


def same_wheels(data: dict[str, Any], root: Path) -> None:
    """Let the recorded host know the wheels as they were written."""
    for path, entry in data["files"].items():
        if path.endswith(".whl"):
            with (root / path.lstrip("/")).open("rb") as wheel:
                entry["record_digest"] = record_digest(wheel_record(wheel))


@pytest.mark.parametrize("name", sampled(HOSTS, 2))
def test_a_recording_loses_nothing(name: str, tmp_path: Path) -> None:
    data = host_data(name)
    lay_out(data, tmp_path)
    same_wheels(data, tmp_path)
    known = {key: value for key, value in data["files"].items() if key.startswith(("/usr", "/etc", "/home"))}
    assert findings(taken(data, tmp_path)) == findings(SnapshotHost({**data, "files": known}))


@pytest.mark.parametrize("name", sampled(HOSTS, 3))
def test_a_recording_tells_a_broken_host_too(name: str, tmp_path: Path) -> None:
    data = host_data(name)
    lay_out(data, tmp_path)
    ascend = tmp_path / "usr/local/Ascend"
    (ascend / "firmware/version.info").unlink()
    link = ascend / ("cann" if name == "cann-new" else "ascend-toolkit/latest")
    if link.is_symlink():
        link.unlink()
        os.symlink("gone", link)
    else:
        link.rename(link.with_name("set-aside"))
    outcomes = {(row[0], row[2]) for row in findings(taken(data, tmp_path))}
    assert ("CANN001", "fail") in outcomes
    assert ("CANN006", "unknown") in outcomes
    assert not any(outcome == "error" for _, outcome in outcomes)
