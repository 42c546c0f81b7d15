"""Where pip of the job's Python writes, and whether it may.

Rules: an environment that is marked as managed by somebody else is left alone, also with `--user` (PEP 668); what the
distribution's package manager installed below /usr is its own; as root no interpreter is started that another user
could have changed.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple, Optional

from envtune.context import Context
from envtune.errors import HostError, Missing, Skipped
from envtune.host import Host, exists
from envtune.job.target import PythonTarget
from envtune.model import Text
from envtune.resources.python.distributions import every, interpreter, locate

OLDEST_PIP = (19, 0)  # --use-pep517 (pip's changelog, 19.0)


class Place(NamedTuple):
    """A directory of the import path as pip reaches it; `site` is `entry` below `root`."""

    python: str  # what starts the interpreter
    entry: str
    root: str
    site: str
    user: bool  # the user's own site directory
    needs_root: bool
    variables: Mapping[str, str]  # the environment of every command

    def pip(self, *words: str) -> list[str]:
        """`<the job's Python> -m pip ...`, never the pip that some PATH has."""
        return [self.python, "-m", "pip", *words]


def find_place(context: Context, entry: str) -> Place:
    """The place behind one directory of the import path; Skipped, with the way out, where pip must not write."""
    python, host = interpreter(context), context.host
    _refuse_foreign(host, python, entry)
    user = entry == user_site(context)
    root, site = _split(entry)
    if not user and not is_own(python, entry):
        raise Skipped(
            Text(
                f"{entry} is no site directory of {python.path} itself (but comes from PYTHONPATH, a .pth file or the"
                " base of the virtual environment): its pip does not write there",
                f"{entry} 不是 {python.path} 自己的 site 目录（而是来自 PYTHONPATH、.pth 文件或虚拟环境的基础环境），"
                "其 pip 不会写入该目录",
            )
        )
    _refuse_old_pip(context, python)
    program = start_path(host, python)
    owner = _owner(host, entry)
    _refuse_other_owner(host, program, entry, owner)
    return Place(program, entry, root, site, user, owner == 0, _variables(context, user))


def is_own(python: PythonTarget, entry: str) -> bool:
    """Whether a directory is a site directory of that very installation or virtual environment."""
    return entry in python.sites and (python.kind != "venv" or entry.startswith(python.prefix.rstrip("/") + "/"))


def main_entry(context: Context) -> str:
    """The site directory that pip installs into by default."""
    python, own = interpreter(context), user_site(context)
    sites = [site for site in python.sites if site != own]
    if not sites:
        raise Skipped(Text(f"{python.path} has no site-packages", f"{python.path} 没有 site-packages 目录"))
    return sites[0]


def user_site(context: Context) -> Optional[str]:
    """The user's own site directory of a Python that is no virtual environment; None where there is none."""
    python = interpreter(context)
    known = context.target.environment.variables
    variables = context.host.environ if known is None else known
    base = variables.get("PYTHONUSERBASE") or (variables["HOME"] + "/.local" if variables.get("HOME") else "")
    if python.kind == "venv" or not base or variables.get("PYTHONNOUSERSITE"):
        return None
    return f"{base}/lib/python{python.version}/site-packages"


def start_path(host: Host, python: PythonTarget) -> str:
    """What starts the interpreter: a virtual environment's own name for it, else the program behind all links."""
    if python.kind == "venv":
        for name in ("python", "python3", f"python{python.version}"):
            if exists(host, f"{python.prefix}/bin/{name}"):
                return f"{python.prefix}/bin/{name}"
    return python.real


def needs_root(host: Host, folder: str) -> bool:
    """Whether only root can replace a file in that directory (by its owner)."""
    return _owner(host, folder) != host.euid or host.euid == 0


def _split(entry: str) -> tuple[str, str]:
    """(prefix, rest) of `PREFIX/lib/pythonX.Y/site-packages`; another directory is its own root's only child."""
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
    way_out = Text(
        f"; use a virtual environment: {python.path} -m venv --system-site-packages DIR",
        f"；请使用虚拟环境：{python.path} -m venv --system-site-packages DIR",
    )
    if python.kind != "venv":
        for lib in ("lib", "lib64"):
            marker = f"{python.prefix.rstrip('/')}/{lib}/python{python.version}/EXTERNALLY-MANAGED"
            if _is_there(host, marker):
                reason = Text(
                    f"{python.path} is managed by the distribution (PEP 668: {marker}), and pip leaves it alone, also"
                    " with --user",
                    f"{python.path} 由发行版管理（PEP 668：{marker}），pip 不会改动它，--user 也不行",
                )
                raise Skipped(Text(reason.en + way_out.en, reason.zh + way_out.zh))
    if entry.startswith(("/usr/lib/python", "/usr/lib64/python")):
        reason = Text(f"{entry} belongs to the distribution's package manager", f"{entry} 由发行版的软件包管理器管理")
        raise Skipped(Text(reason.en + way_out.en, reason.zh + way_out.zh))


def _is_there(host: Host, path: str) -> bool:
    """A marker that a recording is silent about is taken as absent: pip itself looks again."""
    try:
        return exists(host, path)
    except HostError:
        return False


def _refuse_old_pip(context: Context, python: PythonTarget) -> None:
    rows = [row for row in every(context, "pip") if row.version]
    if not rows or locate(context, "pip") is None:
        raise Skipped(
            Text(
                f"{python.path} has no pip; first: {python.path} -m ensurepip",
                f"{python.path} 中没有 pip；请先执行：{python.path} -m ensurepip",
            )
        )
    numbers = tuple(int(part) for part in rows[0].version.split(".")[:2] if part.isdigit())
    if numbers < OLDEST_PIP:
        raise Skipped(
            Text(
                f"pip {rows[0].version} of {python.path} is older than 19.0",
                f"{python.path} 的 pip {rows[0].version} 低于 19.0",
            )
        )


def _refuse_other_owner(host: Host, program: str, entry: str, owner: int) -> None:
    starter = _owner(host, program)
    if host.euid == 0 and (owner != 0 or starter != 0):
        uid = owner or starter
        raise Skipped(
            Text(
                f"{entry} or {program} belongs to user {uid}: as root envtune starts no program another user can"
                f" change; run it as that user (sudo -u '#{uid}' envtune fix)",
                f"{entry} 或 {program} 属于用户 {uid}：envtune 不会以 root 身份启动其他用户可改动的程序；"
                f"请以该用户运行（sudo -u '#{uid}' envtune fix）",
            )
        )
    if host.euid != 0 and owner not in (0, host.euid):
        raise Skipped(
            Text(
                f"{entry} belongs to user {owner}: run envtune as that user",
                f"{entry} 属于用户 {owner}：请以该用户运行 envtune",
            )
        )


def _variables(context: Context, user: bool) -> dict[str, str]:
    """What keeps pip to the place: settings of the caller's shell or of pip.conf must not lead it elsewhere."""
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
