"""Which program a command names: from a fixed list of directories, and only what nobody else can change."""

import errno
import os
import re
import stat
from typing import List, Optional

from .interpreters import interpreter_exposure, is_python
from .ownership import Exposure, who_can_change

# Those of sudo's secure_path: the Ascend driver puts npu-smi into /usr/local/sbin or /usr/local/bin. One that others
# can write to (Debian before 10 gave /usr/local to the group staff) is left out.
SYSTEM_DIRECTORIES = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
SYSTEM_PATH = ":".join(SYSTEM_DIRECTORIES)
_SCRIPT_DEPTH = 3  # a script whose interpreter is a script; the kernel allows a few more


class UntrustedError(PermissionError):
    """A program that somebody else can change; `exposure` says where."""

    def __init__(self, program: str, exposure: Exposure) -> None:
        super().__init__(errno.EACCES, "can be changed by others at " + exposure.path, program)
        self.program = program
        self.exposure = exposure


def resolve_program(name: str) -> str:
    """Return the absolute path of a program: a bare name from SYSTEM_DIRECTORIES, an absolute path unchanged.

    The caller's PATH is not used. Raises FileNotFoundError, UntrustedError if somebody else can change it,
    PermissionError if it is not executable.
    """
    if "/" in name or not name:
        candidates = [name] if name.startswith("/") else []
    else:
        candidates = ["%s/%s" % (folder, name) for folder in SYSTEM_DIRECTORIES]
    refused: Optional[OSError] = None
    for path in candidates:
        try:
            _require_program(path)
            exposure = program_exposure(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            refused = refused or error
            continue
        if exposure is None:
            return path
        refused = refused or UntrustedError(path, exposure)
    raise refused or FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


def trusted_path() -> str:
    """Return a PATH of those system directories that only root (or the caller) can change."""
    return ":".join(folder for folder in SYSTEM_DIRECTORIES if _is_trusted(folder))


def _is_trusted(path: str) -> bool:
    try:
        return who_can_change(path) is None
    except OSError:
        return False


def program_exposure(path: str, depth: int = _SCRIPT_DEPTH) -> Optional[Exposure]:
    """Return what others can change of a program, its directory, a link's target, and a script's interpreter.

    Raises OSError.
    """
    real = os.path.realpath(path)
    for place in dict.fromkeys((os.path.dirname(path), path, os.path.dirname(real))):
        exposure = who_can_change(place)
        if exposure is not None:
            return exposure
    if is_python(path):
        return interpreter_exposure(path)
    interpreter = _script_interpreter(path)
    if interpreter is None or depth == 0:
        return None
    if is_python(interpreter):
        return who_can_change(interpreter) or interpreter_exposure(interpreter)
    return program_exposure(interpreter, depth - 1)


def _require_program(path: str) -> None:
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode) or not os.access(path, os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def _script_interpreter(path: str) -> Optional[str]:
    """Return what a script's first line starts, also through env; None if it is not a script. Raises OSError."""
    try:
        with open(path, "rb") as file:
            line = file.read(256).split(b"\n", 1)[0]
    except PermissionError:
        return None  # executable but not readable: then it is not a script
    words: List[str] = os.fsdecode(line[2:]).split() if line.startswith(b"#!") else []
    if words and os.path.basename(words[0]) == "env":
        named = [word for word in words[1:] if not re.match("-|[A-Za-z_][A-Za-z_0-9]*=", word)]
        return resolve_program(named[0]) if named else None
    return words[0] if words and words[0].startswith("/") else None
