"""The chain: a log, its diagnosis, the check that proves it, the fix, the check again, undo; in one story."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.wheels import NO_INDEX, Cann

pytestmark = pytest.mark.slow

LOG = """\
2021-05-04 11:02:01 epoch 0 iter 10 loss 6.91
Traceback (most recent call last):
  File "train.py", line 210, in <module>
    loss.backward()
  File "{site}/torch/tensor.py", line 195, in backward
    torch.autograd.backward(self, gradient)
RuntimeError: TVM/te/cce error.
2021-05-04 11:02:09 train failed
"""


class Host:
    """This machine with a CANN tree whose te is newer than the one in the job's Python, and the log of a failed job."""

    def __init__(self, tmp_path: Path) -> None:
        self.cann = Cann(tmp_path)
        site = next(self.cann.env.glob("lib/python*/site-packages"))
        self.log = tmp_path / "train.log"
        self.log.write_text(LOG.format(site=site))
        self.job = ["--python", str(self.cann.python), "--env-file", str(self.cann.env_file)]
        self.environ = {**os.environ, **NO_INDEX, "ENVTUNE_STATE": str(self.cann.state), "LC_ALL": "C.UTF-8"}

    def envtune(self, *words: str) -> Any:
        command = [sys.executable, "-m", "envtune", *words]
        return subprocess.run(command, env=self.environ, capture_output=True, text=True, stdin=subprocess.DEVNULL)

    def diagnosis(self) -> dict[str, Any]:
        done = self.envtune("diagnose", str(self.log), *self.job, "-f", "json")
        assert done.returncode == 1, done.stderr
        first: dict[str, Any] = json.loads(done.stdout)["diagnoses"][0]
        return first

    def says(self, *words: str) -> str:
        """The answer in words, its line breaks undone."""
        done = self.envtune("diagnose", str(self.log), *self.job, *words)
        assert done.returncode == 1, done.stderr
        return " ".join(done.stdout.split())


def cann003(diagnosis: dict[str, Any]) -> set[str]:
    return {finding["outcome"] for finding in diagnosis["findings"] if finding["id"] == "CANN003"}


def test_from_the_error_to_its_cure_and_back(tmp_path: Path) -> None:
    host = Host(tmp_path)

    # It names the entry, and the check that looks at this very cause fails: proved.
    found = host.diagnosis()
    assert (found["id"], found["verdict"], cann003(found)) == ("F08", "proved", {"fail"})
    command = f"envtune fix --faq F08 --python {host.cann.python} --env-file {host.cann.env_file}"
    said = host.says()
    assert "confirmed on the checked host" in said
    assert re.search(r"CANN003 te: failed; 0\.4\.0 with other content than CANN 5\.0\.2 ships", said)
    assert f"$ {command}" in said

    # The command it printed, with consent: done in the real environment by its own pip, and checked again.
    done = host.envtune(*command.split()[1:], "--apply", "--yes", "--yes-confirm")
    assert host.cann.release("te") == "new", done.stdout + done.stderr
    assert host.cann.outcomes() == {"te": "pass", "topi": "pass"}
    (run,) = os.listdir(host.cann.state / "runs")

    # The log says what it said before; the journal says that this was so, and is cured.
    fixed = host.diagnosis()
    assert (fixed["id"], fixed["verdict"], cann003(fixed)) == ("F08", "ruled_out", {"fixed"})
    assert all(run in finding["reason"] for finding in fixed["findings"] if finding["id"] == "CANN003")
    said = host.says()
    assert f"was the case, fixed now: run {run}" in said and f"$ envtune undo {run}" in said
    assert "envtune fix --faq" not in said
    assert f"曾经如此，现已修复：envtune fix 的运行 {run}" in host.says("--lang", "zh")
    markdown = host.says("-f", "markdown")
    assert "was the case, fixed now" in markdown and f"`envtune undo {run}`" in markdown

    # Another job on the same host, whose Python nobody repaired, is not told so.
    other = host.envtune("diagnose", str(host.log), "--python", sys.executable, "--env-file", host.job[-1])
    assert "fixed now" not in " ".join(other.stdout.split())

    # Taken back, it is so again, and the answer says why.
    done = host.envtune("undo", run)
    assert done.returncode == 0 and host.cann.release("te") == "old", done.stdout + done.stderr
    again = host.diagnosis()
    assert (again["id"], again["verdict"], cann003(again)) == ("F08", "proved", {"fail"})
    said = host.says()
    assert "confirmed again" in said and re.search(rf"run {run} \(\S+\) of envtune fix fixed it, and was undone", said)
    assert f"$ {command}" in said
