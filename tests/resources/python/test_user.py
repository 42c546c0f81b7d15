"""`--user` for real: an unprivileged user, a Python that belongs to root, pillow in its site-packages."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from helpers.examples import ROOT
from helpers.python37 import python37
from helpers.wheels import make_wheel

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="pillow-simd is for x86"),
]
USER = 65534
# Runs in a mount namespace of its own: two Pythons under paths the user may enter, the older one written to in memory.
INSIDE = """
set -e
mount --make-rprivate /
mount -t tmpfs none "$WORK"
mkdir "$WORK"/up "$WORK"/wd "$WORK"/py37 "$WORK"/own "$WORK"/home
mount -t overlay -o lowerdir="$PY37",upperdir="$WORK"/up,workdir="$WORK"/wd overlay "$WORK"/py37
mount --bind "$OWN" "$WORK"/own
"$WORK"/py37/bin/python3.7 -m pip -q install --no-deps pillow==9.5.0
chmod 755 "$WORK" && chown "$USER_ID" "$WORK"/home
set -- "$WORK"/own/bin/python3 -c "$CODE" "$WORK"/py37/bin/python3.7 "$WHEELS" "$WORK"/home/state
set -- LD_LIBRARY_PATH="$WORK"/py37/lib:"$WORK"/own/lib PYTHONPATH="$LIBRARIES" "$@"
set -- HOME="$WORK"/home PATH=/usr/bin:/bin "$@"
cd / && exec setpriv --reuid "$USER_ID" --regid "$USER_ID" --clear-groups env -i "$@"
"""
CODE = """
import os, subprocess, sys
from helpers import fixing
from envtune.model import FixOptions
from envtune.job.target import TargetOptions
python, wheels, state = sys.argv[1:]
def context():
    return fixing.local_context(target=TargetOptions(python=python))
def version():
    clean = {name: os.environ[name] for name in ('HOME', 'LD_LIBRARY_PATH')}
    code = 'import PIL; print(PIL.__version__, PIL.__file__)'
    done = subprocess.run([python, '-c', code], capture_output=True, text=True, env=clean)
    return done.stdout.strip() or done.stderr.replace(chr(10), ' ')
print('before', version())
plan = fixing.plan(context(), 'IMG001', options=FixOptions(wheels=wheels))
assert plan.changes, plan.skipped
print('root', plan.changes[0].root)
run, results = fixing.apply(plan, state)
print('result', [(r['status'], r['error']) for r in results.values()])
print('after', version())
print('check', [f.outcome.value for f in fixing.find(context(), 'IMG001', 'IMG007')])
print('undo', fixing.undo(run, state))
print('back', version())
"""


def test_a_plain_user_gets_pillow_simd_and_the_installation_stays_as_it_is(tmp_path: Path) -> None:
    if os.geteuid() != 0 or any(shutil.which(name) is None for name in ("unshare", "setpriv", "mount")):
        pytest.skip("needs root, unshare and setpriv")
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    image = (
        "BICUBIC = 3\nclass Image:\n    def __init__(self, size, colour): self.size, self.colour = size, colour\n"
        "    def resize(self, size, method): return Image(size, self.colour)\n"
        "    def getpixel(self, place): return self.colour\ndef new(mode, size, colour): return Image(size, colour)\n"
    )
    version = "__version__ = '9.5.0.post9'\n"
    files = {"PIL/__init__.py": version, "PIL/_version.py": version, "PIL/Image.py": image}
    make_wheel(wheels, "Pillow-SIMD", "9.5.0.post9", files)
    for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    own = Path(sys.base_prefix)
    libraries = os.pathsep.join([str(ROOT), str(ROOT / "tests"), sysconfig.get_paths()["purelib"]])
    variables = {
        "WORK": str(work),
        "PY37": str(Path(python37()).resolve().parents[1]),
        "OWN": str(own),
        "USER_ID": str(USER),
        "LIBRARIES": libraries,
        "CODE": CODE,
        "WHEELS": str(wheels),
    }
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", INSIDE], env={**os.environ, **variables}, capture_output=True, text=True
    )
    if "overlay" in done.stderr and "mount" in done.stderr:
        pytest.skip(f"no overlay file system: {done.stderr[-200:]}")
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    assert done.returncode == 0, done.stdout + done.stderr
    assert said["before"].startswith("9.5.0 ") and said["root"] == "False"
    assert said["result"] == "[('done', None)]"
    assert said["after"] == f"9.5.0.post9 {work}/home/.local/lib/python3.7/site-packages/PIL/__init__.py"
    assert "fail" not in said["check"] and "pass" in said["check"] and said["undo"] == "[]"
    assert said["back"] == said["before"], "the user's own is gone, the installation's own was never touched"
