"""Wheels, and a CANN with wheels of its own."""

from __future__ import annotations

import base64
import hashlib
import platform
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, Mapping

from envtune.job.target import TargetOptions
from helpers import fixing

NO_INDEX = {
    "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
    "PIP_EXTRA_INDEX_URL": "",
    "PIP_FIND_LINKS": "",
    "PIP_RETRIES": "0",
}


def make_wheel(folder: Path, name: str, version: str, files: Mapping[str, str], requires: str = "") -> Path:
    """A small wheel as the wheel format says, with hashes; `requires` are lines of its metadata."""
    stem = f"{name.replace('-', '_')}-{version}"
    rows = dict(files)
    rows[f"{stem}.dist-info/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}"
    rows[f"{stem}.dist-info/WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        record = []
        for member, text in rows.items():
            archive.writestr(member, text)
            hashed = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            record.append(f"{member},sha256={hashed},{len(text.encode())}")
        archive.writestr(f"{stem}.dist-info/RECORD", "\n".join([*record, f"{stem}.dist-info/RECORD,,"]) + "\n")
    return path


def te(folder: Path, release: str) -> Path:
    files = {"te/__init__.py": f"release = {release!r}\n", "te/lang/cce.py": "x = 1\n", "cce/__init__.py": "y = 2\n"}
    if release == "new":
        files["te/platform.py"] = "only in the new one\n"
    return make_wheel(folder, "te", "0.4.0", files)


def topi(folder: Path, release: str) -> Path:
    return make_wheel(folder, "topi", "0.4.0", {"topi/__init__.py": f"release = {release!r}\n"})


class Cann:
    """A CANN 5.0.2 tree with wheels, and an environment whose te and topi are of the release before."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "Ascend/ascend-toolkit/5.0.2"
        arch = "x86_64-linux" if platform.machine() == "x86_64" else "arm64-linux"
        self.wheels = self.root / arch / "fwkacllib/lib64"
        self.wheels.mkdir(parents=True)
        (self.root / "fwkacllib").symlink_to(f"{arch}/fwkacllib")
        (self.root.parent / "latest").symlink_to("5.0.2")
        (self.root / arch / "ascend_toolkit_install.info").write_text(
            "package_name=Ascend-cann-toolkit\nversion=5.0.2\n"
        )
        (self.root / "opp").mkdir()
        (self.root / "opp/version.info").write_text("Version=1.78.22.4.220\n")
        latest = self.root.parent / "latest"
        self.env_file = folder / "job.env"
        self.env_file.write_text(
            f"ASCEND_OPP_PATH={latest}/opp\nASCEND_AICPU_PATH={latest}\n"
            f"LD_LIBRARY_PATH={latest}/fwkacllib/lib64\nPATH=/usr/bin:/bin\n"
        )
        te(self.wheels, "new")
        topi(self.wheels, "new")
        old = folder / "old"
        old.mkdir()
        subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True)
        self.env, self.python = folder / "env", folder / "env/bin/python"
        self.pip("install", "--no-index", "--no-deps", str(te(old, "old")), str(topi(old, "old")))
        self.state = folder / "state"

    def pip(self, *words: str) -> None:
        subprocess.run([str(self.python), "-m", "pip", "-q", *words], check=True)

    def context(self) -> Any:
        return fixing.local_context(target=TargetOptions(python=str(self.python), env_file=str(self.env_file)))

    def release(self, name: str) -> str:
        code = f"import {name}; print({name}.release)"
        done = subprocess.run([str(self.python), "-c", code], capture_output=True, text=True, check=True, cwd="/")
        return done.stdout.strip()

    def outcomes(self) -> dict[str, str]:
        return {f.subject: f.outcome.value for f in fixing.find(self.context(), "CANN003")}
