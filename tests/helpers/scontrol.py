"""A node of Slurm in a directory: a `scontrol` that shows and changes it as Slurm 22.05 does, and notes its calls."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Optional

from envtune.hook.records import Outcome

SCRIPT = """\
#!/bin/sh
cd {folder} || exit 1
echo "$*" >>calls
if [ "$1" = show ]; then
{show}
exit
fi
{update}
for word in "$@"; do case $word in
Reason=*) echo "${{word#Reason=}} [root@t$(wc -l <calls)]" >reason ;;
State=DRAIN) echo IDLE+DRAIN >state ;;
State=UNDRAIN) echo IDLE >state; rm -f reason ;;
esac; done
"""
SHOW = """\
echo "NodeName=$3 Arch=aarch64 CoresPerSocket=1"
echo "   State=$(cat state) ThreadsPerCore=1 TmpDisk=0 Weight=1"
[ -e reason ] && echo "   Reason=$(cat reason)"
echo
"""


class FakeNode:
    """The node, and what was asked of it."""

    def __init__(self, folder: Path, state: str = "IDLE", reason: str = "", show: str = "", update: str = "") -> None:
        folder.mkdir()
        self.folder = folder
        self.scontrol = folder / "scontrol"
        self.scontrol.write_text(SCRIPT.format(folder=folder, show=show or SHOW, update=update))
        self.scontrol.chmod(0o755)
        self.set(state, reason)

    def set(self, state: str, reason: str = "") -> None:
        (self.folder / "state").write_text(state + "\n")
        (self.folder / "reason").unlink(missing_ok=True)
        if reason:
            (self.folder / "reason").write_text(reason + "\n")

    @property
    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []

    @property
    def changes(self) -> list[str]:
        return [call for call in self.calls if call.startswith("update")]

    @property
    def state(self) -> str:
        return (self.folder / "state").read_text().strip()

    @property
    def reason(self) -> str:
        path = self.folder / "reason"
        return re.sub(r" \[.*\]\n?$", "", path.read_text()) if path.exists() else ""


def stamped(text: Optional[str]) -> tuple[str, str]:
    """Reason and stamp of `envtune: NET003 [root@t1]`."""
    found = re.fullmatch(r"(.*?)(?: \[(.*)\])?", text or "")
    assert found
    return found[1], found[2] or ""


def verdict_outcomes(row: dict[str, str]) -> dict[str, Outcome]:
    """The outcomes of `{NET003: fail/critical}`; high unless a severity is named."""
    parts = {name: word.partition("/") for name, word in row.items()}
    return {name: Outcome(word, severity or "high") for name, (word, _, severity) in parts.items()}
