"""The playbooks for memory and disks on real files: fail, fix, pass, undo, fail.

A mount namespace gives each kernel setting a file of its own, so that the machine's settings stay as they are.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.examples import ROOT

SETTINGS = {  # check -> file, before, after
    "SYS101": ("/proc/sys/kernel/numa_balancing", "1\n", "0\n"),
    "SYS102": ("/proc/sys/vm/swappiness", "60\n", "10\n"),
    "SYS103": ("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n", "madvise\n"),
    "SYS104": ("/proc/sys/vm/overcommit_memory", "2\n", "0\n"),
    "SYS105": ("/proc/sys/vm/zone_reclaim_mode", "1\n", "0\n"),
    "SYS106": ("/proc/sys/vm/dirty_background_ratio", "20\n", "10\n"),
    "SYS107": ("/sys/block/nvme0n1/queue/scheduler", "none mq-deadline kyber [bfq]\n", "none\n"),
}
OTHERS = {
    "/proc/sys/vm/dirty_ratio": "20\n",
    "/proc/sys/vm/dirty_background_bytes": "0\n",
    "/proc/sys/vm/dirty_bytes": "0\n",
    "/proc/meminfo": "MemTotal:       1055000000 kB\nSwapTotal:       4194300 kB\nSwapFree:        4194300 kB\n",
}
DIRECTORIES = ("/etc/sysctl.d", "/etc/tmpfiles.d")
RUN = """
import json, sys
from helpers.fixing import apply, find, local_context, plan, undo

ids, state = json.loads(sys.argv[1]), sys.argv[2]
paths = json.loads(sys.argv[3])
facts = {"ascend": "true", "ascend_job": "true", "container": "false", "vm": "false"}

def verdicts():
    return {finding.id: finding.outcome.value for finding in find(local_context(facts), *ids)}

def contents():
    return {path: open(path).read() for path in paths}

told = {"before": [verdicts(), contents()]}
run, results = apply(plan(local_context(facts), *ids), state)
told["results"] = sorted({result["status"] for result in results.values()})
told["after"] = [verdicts(), contents()]
told["problems"] = undo(run, state)
told["undone"] = [verdicts(), contents()]
print(json.dumps(told))
"""


@pytest.mark.root
def test_each_is_fixed_and_undone(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    files = {path: before for path, before, _ in SETTINGS.values()}
    disk = SETTINGS["SYS107"][0]  # the machine may have none: a tree of its own
    absent = [path for path in (*files, *OTHERS, *DIRECTORIES) if path != disk and not os.path.exists(path)]
    if absent:
        pytest.skip(f"this machine has no {absent[0]}")
    lines = ["mount --make-rprivate /", "mount -t tmpfs none /sys/block"]
    lines.append(f"mkdir -p {os.path.dirname(disk)} && touch {disk}")
    for number, (path, text) in enumerate({**files, **OTHERS}.items()):
        place = tmp_path / str(number)
        place.write_text(text)
        lines.append(f"mount --bind {place} {path}")
    for name in DIRECTORIES:
        place = tmp_path / name.replace("/", "_")
        place.mkdir()
        lines.append(f"mount --bind {place} {name}")
    words = [json.dumps(list(SETTINGS)), str(tmp_path / "state"), json.dumps(list(files))]
    script = " && ".join([*lines, 'exec "$@"'])
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    command = ["unshare", "-m", "sh", "-c", script, "sh", sys.executable, "-c", RUN, *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=300)
    if "mount" in done.stderr and done.returncode:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["results"] == ["done"] and told["problems"] == []
    assert told["before"] == [dict.fromkeys(SETTINGS, "fail"), files]
    assert told["after"][0] == dict.fromkeys(SETTINGS, "pass")
    assert {path: text.split() for path, text in told["after"][1].items()} == {
        path: after.split() for path, _, after in SETTINGS.values()
    }
    assert told["undone"][0] == dict.fromkeys(SETTINGS, "fail")
    assert [list((tmp_path / name.replace("/", "_")).iterdir()) for name in DIRECTORIES] == [[], []]
