"""Where pip of the job's Python writes, and whether it may.

Rules: an environment that is marked as externally managed is left alone, even with `--user` (PEP 668); what the
distribution's package manager installed below /usr belongs to it; as root no interpreter is started that another user
could have changed.
"""

from __future__ import annotations

import posixpath
import re
import stat
from typing import Iterable, Iterator, Mapping, NamedTuple, Optional

from envtune.context import Context
from envtune.errors import HostError, Missing, Skipped
from envtune.host import Host, exists
from envtune.job.target import PythonTarget
from envtune.messages import Message
from envtune.ranges import checked_int
from envtune.resources.python.distributions import every, interpreter, locate
from envtune.trust.ownership import Exposure, who_can_change

OLDEST_PIP = (19, 0)  # --use-pep517 (pip's changelog, 19.0)


class WithoutPip(Skipped):
    """The job's Python has no pip; `is_systems` if only the system's package manager can provide one."""

    def __init__(self, path: str, is_systems: bool) -> None:
        if is_systems:
            super().__init__(Message("{path} has no pip: install it with the system's package manager", path=path))
        else:
            super().__init__(Message("{path} has no pip; first: {path} -m ensurepip", path=path))
        self.is_systems = is_systems


class SitePackages(NamedTuple):
    """A directory of the import path as pip reaches it; `site` is `entry` below `root`."""

    python: str  # what starts the interpreter
    entry: str
    root: str
    site: str
    user: bool  # the user's own site directory
    needs_root: bool
    variables: Mapping[str, str]  # the environment of every command

    def pip(self, *words: str) -> list[str]:
        """Return `<the job's Python> -m pip ...`, never a pip from PATH."""
        return self.start("-m", "pip", *words)

    def start(self, *words: str) -> list[str]:
        """Return the job's Python with these arguments, isolated; not for the user's directory, which -I excludes."""
        return [self.python, *(() if self.user else ("-I",)), *words]


def find_site_packages(context: Context, entry: str) -> SitePackages:
    """Return the place of one directory of the import path; raises Skipped, with a remedy, if pip must not write."""
    python, host = interpreter(context), context.host
    _refuse_foreign(host, python, entry)
    user = entry == user_site(context)
    root, site = _split(entry)
    if not user and not is_own(python, entry):
        raise Skipped(
            Message(
                "{entry} is no site directory of {path} itself (but comes from PYTHONPATH, a .pth file or the "
                "base of the virtual environment): its pip does not write there",
                entry=entry,
                path=python.path,
            )
        )
    _refuse_old_pip(context, python)
    program = start_path(host, python)
    owner = _owner(host, entry)
    _refuse_other_owner(host, program, entry, owner)
    refuse_exposed(host, program, _start_paths(context, python, program, entry))
    return SitePackages(program, entry, root, site, user, owner == 0, _variables(context, user))


def refuse_without_pip(context: Context) -> None:
    """Raise Skipped, with a remedy, if pip of the job's Python cannot or must not write."""
    python = interpreter(context)
    _refuse_foreign(context.host, python, main_entry(context))
    _refuse_old_pip(context, python)


def is_own(python: PythonTarget, entry: str) -> bool:
    """Return whether a directory is a site directory of exactly that installation or virtual environment."""
    return entry in python.sites and (python.kind != "venv" or entry.startswith(python.prefix.rstrip("/") + "/"))


def main_entry(context: Context) -> str:
    """Return the site directory that pip installs into by default."""
    python, own = interpreter(context), user_site(context)
    sites = [site for site in python.sites if site != own]
    if not sites:
        raise Skipped(Message("{path} has no site-packages", path=python.path))
    return sites[0]


def user_site(context: Context) -> Optional[str]:
    """Return the user's site directory for a Python that is not a virtual environment; None if there is none."""
    python = interpreter(context)
    known = context.target.environment.variables
    variables = context.host.environ if known is None else known
    base = variables.get("PYTHONUSERBASE") or (variables["HOME"] + "/.local" if variables.get("HOME") else "")
    if python.kind == "venv" or not base or variables.get("PYTHONNOUSERSITE"):
        return None
    return f"{base}/lib/python{python.version}/site-packages"


def start_path(host: Host, python: PythonTarget) -> str:
    """Return what starts the interpreter: a virtual environment's name for it, else the program behind all links."""
    if python.kind == "venv":
        for name in ("python", "python3", f"python{python.version}"):
            if exists(host, f"{python.prefix}/bin/{name}"):
                return f"{python.prefix}/bin/{name}"
    return python.real


def needs_root(host: Host, folder: str) -> bool:
    """Return whether only root can replace a file in that directory (by its owner)."""
    return _owner(host, folder) != host.euid or host.euid == 0


def _split(entry: str) -> tuple[str, str]:
    """Return (prefix, rest) of `PREFIX/lib/pythonX.Y/site-packages`; another directory is its own root's only child."""
    parts = entry.split("/")
    depth = 3 if len(parts) > 4 and parts[-3] in ("lib", "lib64") and parts[-2].startswith("python") else 1
    return "/".join(parts[:-depth]), "/".join(parts[-depth:])


def _owner(host: Host, path: str) -> int:
    while True:
        try:
            return host.stat(path).uid
        except Missing:
            path = path.rpartition("/")[0] or "/"


def _refuse_foreign(host: Host, python: PythonTarget, entry: str) -> None:
    way_out = Message("; use a virtual environment: {path} -m venv --system-site-packages DIR", path=python.path)
    if python.kind != "venv":
        for lib in ("lib", "lib64"):
            marker = f"{python.prefix.rstrip('/')}/{lib}/python{python.version}/EXTERNALLY-MANAGED"
            if _is_there(host, marker):
                reason = Message(
                    "{path} is managed by the distribution (PEP 668: {marker}), and pip does not change "
                    "it, even with --user",
                    path=python.path,
                    marker=marker,
                )
                raise Skipped(Message("{reason}{way_out}", reason=reason, way_out=way_out))
    if entry.startswith(("/usr/lib/python", "/usr/lib64/python")):
        reason = Message("{entry} belongs to the distribution's package manager", entry=entry)
        raise Skipped(Message("{reason}{way_out}", reason=reason, way_out=way_out))


def _is_there(host: Host, path: str) -> bool:
    """Return whether a marker exists; one missing from a recording counts as absent: pip itself checks again."""
    try:
        return exists(host, path)
    except HostError:
        return False


def _refuse_old_pip(context: Context, python: PythonTarget) -> None:
    rows = [row for row in every(context, "pip") if row.version]
    if not rows or locate(context, "pip") is None:
        raise WithoutPip(python.path, python.kind != "venv" and python.prefix.rstrip("/") == "/usr")
    numbers = tuple(checked_int(part) for part in rows[0].version.split(".")[:2] if part.isdecimal())
    if numbers < OLDEST_PIP:
        raise Skipped(Message("pip {version} of {path} is older than 19.0", version=rows[0].version, path=python.path))


def _refuse_other_owner(host: Host, program: str, entry: str, owner: int) -> None:
    starter = _owner(host, program)
    if host.euid == 0 and (owner != 0 or starter != 0):
        uid = owner or starter
        raise Skipped(
            Message(
                "{entry} or {program} belongs to user {uid}: as root envtune does not start programs that "
                "another user can change; run it as that user (sudo -u '#{uid}' envtune fix)",
                entry=entry,
                program=program,
                uid=uid,
            )
        )
    if host.euid != 0 and owner not in (0, host.euid):
        raise Skipped(Message("{entry} belongs to user {owner}: run envtune as that user", entry=entry, owner=owner))


def _start_paths(context: Context, python: PythonTarget, program: str, entry: str) -> Iterator[str]:
    """Yield what determines which code that interpreter's pip runs: programs, settings, base and site directories."""
    for path in (program, python.real):
        yield from (path, posixpath.dirname(path))
    configuration = f"{python.prefix}/pyvenv.cfg"
    yield from (configuration, f"{python.prefix}/pip.conf", *_home(context.host, configuration))
    yield from (*python.sites, entry, *filter(None, (locate(context, "pip"),)))


def refuse_exposed(host: Host, program: str, paths: Iterable[str]) -> None:
    """Raise Skipped, as root, if others could change what a program runs through one of these paths.

    A recording contains only some of the owners; the rest is judged when the plan is carried out: then the executor
    checks every file.
    """
    for path in paths if host.euid == 0 else ():
        try:
            exposure = who_can_change(path, 0, lambda step: _status(host, step), host.readlink, host.live)
        except HostError:
            continue
        if exposure is not None:
            raise Skipped(_refusal(program, exposure))


def _refusal(program: str, exposure: Exposure) -> Message:
    if exposure.foreign:
        return Message(
            "{path} belongs to user {uid}, who could change what {program} runs: as root envtune does not start it; "
            "run envtune fix as that user, or give the path to root (chown)",
            path=exposure.path,
            uid=exposure.uid,
            program=program,
        )
    return Message(
        "others can write {path} (mode {mode}) and so change what {program} runs: as root envtune does not"
        " start it; remove the permission (chmod go-w), or install as the owner",
        path=exposure.path,
        mode=f"{exposure.mode:04o}",
        program=program,
    )


def _home(host: Host, configuration: str) -> tuple[str, ...]:
    """Return the base that a virtual environment names."""
    try:
        found = re.search(r"(?m)^\s*home\s*=\s*(/.*?)\s*$", host.read(configuration))
    except HostError:
        return ()
    return () if found is None else (found[1],)


class _Status(NamedTuple):
    """A recorded or live status with the names of os.lstat."""

    st_mode: int
    st_uid: int
    st_gid: int


def _status(host: Host, path: str) -> _Status:
    found = host.stat(path, follow=False)
    kind = {"dir": stat.S_IFDIR, "link": stat.S_IFLNK}.get(found.kind, stat.S_IFREG)
    return _Status(found.mode | kind, found.uid, found.gid)


def _variables(context: Context, user: bool) -> dict[str, str]:
    """Return what confines pip to the place: settings of the caller's shell or pip.conf must not redirect it."""
    found = {
        "PYTHONPATH": "",
        "PYTHONHOME": "",
        "PYTHONNOUSERSITE": "" if user else "1",
        "PIP_USER": "1" if user else "0",
        "PIP_TARGET": "",
        "PIP_PREFIX": "",
        "PIP_ROOT": "",
        "PIP_NO_INPUT": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "TMPDIR": "{work}/tmp",
    }
    known = context.target.environment.variables or {}
    if user and known.get("PYTHONUSERBASE"):
        found["PYTHONUSERBASE"] = known["PYTHONUSERBASE"]
    return found
