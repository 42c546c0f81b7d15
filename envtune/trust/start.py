"""Start a program: the only place where envtune starts one, except for the command of `envtune run`."""

from typing import Any, Dict, Mapping, Optional, Sequence

from .environment import command_environment
from .interpreters import is_python
from .programs import resolve_program


def start_program(
    argv: Sequence[str],
    variables: Optional[Mapping[str, str]] = None,
    marks: Optional[Mapping[str, str]] = None,
    **streams: Any,
) -> Any:
    """Start a command in its own session, in /, with empty standard input; return its Popen.

    `variables` are set by an operation, `marks` by envtune itself. `streams` are stdout and stderr for Popen.
    Raises OSError: FileNotFoundError, UntrustedError; VariableError.
    """
    import subprocess

    program = resolve_program(argv[0])
    environment: Dict[str, str] = command_environment(program, variables)
    environment.update(marks or {})
    words = list(argv[1:])
    if is_python(program) and environment.get("PYTHONNOUSERSITE") and words[:1] != ["-I"]:
        words.insert(0, "-I")  # missing in journals of envtune 0.1
    return subprocess.Popen(
        [program] + words,
        stdin=subprocess.DEVNULL,
        env=environment,
        cwd="/",  # Python looks for modules in the current directory first
        start_new_session=True,
        **streams,
    )
