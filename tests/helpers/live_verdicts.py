"""Audits the machine live and from a snapshot taken at once; run by test_snapshot_live.py as a program of its own.

`live_verdicts.py UID TARGET` prints `{"live": [...], "recorded": [...]}`; with UID (or "") everything after the imports
is done as that user; TARGET is the job as in a manifest.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from envtune import catalog
from envtune.audit import audit
from envtune.context.open import open_context, recorded_options
from envtune.host import Host, LocalHost
from envtune.job.recording import record_host
from envtune.job.target import TargetOptions
from envtune.snapshot.open import open_snapshot


def verdicts(checks: Any, host: Host, options: TargetOptions) -> list[list[str]]:
    found = audit(checks, open_context(host, options))
    return sorted([f.id, f.subject, f.outcome.value, f.expected.en if f.expected else ""] for f in found)


def both(checks: Any, options: TargetOptions) -> dict[str, list[list[str]]]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # not TMPDIR: another user may not write there
        path = Path(folder, "host.tar.gz")
        path.write_bytes(record_host(options).data)
        host = open_snapshot(path)
        return {
            "live": verdicts(checks, LocalHost(), options),
            "recorded": verdicts(checks, host, recorded_options(host.data["target"])),
        }


def main(user: str, target: str) -> None:
    checks, options = catalog.load().checks, recorded_options(json.loads(target))
    if user:
        # What is imported lazily is imported now: the other user may not enter the home of this one's Python.
        both(checks, options)
        os.setgroups([])
        os.setgid(int(user))
        os.setuid(int(user))
    sys.stdout.write(json.dumps(both(checks, options)))


if __name__ == "__main__":
    main(*sys.argv[1:])
