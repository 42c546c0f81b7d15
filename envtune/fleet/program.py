"""What is sent to a host: the collector as one Python program for standard input, and the command that runs it."""

from __future__ import annotations

import base64
import zlib
from typing import Optional

from envtune.assemble import PROLOGUE, shipped
from envtune.records import NamedTuple

KILL_AFTER = 5  # seconds after the timeout
# Any Python 3 can parse it; an old one says so instead of failing somewhere in the collector.
_PROGRAM = """\
{prologue}
if sys.version_info < (3, 6):
    sys.stdout.write("\\n@@ENVTUNE/1 too_old %d.%d\\n" % sys.version_info[:2])
    sys.exit(1)
import base64, zlib
sys.argv = {words}
exec(compile(zlib.decompress(base64.b64decode({packed!r})), "collector.py", "exec"))
"""


class Job(NamedTuple):
    """How the job on the hosts is named; without a name its Python and variables are unknown."""

    python: Optional[str] = None
    env_file: Optional[str] = None
    name: Optional[str] = None

    @property
    def words(self) -> list[str]:
        """The options of the collector."""
        options = (("--python", self.python), ("--env-file", self.env_file), ("--job", self.name))
        return [f"{option}={value}" for option, value in options if value is not None]


def collector_program(job: Job) -> bytes:
    """Return the collector as a program for standard input that prints a frame."""
    packed = base64.b64encode(zlib.compress(shipped("collector").encode("utf-8"), 9))
    words = ascii(["collector.py", "--frame", *job.words])
    return _PROGRAM.format(prologue=PROLOGUE.strip(), words=words, packed=packed).encode("ascii")


def remote_command(seconds: int, become: bool) -> str:
    """Return the command for the host's shell: nothing of it outlives `seconds`, even if the connection is lost."""
    command = f"timeout -k {KILL_AFTER} {seconds} python3 -I -"
    return f"sudo -n {command}" if become else command
