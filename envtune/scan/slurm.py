"""The jobs of a script for sbatch: a shell script whose `#SBATCH` lines may set variables."""

from __future__ import annotations

import re
from typing import Iterator

from envtune.scan.model import Jobs
from envtune.scan.script import Start, script_jobs
from envtune.shell.machine import Machine
from envtune.shell.starting.slurm import Exports, parse_exports

_DIRECTIVE = re.compile(r"#SBATCH[ \t]+(.*)")
_WORD = re.compile(r"(?:[^\s'\"]|'[^']*'|\"[^\"]*\"|['\"])+")
_COMMENT = re.compile(r"\s#.*")


def slurm_jobs(path: str, text: str, machine: Machine) -> Jobs:
    """Return the jobs of the script, started with what its last `--export` sets."""
    values: dict[str, str] = {}
    places: dict[str, str] = {}
    for number, exports in _exports(text):
        values = {name: value for name, value in exports.variables.items() if value is not None}
        places = dict.fromkeys(values, f"{path}:{number}")
    return script_jobs(path, text, machine, Start(values, places))


def _exports(text: str) -> Iterator[tuple[int, Exports]]:
    """Yield line and value of every `--export`; sbatch reads up to the first line that is a command."""
    for number, row in enumerate(text.split("\n"), 1):
        row = row.rstrip("\r")
        if row.strip() and not row.lstrip().startswith("#"):
            return
        directive = _DIRECTIVE.match(row)
        if directive is None:
            continue
        words = _WORD.findall(_COMMENT.sub("", directive[1]))
        for at, word in enumerate(words):
            if word.startswith("--export="):
                yield number, parse_exports(word[len("--export=") :])
            elif word == "--export" and at + 1 < len(words):
                yield number, parse_exports(words[at + 1])
