"""The excerpts that are kept of long files."""

import os
import re

from .python.distributions import module_head
from .sources.images import DPKG_STATUS, PILLOW_BUILD_DEBIAN, RECORDED_PILLOW_FILES
from .sources.job import PROGRAM_LINES
from .sources.python import TRITON_LIBRARY

# Fields of /proc/cpuinfo that always differ between CPUs.
CPU_DIFFERENCES = rb"(cpu MHz|bogomips|BogoMIPS|apicid|initial apicid|core id|physical id|siblings|cpu cores)\s*:"


def excerpt(path: str, data: bytes) -> bytes:
    """Return what is kept of a file: all of it, or the part of a long one that checks read."""
    if path.endswith("/modules.builtin"):  # the packet filters among some hundred lines, and whether it has any lines
        lines = data.splitlines()
        return b"".join(line + b"\n" for line in lines[:1] + [line for line in lines[1:] if b"netfilter" in line])
    return cpuinfo_excerpt(data) if path == "/proc/cpuinfo" else python_excerpt(path, data)


def program_excerpt(data: bytes) -> bytes:
    """Return the lines of a training program that checks read."""
    kept = PROGRAM_LINES.encode("ascii")
    return b"".join(line + b"\n" for line in data.splitlines() if re.search(kept, line))


def cpuinfo_excerpt(data: bytes) -> bytes:
    """Return the first CPU in full; for the others only what differs from it, without fields that always differ."""
    stanzas = data.split(b"\n\n")
    first = set(stanzas[0].split(b"\n"))
    kept = [stanzas[0]]
    for stanza in stanzas[1:]:
        lines = [line for line in stanza.split(b"\n") if line not in first and not re.match(CPU_DIFFERENCES, line)]
        kept.append(b"\n".join(lines))
    return b"\n\n".join(kept)


def python_excerpt(path: str, data: bytes) -> bytes:
    """Return the excerpt of a file of Python, of a distribution or of dpkg."""
    name = os.path.basename(path)
    if data.startswith(b"\x7fELF"):
        return data[:4]
    if name in ("METADATA", "PKG-INFO"):
        head = data.replace(b"\r\n", b"\n").split(b"\n\n", 1)[0]
        kept = rb"(?i)(name|version)\s*:|requires-dist\s*:\s*(?:torch(?:[-_]npu)?|triton(?:[-_]ascend)?)(?![\w.-])"
        return b"".join(line + b"\n" for line in head.split(b"\n") if re.match(kept, line))
    if name == "RECORD" and re.search(r"/pillow[^/]*\.dist-info/RECORD$", path, re.I):
        wanted = RECORDED_PILLOW_FILES.encode("ascii")
        return b"".join(line + b"\n" for line in data.splitlines() if re.match(wanted, line.split(b",")[0]))
    if name == "RECORD" and re.search(r"/triton_ascend[^/]*\.dist-info/RECORD$", path, re.I):
        library = TRITON_LIBRARY.encode("ascii") + b","
        return b"".join(line + b"\n" for line in data.splitlines() if line.startswith(library))
    if path.endswith("torchvision/transforms/functional.py"):
        return module_head(data.decode("utf-8", "replace")).encode("utf-8")
    if path == DPKG_STATUS:
        return dpkg_excerpt(data.decode("utf-8", "replace")).encode("utf-8")
    return data


def dpkg_excerpt(text: str) -> str:
    """Return the package and status lines of dpkg's status file for the packages that checks ask about."""
    wanted = {name for any_of in PILLOW_BUILD_DEBIAN for name in any_of}
    kept = []
    for stanza in re.split(r"\n[ \t]*\n", text):
        lines = [line for line in stanza.split("\n") if line.startswith(("Package:", "Status:"))]
        if any(line.partition(":")[2].strip() in wanted for line in lines if line.startswith("Package:")):
            kept.append("\n".join(lines) + "\n")
    return "\n".join(kept)
