"""Finds the interpreter of the job by reading, never by starting it."""

from __future__ import annotations

from typing import Mapping, Optional, Union

from envtune.host import Host
from envtune.model import Text
from envtune.target import PythonTarget, TargetOptions


def find_python(
    host: Host, options: TargetOptions, variables: Optional[Mapping[str, str]]
) -> Union[PythonTarget, Text]:
    """The interpreter of the job, or the reason why it cannot be told."""
    return Text("not read yet", "尚未读取")
