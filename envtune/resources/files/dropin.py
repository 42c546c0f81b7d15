"""envtune's own file in a configuration directory: other files are left alone."""

from __future__ import annotations

import posixpath
import re
from typing import Annotated, Iterable, Sequence

from envtune.context import Context
from envtune.context.registry import action
from envtune.errors import Skipped
from envtune.messages import N_, Message
from envtune.model import Change, Finding
from envtune.resources.files.change import content, file_operation, mounted_read_only, needs_root, shown

OWN_NAME = re.compile(r"([0-9]+-)?envtune[-_.a-z0-9]*")


@action("file.dropin")
def dropin(
    context: Context,
    findings: Sequence[Finding],
    *,
    path: Annotated[
        str,
        N_("Path of the file; its name is envtune*, 50-envtune.conf or 50-envtune-site.conf."),
    ],
    text: Annotated[str, N_("Content of the file.")],
) -> Iterable[Change]:
    """Put `text` into `path`, `/etc/<service>.d/NN-envtune.conf`: a drop-in directory and envtune's own file name."""
    _require_own_place(path)
    written = text if text.endswith("\n") else text + "\n"
    before = content(context.host, path)
    if before == written.encode("utf-8"):
        raise Skipped(Message("{path} already contains it", path=path))
    locked = mounted_read_only(context.host, path)
    ids = tuple(dict.fromkeys(finding.id for finding in findings))
    change = Change(
        finding=ids[0],
        subject=path,
        playbook="",
        action="file.dropin",
        target=path,
        before=shown(before),
        after=written,
        scope="boot",
        operations=(file_operation(context.host, path, written),),
        root=needs_root(context.host, path),
        other_owners=() if locked is None else (locked,),
        fixes=ids[1:],
    )
    return [change]


def _require_own_place(path: str) -> None:
    """Raise Skipped for anything but a drop-in directory below /etc and one of envtune's own names."""
    folder, name = posixpath.split(path)
    if posixpath.normpath(path) != path or not re.fullmatch(r"/etc/(.*/)?[^/]+[.]d(/[^/]+)*", folder):
        raise Skipped(Message("{path}: file.dropin writes into drop-in directories below /etc only", path=path))
    if not OWN_NAME.fullmatch(name):
        raise Skipped(
            Message(
                "{path}: the file name must be envtune*, 50-envtune.conf or 50-envtune-site.conf, not {name}",
                path=path,
                name=name,
            )
        )
