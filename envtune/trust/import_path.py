"""Imported first by the command line: modules must not be imported from the current directory.

`python -m envtune` puts it before the standard library, and a `:` at either end of PYTHONPATH adds it. Only `-I` keeps
Python's own start-up from importing from it. Only modules compiled into the interpreter are imported here.
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
