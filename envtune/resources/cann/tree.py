"""One CANN tree: the install a path belongs to, the version directory behind a name, the generation."""

from __future__ import annotations

import re
from posixpath import basename, dirname, join
from typing import TYPE_CHECKING, Optional, Union

from envtune.errors import Denied, HostError, Missing, NotRecorded, Unreadable
from envtune.host import Host, exists, is_dir, realpath
from envtune.messages import Message, Text
from envtune.records import NamedTuple, expression

if TYPE_CHECKING:
    from envtune.resources.cann.version import VersionEvidence

COMPONENTS = ("compiler", "opp", "runtime", "toolkit", "opp_kernel", "hccl")
_VERSIONED = expression(r"^(.*?/(?:(?:ascend-toolkit|nnae|nnrt)/[^/]+|cann-[^/]+|Ascend/(?:cann|latest)))(?:/|$)")


class Install(NamedTuple):
    """One CANN install: `path` as links and variables name it, `real` the version directory behind it."""

    path: str
    real: str
    generation: str  # fwkacllib | arch-linux | cann
    evidence: VersionEvidence
    strays: tuple[str, ...] = ()  # components of `latest/` that link to a different place than the others, or nowhere

    @property
    def version(self) -> Optional[str]:
        """Return 8.2.RC1, None if no file states it."""
        return self.evidence.version

    def places(self, *below: str) -> tuple[str, ...]:
        """Return each relative path below the version directory, and below the name if that is different."""
        roots = dict.fromkeys((self.real, self.path))
        return tuple(join(root, path) for root in roots for path in below)


class BrokenInstall(NamedTuple):
    """A name that should lead to an install but does not."""

    path: str
    reason: Text
    text: str = ""


def find_install(host: Host, path: str) -> Union[Install, BrokenInstall, None]:
    """Return what a name refers to: an install, a broken one, or nothing; raises every HostError except Missing."""
    try:
        link = host.stat(path, follow=False).kind == "link"
    except Missing:
        return _missing_link(host, path)
    try:
        real = realpath(host, path)
        kind = host.stat(real).kind
    except (Missing, Unreadable) as error:
        target = host.readlink(path) if link else path
        return BrokenInstall(path, Message("points to {target}, which does not resolve", target=target), str(error))
    if kind != "dir" or not has_components(host, real):
        return BrokenInstall(path, Message("holds no CANN component"), real)
    return read_install(host, path, real)


def _missing_link(host: Host, path: str) -> Optional[BrokenInstall]:
    """Return what is broken if versions are installed but no link leads to them."""
    parent = dirname(path)
    pattern = {"cann": r"cann-\d.*", "latest": r"\d[\w.]*"}[basename(path)]
    if basename(path) == "latest" and basename(parent) not in ("ascend-toolkit", "nnae"):
        return None
    try:
        names = [name for name in host.listdir(parent) if re.fullmatch(pattern, name)]
    except (Missing, Unreadable, NotRecorded):
        return None
    versions = [name for name in names if has_components(host, join(parent, name))]
    if not versions:
        return None
    listed = ", ".join(versions)
    reason = Message("is missing although {versions} is installed in the same directory", versions=listed)
    return BrokenInstall(path, reason, listed)


def has_components(host: Host, real: str) -> bool:
    """Return whether a directory contains the parts of an install."""
    if any(is_dir(host, join(real, name)) for name in (*COMPONENTS, "fwkacllib", "share/info")):
        return True
    return bool(_glob(host, join(real, "*-linux*")))


def read_install(host: Host, path: str, real: str) -> Install:
    """Return the install that `path` refers to; a `latest` directory means the version its links lead to."""
    from envtune.resources.cann.version import read_version

    if basename(real) != "latest":
        return Install(path, real, generation(host, path, real), read_version(host, path, real))
    target = linked_version(host, real)
    strays = [f"{name} -> {root or '?'}" for name, root in component_targets(host, real).items() if root != target]
    return Install(path, target, generation(host, path, target), read_version(host, path, target), tuple(strays))


def linked_version(host: Host, latest: str) -> str:
    """Return where most components of a real `latest/` directory link to; `latest` itself if it has no links."""
    counts: dict[str, int] = {}
    for root in component_targets(host, latest).values():
        if root:
            counts[root] = counts.get(root, 0) + 1
    return max(counts, key=lambda name: counts[name]) if counts else latest


def component_targets(host: Host, latest: str) -> dict[str, str]:
    """Return {component: version directory} of the links in `latest/`; empty for a link that leads nowhere."""
    targets: dict[str, str] = {}
    for name in COMPONENTS:
        try:
            if host.stat(join(latest, name), follow=False).kind != "link":
                continue
        except (Missing, NotRecorded):
            continue
        try:
            real = realpath(host, join(latest, name))
        except (Missing, Unreadable):
            targets[name] = ""
            continue
        version = _VERSIONED.match(real)
        targets[name] = version[1] if version else dirname(real)
    return targets


def generation(host: Host, path: str, real: str) -> str:
    """Return fwkacllib, arch-linux or cann, from the structure of the tree."""
    if is_dir(host, join(real, "share/info")) or basename(real).startswith("cann-") or basename(path) == "cann":
        return "cann"
    if _glob(host, join(real, "*-linux*/lib64")):
        return "arch-linux"
    if is_dir(host, join(real, "fwkacllib")) and not is_dir(host, join(real, "compiler")):
        return "fwkacllib"
    return "arch-linux"


def install_root(host: Host, path: str) -> Optional[str]:
    """Return the version directory that contains `path`, by real path; None if it is not in a CANN install."""
    real = resolve_existing(host, path)
    versioned = _VERSIONED.match(real + "/")
    if versioned:
        root = versioned[1]
        return linked_version(host, root) if basename(root) == "latest" else root
    for _ in range(6):
        if _is_visible(host, join(real, "fwkacllib/lib64")):
            return real
        if _is_visible(host, join(real, "share/info/runtime/version.info")):
            return real
        real = dirname(real)
    return None


def is_of_other_install(host: Host, install: Install, entry: str) -> bool:
    """Return whether an entry of a search path is in another install than this one; False where that is unknown."""
    try:
        return entry.startswith("/") and install_root(host, entry) not in (None, install.real)
    except HostError:
        return False


def _is_visible(host: Host, path: str) -> bool:
    """Return whether something exists that this user can see; False for a path that was not recorded."""
    try:
        return exists(host, path)
    except HostError:
        return False


def resolve_existing(host: Host, path: str) -> str:
    """Return `path` with links resolved as far as it exists and can be read."""
    steps = path.strip("/").split("/")
    resolved, least, most = "", 0, len(steps)  # bounds on how many steps can be resolved
    while least < most:
        middle = (least + most + 1) // 2
        try:
            resolved = realpath(host, "/" + "/".join(steps[:middle]))
            least = middle
        except (Missing, Denied, Unreadable, NotRecorded):
            most = middle - 1
    return join(resolved, *steps[least:]) if least else path


def _glob(host: Host, pattern: str) -> tuple[str, ...]:
    try:
        return host.glob(pattern)
    except (NotRecorded, Denied):
        return ()
