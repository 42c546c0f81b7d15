"""findings -> ordered changes. Pure: it reads a scene and says what would be written; the executor writes.

A failed finding is cured by the playbooks that name its check in `fixes`. Every typed step of such a playbook becomes
changes through the action of its kind (envtune/resources). What cannot become a change is listed as skipped, with the
reason or with the steps that a person does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping, Optional

from envtune.model import Change, Text


@dataclass(frozen=True)
class FixOptions:
    """What the user said about the repair. An action whose signature has the keyword `options` gets it.

    `peers` are the addresses and networks (`10.0.0.2`, `10.0.0.0/24`, `fd00::/8`) of the other hosts of the job, names
    already resolved. `wheels` is a directory of wheels for hosts without a network, `env_file` the file to write
    variables to, `pid` and `owner` name one process and the user who must own it.
    """

    peers: tuple[str, ...] = ()
    wheels: Optional[str] = None
    env_file: Optional[str] = None
    pid: Optional[int] = None
    owner: Optional[str] = None


@dataclass(frozen=True)
class SkippedFinding:
    """A finding that the plan does not cure; `steps` are what a person does about it."""

    finding: str
    subject: str
    reason: Text
    steps: tuple[Text, ...] = ()


@dataclass(frozen=True)
class Plan:
    """What a fix would do on one host; `target` holds the fields of TargetOptions it was made for."""

    host: str
    changes: tuple[Change, ...]
    skipped: tuple[SkippedFinding, ...]
    target: Mapping[str, object] = field(default_factory=dict)
