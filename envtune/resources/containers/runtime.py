"""Which program started this container, from the traces it leaves in the container.

Sources: systemd's Container Interface (the variable `container`), the marker files of Docker and Podman, the cgroup
and mount paths of Docker, containerd, CRI-O, iSulad and LXC, the variables that a kubelet sets in every container.
"""

from __future__ import annotations

from typing import Iterator, Optional

from envtune.context import Context
from envtune.context.registry import fact
from envtune.errors import HostError, Missing
from envtune.host import Host, exists
from envtune.messages import Message
from envtune.model import Fact

KUBERNETES = "kubernetes"
PLACES = ("/proc/self/cgroup", "/proc/1/cgroup", "/proc/self/mountinfo")
# Text in a line of PLACES -> the runtime; pods first, because their containers run in containerd or CRI-O.
SIGNS = (
    ("kubepods", KUBERNETES),
    ("/kubelet/", KUBERNETES),
    ("libpod", "podman"),
    ("/containers/storage/", "podman"),
    ("crio-", "crio"),
    ("isulad", "isulad"),
    ("/lxc", "lxc"),
    ("/docker", "docker"),
    ("docker-", "docker"),
    ("containerd", "containerd"),
    ("nerdctl-", "containerd"),
)
MARKERS = (("/.dockerenv", "docker"), ("/run/.containerenv", "podman"))
SERVICE = "KUBERNETES_SERVICE_HOST"


@fact("container_runtime")
def fact_container_runtime(context: Context) -> Fact:
    """Container runtime, such as `docker`, `containerd` or `kubernetes`; `none` outside a container."""
    container = context.facts["container"]
    if container.value != "true":
        value = "none" if container.value == "false" else None
        return Fact("container_runtime", value, container.source, container.reason)
    for name, source in _signs(context.host):
        return Fact("container_runtime", name, source)
    reason = Message("a container of an unknown runtime")
    return Fact("container_runtime", None, container.source, reason)


def _signs(host: Host) -> Iterator[tuple[str, str]]:
    if host.environ.get(SERVICE):
        yield KUBERNETES, SERVICE
    texts = [(place, _text(host, place)) for place in PLACES]
    for sign, name in SIGNS:
        yield from ((name, place) for place, text in texts if text is not None and sign in text)
    yield from ((name, path) for path, name in MARKERS if _is_there(host, path))


def _text(host: Host, path: str) -> Optional[str]:
    try:
        return host.read(path)
    except HostError:
        return None


def _is_there(host: Host, path: str) -> bool:
    try:
        return exists(host, path)
    except (Missing, HostError):
        return False
