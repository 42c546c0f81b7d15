"""Real apt and dpkg on a copy of this host's packages: a mount namespace with overlays on /var, /etc and /opt."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import traceback
from pathlib import Path
from typing import Any, Callable, Mapping

import pytest

from helpers.killed_runs import forked

CLONE_NEWNS = 0x20000
OVERLAYS = ("/var", "/etc", "/opt")


def in_package_sandbox(folder: Path, work: Callable[[], Any]) -> None:
    """Run `work` where packages can be installed and nothing of it stays; what it raises is raised here as text."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    for program in ("apt-get", "dpkg-deb", "mount"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    failure = folder / "failure"

    def inside() -> None:
        try:
            enter(folder / "overlays")
            work()
        except BaseException:
            failure.write_text(traceback.format_exc())
            raise

    _, status = os.waitpid(forked(inside), 0)
    assert status == 0, failure.read_text() if failure.exists() else status


def enter(folder: Path) -> None:
    folder.mkdir()
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    call("mount", "--make-rprivate", "/")
    call("mount", "-t", "tmpfs", "none", str(folder))
    for number, path in enumerate(OVERLAYS):
        upper, scratch = folder / f"{number}u", folder / f"{number}w"
        upper.mkdir()
        scratch.mkdir()
        layers = f"lowerdir={path},upperdir={upper},workdir={scratch}"
        call("mount", "-t", "overlay", "overlay", "-o", layers, path)


def call(*argv: str) -> str:
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, (argv, done.stdout, done.stderr)
    return done.stdout


class Repository:
    """Packages of our own, offered to apt by a directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        sources = Path("/etc/apt")
        shutil.rmtree(sources / "sources.list.d", ignore_errors=True)
        (sources / "sources.list").write_text(f"deb [trusted=yes] file:{folder} ./\n")

    def add(self, name: str, version: str, scripts: Mapping[str, str], **fields: str) -> Path:
        """Build a package with these maintainer scripts; `fields` of its control file."""
        tree = self.folder / f"{name}_{version}"
        (tree / "DEBIAN").mkdir(parents=True)
        (tree / "opt" / name).mkdir(parents=True)
        (tree / "opt" / name / "file").write_text(version)
        control = {"Package": name, "Version": version, "Architecture": "all", "Maintainer": "x <x@example.org>"}
        rows = {**control, **fields, "Description": "test"}
        (tree / "DEBIAN/control").write_text("".join(f"{key}: {value}\n" for key, value in rows.items()))
        for script, text in scripts.items():
            path = tree / "DEBIAN" / script
            path.write_text(f"#!/bin/sh\nset -e\n{text}\n")
            path.chmod(0o755)
        deb = self.folder / f"{name}_{version}_all.deb"
        call("dpkg-deb", "--root-owner-group", "-b", str(tree), str(deb))
        shutil.rmtree(tree)
        return deb

    def publish(self) -> None:
        """Write the index of the packages, and have apt read it."""
        stanzas = []
        for deb in sorted(self.folder.glob("*.deb")):
            digest = call("sha256sum", str(deb)).split()[0]
            more = f"Filename: ./{deb.name}\nSize: {deb.stat().st_size}\nSHA256: {digest}\n"
            stanzas.append(call("dpkg-deb", "-f", str(deb)).rstrip() + "\n" + more)
        (self.folder / "Packages").write_text("\n".join(stanzas))
        call("apt-get", "update", "-qq", "-o", "APT::Sandbox::User=root")
