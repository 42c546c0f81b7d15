"""Imported before anything else by the command line: the current directory is no place for modules.

`python -m envtune` has it in front of the library, and a `:` at an end of PYTHONPATH adds it. Only `-I` keeps Python's
own start from importing of it. Nothing is imported here but what is compiled into the interpreter.
"""

import sys
from posix import getcwd


def _leave_out_current_directory() -> None:
    try:
        current = getcwd()
    except OSError:
        current = ""
    sys.path[:] = [path for path in sys.path if path not in ("", ".", current)]


_leave_out_current_directory()
