"""file.dropin: a file of our own beside those of others is written and taken back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.examples import ROOT

# In a mount namespace of its own, with an empty /etc.
REAL = """
import json, os, subprocess, sys
from helpers import fixing
from envtune.executor.run import apply_plan
from envtune.fix.plan import executable
from envtune.context.registry import find_action
from helpers.findings import findings

subprocess.run(["mount", "--make-rprivate", "/"], check=True)
subprocess.run(["mount", "-t", "tmpfs", "none", "/etc"], check=True)
os.makedirs("/etc/there.d")
with open("/etc/there.d/50-envtune.conf", "w") as file:
    file.write("old\\n")
os.chmod("/etc/there.d/50-envtune.conf", 0o640)
with open("/etc/there.d/60-theirs.conf", "w") as file:
    file.write("theirs\\n")

def tree():
    found = {}
    for folder, _, names in os.walk("/etc"):
        found[folder] = oct(os.stat(folder).st_mode)
        for name in names:
            path = os.path.join(folder, name)
            with open(path) as file:
                found[path] = [oct(os.stat(path).st_mode), file.read()]
    return found

def plan():
    context, made = fixing.local_context(), []
    for path in ("/etc/there.d/50-envtune.conf", "/etc/new/er.d/envtune.conf"):
        made += find_action("file.dropin")(context, findings(context), path=path, text="new")
    return executable(change._replace(id="C%02d" % number) for number, change in enumerate(made, 1))

os.umask(0o077)
before, made = tree(), plan()
run, results = apply_plan(made, sys.argv[1])
after = tree()
again = apply_plan(made, sys.argv[1])[1]
wrong = fixing.undo(run, sys.argv[1])
print(json.dumps({"results": results, "after": after, "again": [r["status"] for r in again], "same": tree() == before,
                  "wrong": wrong}))
"""


@pytest.mark.root
def test_written_and_taken_back(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    argv = ["unshare", "-m", sys.executable, "-c", REAL, str(tmp_path / "state")]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run(argv, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout)
    assert [row["status"] for row in said["results"]] == ["done", "done"], said["results"]
    assert said["after"]["/etc/there.d/50-envtune.conf"] == ["0o100640", "new\n"], "mode kept"
    assert said["after"]["/etc/there.d/60-theirs.conf"][1] == "theirs\n"
    assert said["after"]["/etc/new/er.d/envtune.conf"] == ["0o100644", "new\n"], "for everybody, whatever the umask"
    assert said["after"]["/etc/new/er.d"] == "0o40755"
    assert said["again"] == ["done", "done"], "twice is once"
    assert said["wrong"] == [] and said["same"], "undone exactly, with the directories that were made"
