"""Whose Python and whose environment is judged: the training job's, never envtune's own.

The job is named by `--python`, `--pid`, `--script` or `--env-file`; without a name it is what a job started from this
shell would get. Nothing is started: interpreters are resolved by reading links, shims and wrapper scripts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Optional

from envtune.errors import Undetermined
from envtune.model import Text


@dataclass(frozen=True)
class TargetOptions:
    """How the user named the job; all empty means: what this shell would start."""

    python: Optional[str] = None
    pid: Optional[int] = None
    script: Optional[str] = None
    env_file: Optional[str] = None

    @property
    def named(self) -> bool:
        """Whether a job with an environment of its own was named."""
        return self.pid is not None or self.script is not None or self.env_file is not None


@dataclass(frozen=True)
class PythonTarget:
    """The interpreter of the job. `sites` are its site-packages directories in import order, PYTHONPATH excluded."""

    path: str  # as it was named or found on PATH
    real: str  # the interpreter behind links, shims and wrappers
    version: str  # "3.7"
    kind: str  # venv | conda | system
    prefix: str
    sites: tuple[str, ...]
    chosen: Text  # why this one


@dataclass(frozen=True)
class JobEnvironment:
    """The variables a job gets, or the reason why they cannot be told; `source` says where from."""

    variables: Optional[Mapping[str, str]]
    source: str
    reason: Optional[Text] = None


@dataclass(frozen=True)
class Target:
    """The job that is judged: its interpreter and its environment, or the reason why one of them cannot be told."""

    options: TargetOptions
    python: Optional[PythonTarget]
    python_reason: Optional[Text]
    environment: JobEnvironment

    def interpreter(self) -> PythonTarget:
        """The interpreter; `Undetermined` with the reason when it cannot be told."""
        if self.python is None:
            reason = self.python_reason or Text("no Python was found", "未找到 Python")
            raise Undetermined(reason)
        return self.python

    def variables(self) -> Mapping[str, str]:
        """The environment of the job; `Undetermined` with the reason when it cannot be told."""
        if self.environment.variables is None:
            reason = self.environment.reason or Text("the job's environment was not read", "未读取到任务的环境变量")
            raise Undetermined(reason, self.environment.source)
        return self.environment.variables
