"""Real Python 3.7 environments for the tests, and the one pillow-simd wheel of a session (building takes minutes)."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Optional

import pytest

from envtune.collector.python.distributions import system_includes
from envtune.executor.common import failpoint_hooks
from envtune.job.target import TargetOptions
from envtune.model import Change, FixOptions
from helpers import fixing

NATIVE = "pillow==9.5.0"  # the newest for Python 3.7


class Built(NamedTuple):
    """What became of `fix IMG001` from the package index, and the wheel it built on the way."""

    python: Path
    wheel: Path
    result: dict[str, Any]
    change: Change


def python37() -> str:
    """A Python 3.7; the test is skipped without one."""
    root = Path(os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv")))
    found = sorted(root.glob("versions/3.7.*/bin/python3.7"))
    path: Optional[str] = str(found[0]) if found else shutil.which("python3.7")
    if path is None:
        pytest.skip("no Python 3.7 here")
    return path


def run(*argv: object, **environ: str) -> str:
    """A command that must succeed for the test to make sense."""
    variables = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    words = [str(word) for word in argv]
    done = subprocess.run(words, capture_output=True, text=True, env={**variables, **environ}, timeout=900)
    if done.returncode:
        pytest.skip(f"{' '.join(words)}: {done.stderr[-500:]}")
    return done.stdout


def environment(folder: Path, *requirements: str) -> Path:
    """A new virtual environment with these packages; its interpreter."""
    run(python37(), "-m", "venv", folder)
    python = folder / "bin" / "python"
    if requirements:
        run(python, "-m", "pip", "-q", "install", "--no-deps", *requirements)
    return python


def imported(python: Path, what: str) -> str:
    """What the environment's own interpreter says."""
    code = f"import PIL.Image; print({what})"
    return subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def need_headers() -> None:
    """Skip where Pillow cannot be built."""
    for header in ("jpeglib.h", "zlib.h"):
        if not any(os.path.exists(f"{folder}/{header}") for folder in system_includes("/usr", "x86_64")):
            pytest.skip(f"no {header}: building pillow-simd needs the headers of libjpeg and zlib")


@cache
def simd_built(base: Path) -> Built:
    """Native pillow replaced by `fix` from the package index; the wheel is put aside when it was just built."""
    need_headers()
    folder = base / "simd-built"
    folder.mkdir()
    python = environment(folder / "env", NATIVE)
    state = folder / "state"

    def keep_wheel(name: str) -> None:
        if name == "tree-command-ended":
            for wheel in state.glob("runs/*/*/wheels/*.whl"):
                if not (folder / wheel.name).exists():
                    shutil.copy(wheel, folder)

    failpoint_hooks.append(keep_wheel)
    try:
        context = fixing.local_context(target=TargetOptions(python=str(python)))
        plan = fixing.plan(context, "IMG001", options=FixOptions())
        _, results = fixing.apply(plan, str(state))
    finally:
        failpoint_hooks.remove(keep_wheel)
    (change,) = plan.changes
    (result,) = results.values()
    wheels = list(folder.glob("*.whl"))
    if not wheels and "ended with" in str(result["error"]):
        pytest.skip(f"pillow-simd cannot be built here: {result['error']}")
    return Built(python, wheels[0], result, change)
