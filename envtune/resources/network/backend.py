"""The backend of torch.distributed that the job's launch command or program names."""

from __future__ import annotations

import re
from typing import Iterable, Optional, Sequence

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import NotApplicable
from envtune.messages import Literal, Message
from envtune.model import Evidence, Reading
from envtune.resources.npu.command import job_command, job_program, option_value

# Libraries that replace nccl by hccl in the running program. Source: torch_npu/contrib/transfer_to_npu.py; MindSpeed.
REPLACES_NCCL = re.compile(r"transfer_to_npu|\bmindspeed")
# The expression that is passed as the backend: the argument of that name, else the first one.
_INIT = re.compile(r"init_process_group\((?:.*?\bbackend\s*=)?((?:\"[^\"]*\"|'[^']*'|[^\"',()#])*)")
_COMPARED = re.compile(r"(?:[=!]=|\bin\b)\s*(?:\"[^\"]*\"|'[^']*')")
_NAME = re.compile(r"[\"']([\w:,]+)[\"']")


@probe("network.backend")
def backend(context: Context) -> Iterable[Reading]:
    """Distributed backend of the job, such as `hccl`; not applicable if neither command nor program names one.

    Source: porting guide 003:601, 610, 860, 870.
    """
    if job_command(context) is None:
        raise NotApplicable(Message("no job given (--script or --pid)"), "--script, --pid")
    found = _named(context)
    if found is None:
        raise NotApplicable(Message("neither the command nor the program names a backend"), "--dist-backend")
    values, source = found
    value, evidence, expected = values[-1], Evidence(source, ", ".join(values)), Literal("hccl")
    name, names = _on_npu(value), {_on_npu(one) for one in values}
    if len(names) > 1 and names & {"hccl", "nccl"}:
        reason = Message("the program names several backends and chooses one: {names}", names=", ".join(values))
        return [Reading("backend", None, evidence, expected=expected, reason=reason)]
    if name == "nccl":
        program = job_program(context)
        if program is None:
            reason = Message("nccl is right only in a program that imports transfer_to_npu, and it was not read")
            return [Reading("backend", None, evidence, Literal("nccl"), expected, reason=reason)]
        if REPLACES_NCCL.search(program.text):
            shown = Message("nccl, which {path} replaces with hccl", path=program.path)
            return [Reading("backend", "hccl", evidence, shown, expected)]
    return [Reading("backend", name, evidence, Literal(value), expected)]


def _on_npu(value: str) -> str:
    """Return the backend for tensors on the NPU: of `cpu:gloo,npu:hccl` the second."""
    return value.lower().rpartition("npu:")[2].split(",")[0] if "npu:" in value.lower() else value.lower()


def _named(context: Context) -> Optional[tuple[Sequence[str], str]]:
    """Return the backends that the command or the program names, each once, and where."""
    option = option_value(context, "dist[-_]backend")
    if option is not None:
        return (option[0],), option[1]
    program = job_program(context)
    lines = [] if program is None else [line for line in program.text.splitlines() if not line.lstrip().startswith("#")]
    given = [text for line in lines for text in _INIT.findall(line)]
    found = tuple(dict.fromkeys(name for text in given for name in _NAME.findall(_COMPARED.sub("", text))))
    return (found, program.path) if found and program is not None else None
