"""Run a measuring program in the job's Python, in a separate process for each measurement."""

from __future__ import annotations

import json
import os
import pkgutil
import signal
from typing import Iterable, Mapping, Optional, Sequence

from envtune.bench.compare import Measurement
from envtune.errors import UsageError
from envtune.messages import Literal, Message, Text
from envtune.model import Change
from envtune.records import NamedTuple
from envtune.trust.environment import VariableError
from envtune.trust.programs import UntrustedError
from envtune.trust.start import start_program

PATIENCE = 300.0  # seconds for one measurement
# The probe for a family of checks; changes to a job's variables need the job itself.
BY_FAMILY: Mapping[str, str] = {"CPU": "launch", "IMG": "images"}
NAMES = ("images", "opencv", "launch", "storage")
OF_THE_JOB = ("images", "opencv")  # run by the job's Python
_SHOWN = 200  # characters shown of a failed program's output


class Probe(NamedTuple):
    """A built-in measurement: its program and its arguments."""

    name: str
    python: str
    words: tuple[str, ...] = ()
    variables: Mapping[str, str] = {}


def probe_named(name: str, python: str, data: str, variables: Mapping[str, str]) -> Probe:
    """Return the probe; `data` is a directory of images or of a data set, `variables` set that Python's search path."""
    if name in ("images", "opencv"):
        return Probe("images", python, ("pillow" if name == "images" else "opencv", data), variables)
    return Probe(name, python, (data,) if name == "storage" else (), variables)


def python_variables(changes: Iterable[Change]) -> dict[str, str]:
    """Return the variables with which the changes start the job's Python: only those for per-user packages."""
    operations = [operation for change in changes for operation in change.operations]
    found = {name: value for operation in operations for name, value in operation.get("env", {}).items()}
    return {name: value for name, value in found.items() if name.startswith("PYTHON")}


def probe_for(checks: Sequence[str], names: Mapping[str, str] = BY_FAMILY) -> Optional[str]:
    """Return the name of the probe for the fixes of these checks; None if they need different ones, or none fits."""
    found = {names.get(check.rstrip("0123456789")) for check in checks}
    return found.pop() if len(found) == 1 else None


def measure(probe: Probe) -> Measurement:
    """Run the program once; raises UsageError if it fails."""
    source = pkgutil.get_data("envtune.bench.probes", f"{probe.name}.py")
    assert source is not None
    answer = _output(probe, [probe.python, "-c", source.decode("utf-8"), *probe.words])
    try:
        data = json.loads(answer)
        found = Measurement(float(data["seconds"]), dict(data.get("parts", {})), str(data.get("about", "")))
    except (ValueError, KeyError, TypeError):
        raise _failed(probe, Literal(answer[-_SHOWN:])) from None
    if found.seconds <= 0:
        raise _failed(probe, Message("it took no time"))
    return found


def _output(probe: Probe, argv: Sequence[str]) -> str:
    import subprocess

    try:
        process = start_program(argv, probe.variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except (UntrustedError, VariableError, OSError) as error:
        raise _failed(probe, Literal(str(error))) from None
    try:
        output, errors = process.communicate(timeout=PATIENCE)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)  # it has its own session
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise _failed(probe, Message("it took more than {seconds} s", seconds=f"{PATIENCE:.0f}")) from None
        raise
    if process.returncode:
        last = errors.decode("utf-8", "replace").strip().splitlines()[-1:] or [str(process.returncode)]
        raise _failed(probe, Literal(last[0][:_SHOWN]))
    return str(output.decode("utf-8", "replace"))


def _failed(probe: Probe, reason: Text) -> UsageError:
    return UsageError(Message("the measurement {name} failed: {reason}", name=probe.name, reason=reason))
