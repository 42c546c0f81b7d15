"""Where the job's command saves checkpoints, and whether what is written there outlives the job.

Sources: options of Megatron-LM and MindSpeed (--save) and of transformers (--output_dir); tmpfs(5); Docker, "Storage"
(what a container writes to its own layer is deleted with it).
"""

from __future__ import annotations

import posixpath
from typing import Iterable

from envtune.collector.sources.config import SAVE_OPTIONS
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import NotApplicable, Undetermined
from envtune.messages import Message, Text
from envtune.model import Evidence, Reading
from envtune.resources.config.work_files import NETWORK, mount_of
from envtune.resources.npu.command import job_command, option_value
from envtune.resources.npu.devices import ELSEWHERE, runs_elsewhere
from envtune.resources.system.mounts import MOUNTINFO, Mount

MEMORY = ("tmpfs", "ramfs")
LAYERS = ("overlay", "aufs", "fuse-overlayfs", "fuse.fuse-overlayfs")


@probe("config.checkpoint_storage")
def checkpoint_storage(context: Context) -> Iterable[Reading]:
    """Storage of the job's checkpoints: `kept`, `network`, `memory`, `container` or `read-only`."""
    if job_command(context) is None:
        raise NotApplicable(Message("no job given (--script or --pid)"), "--script, --pid")
    found = option_value(context, SAVE_OPTIONS)
    if found is None or not found[0].startswith("/"):
        raise NotApplicable(Message("the command names no absolute path to save to"), "--save, --output_dir")
    path, source = posixpath.normpath(found[0]), found[1]
    if runs_elsewhere(context):
        raise Undetermined(ELSEWHERE, source)
    mount = mount_of(context.host, path)
    if mount is None:
        raise Undetermined(Message("{path} is on no mount of {source}", path=path, source=MOUNTINFO), MOUNTINFO)
    value = _storage(context, mount)
    shown: Text = Message("{kind}, mounted at {point}", kind=mount.kind, point=mount.point)
    if value == "read-only":
        shown = Message("{path}: {point} is mounted {value}", path=path, point=mount.point, value="ro")
    expected = Message("storage that outlives the container and a restart")
    return [Reading(path, value, Evidence(MOUNTINFO, mount.line), shown, expected)]


def _storage(context: Context, mount: Mount) -> str:
    if "ro" in mount.options:
        return "read-only"
    if mount.kind in MEMORY:
        return "memory"
    if mount.kind in LAYERS:
        if context.facts.value("container") != "true":
            reason = Message("{kind} outside a container: where it writes is unknown", kind=mount.kind)
            raise Undetermined(reason, MOUNTINFO, mount.line)
        return "container"
    return "network" if mount.kind in NETWORK else "kept"
