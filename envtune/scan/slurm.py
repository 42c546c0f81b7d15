"""The jobs of a script for sbatch: a shell script whose `#SBATCH` lines may set variables."""

from __future__ import annotations

from envtune.scan.model import Jobs
from envtune.scan.script import Start, script_jobs
from envtune.shell.machine import Machine
from envtune.shell.starting.slurm import directive_exports, parse_exports


def slurm_jobs(path: str, text: str, machine: Machine) -> Jobs:
    """Return the jobs of the script, started with what its last `--export` sets."""
    values: dict[str, str] = {}
    places: dict[str, str] = {}
    for number, exports in directive_exports(text):
        values = {name: value for name, value in parse_exports(exports).variables.items() if value is not None}
        places = dict.fromkeys(values, f"{path}:{number}")
    return script_jobs(path, text, machine, Start(values, places))
