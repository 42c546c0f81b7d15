"""Start a program: the only place where envtune starts one, besides the command of `envtune run`."""

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
    """Start a command in a session of its own, in /, with nothing to read; return its Popen.

    `variables` are what an operation sets, `marks` what envtune itself does. `streams` are stdout and stderr for Popen.
    Raises OSError: FileNotFoundError, UntrustedError; VariableError.
    """
    import subprocess

    program = resolve_program(argv[0])
    environment: Dict[str, str] = command_environment(program, variables)
    environment.update(marks or {})
    words = list(argv[1:])
    if is_python(program) and environment.get("PYTHONNOUSERSITE") and words[:1] != ["-I"]:
        words.insert(0, "-I")  # journals of envtune 0.1 have it not
    return subprocess.Popen(
        [program] + words,
        stdin=subprocess.DEVNULL,
        env=environment,
        cwd="/",  # Python looks for modules in the current directory first
        start_new_session=True,
        **streams,
    )
