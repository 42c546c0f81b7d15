"""`packages.install`: missing packages of the distribution, simulated first, taken back exactly.

The names are data (envtune/data/packages.csv), with the porting guide's wrong ones corrected. apt-get is asked at plan
time what it would do (`apt-get -s` takes a second and needs no right); dnf, yum and zypper would refresh their metadata
for an answer, and test their transaction themselves before they write. Nothing is upgraded on purpose and nothing
removed: an installation that would remove a package is not proposed. The way back removes the packages that were not
there before, and only those: dpkg and rpm refuse where something installed since needs one of them.
"""

from __future__ import annotations

import pkgutil
import re
from typing import Iterable, Literal, Mapping, NamedTuple, Optional, Sequence

from envtune.collector.sources.images import DPKG_STATUS
from envtune.context import Context
from envtune.context.registry import action
from envtune.errors import HostError, Skipped
from envtune.host import Host, realpath
from envtune.messages import Bilingual, Message, Text
from envtune.model import Change, Finding
from envtune.resources.images.build_requirements import installed_debian
from envtune.resources.python.distributions import interpreter
from envtune.resources.system.platform import MANAGERS, find_binary

Need = Literal["pillow-build", "pillow-headers", "cpupower"]
HEADERS = ("jpeglib.h", "zlib.h", "Python.h")


class Row(NamedTuple):
    """One line of the table; any one of `packages` will do, the first that the sources offer is installed."""

    need: str
    os: str
    packages: tuple[str, ...]
    apart: bool  # may be missing in the distribution's sources, and must not stop the others


class Manager(NamedTuple):
    """How a family installs, tells what is there, and takes back."""

    install: tuple[str, ...]
    check: tuple[str, ...]
    census: tuple[str, ...]
    pattern: str
    remove: tuple[str, ...]
    environ: Mapping[str, str] = {}


_RPM = {
    "check": ("rpm", "-q", "--whatprovides"),
    "census": ("rpm", "-qa", "--qf", r"%{NAME}.%{ARCH}\n"),
    "pattern": r"(?m)^(?!gpg-pubkey)(\S+)$",
    "remove": ("rpm", "-e", "{new}"),
}
_APT = ("apt-get", "install", "-y", "--no-install-recommends", "--no-remove", "-o", "DPkg::Lock::Timeout=120")
COMMANDS: Mapping[str, Manager] = {
    "apt-get": Manager(
        _APT,
        ("dpkg-query", "-W", "-f=${Package}=${db:Status-Status};"),
        ("dpkg-query", "-W", r"-f=${db:Status-Status} ${binary:Package}\n"),
        r"(?m)^installed (\S+)$",
        ("dpkg", "--remove", "{new}"),
        {"DEBIAN_FRONTEND": "noninteractive", "NEEDRESTART_SUSPEND": "1"},
    ),
    "dnf": Manager(("dnf", "install", "-y"), **_RPM),  # type: ignore[arg-type]
    "yum": Manager(("yum", "install", "-y"), **_RPM),  # type: ignore[arg-type]
    "zypper": Manager(("zypper", "--non-interactive", "install", "--no-recommends"), **_RPM),  # type: ignore[arg-type]
}


class Simulation(NamedTuple):
    """What the package manager says it would do with `names`; `installs` is None where it was not asked."""

    names: tuple[str, ...]
    installs: Optional[tuple[str, ...]] = None  # everything new, dependencies included
    upgrades: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()  # no source offers it


@action("packages.install", formerly="package.install")
def install(context: Context, findings: Sequence[Finding], *, need: Need) -> Iterable[Change]:
    """One change for what belongs together, and one for every package that the sources may not offer."""
    manager = find_manager(context)
    rows = [row for row in _rows(context, findings, need) if not installed(context, manager, row.packages)]
    if not rows:
        raise Skipped(Message("every package is installed already"))
    ids = tuple(dict.fromkeys(f.id for f in findings))
    together = [row for row in rows if not row.apart]
    groups = ([together] if together else []) + [[row] for row in rows if row.apart]
    changes = [one for group in groups for one in _change(context, manager, group, ids)]
    if not changes:
        listed = ", ".join(row.packages[0] for row in rows)
        raise Skipped(
            Message(
                "no source of {manager} offers {listed}; is the list of packages up to date (apt-get update)?",
                manager=manager,
                listed=listed,
            )
        )
    return changes


def find_manager(context: Context) -> str:
    """apt-get, dnf, yum or zypper, by the distribution's family; Skipped when it is another or not there."""
    family = context.facts.value("os_family") or "other"
    for name in MANAGERS.get(family, ()):
        if find_binary(context.host, name) is not None:
            return name
    raise Skipped(Message("no package manager of the family {family} is there", family=family))


def _rows(context: Context, findings: Sequence[Finding], need: Need) -> list[Row]:
    names: tuple[str, ...] = (need,)
    if need == "pillow-headers":
        names = tuple(h for h in HEADERS if any(f.subject == h for f in findings))
        if "Python.h" in names:
            _refuse_own_python(context)
    values = {"version": _python_version(context), "release": context.host.uname["release"]}
    return [
        row._replace(packages=tuple(name.format(**values) for name in row.packages))
        for name in names
        for row in names_for(name, context.facts.value("os") or "", context.facts.value("os_family") or "")
    ]


def names_for(need: str, os: str, family: str) -> list[Row]:
    """The packages of a need on a distribution: its own rows, else those of its family."""
    rows = [row for row in table() if row.need == need]
    return [row for row in rows if row.os == os] or [row for row in rows if row.os == family]


def table() -> tuple[Row, ...]:
    """The rows of envtune/data/packages.csv."""
    import csv

    text = (pkgutil.get_data("envtune", "data/packages.csv") or b"").decode("utf-8")
    found = []
    for row in csv.DictReader(text.splitlines()):
        found.append(Row(row["need"], row["os"], tuple(row["packages"].split()), row["apart"] == "yes"))
    return tuple(found)


def _python_version(context: Context) -> str:
    python = context.target.python
    return "3" if python is None else python.version


def _refuse_own_python(context: Context) -> None:
    """Python.h of a Python that the distribution does not bring is in none of its packages."""
    python, host = interpreter(context), context.host
    if not python.real.startswith("/usr/bin/"):
        raise Skipped(
            Message(
                "{real} is not the distribution's Python: its own installation must bring Python.h", real=python.real
            )
        )
    if context.facts.value("os_family") != "debian" and not _is_default(host, python.real):
        raise Skipped(
            Message(
                "{real} is not what /usr/bin/python3 leads to: choose the -devel package of {version}",
                real=python.real,
                version=python.version,
            )
        )


def _is_default(host: Host, real: str) -> bool:
    try:
        return realpath(host, "/usr/bin/python3") == real
    except HostError:
        return False


def installed(context: Context, manager: str, names: Sequence[str]) -> bool:
    """Whether one of them is installed (for rpm: provided by something that is)."""
    if manager == "apt-get":
        return bool(installed_debian(context.host.read(DPKG_STATUS).replace("\r\n", "\n"), names))
    return any(context.host.run((*COMMANDS[manager].check, name), 10.0).returncode == 0 for name in names)


def _change(context: Context, manager: str, rows: Sequence[Row], ids: tuple[str, ...]) -> Iterable[Change]:
    plan = simulate(context.host, manager, [row.packages for row in rows])
    if not plan.names:
        return
    commands = COMMANDS[manager]
    yield Change(
        finding=ids[0],
        subject="packages",
        playbook="",
        action="packages.install",
        target=" ".join(plan.names),
        before="not installed",
        after="installed" if plan.installs is None else "installed: " + " ".join(plan.installs),
        view="job",  # it stays over a reboot, and needs none
        operations=(
            {
                "op": "run",
                "argv": [*commands.install, *plan.names],
                "check": _check(manager, plan.names),
                "census": {"argv": list(commands.census), "pattern": commands.pattern},
                "undo": {"argv": list(commands.remove)},
                "env": dict(commands.environ),
                "timeout": 1800,
            },
        ),
        safety="confirm",
        disruption="none",
        root=True,
        note=_note(manager, plan),
        cures=ids[1:],
    )


def _check(manager: str, names: Sequence[str]) -> dict[str, object]:
    argv = [*COMMANDS[manager].check, *names]
    if manager != "apt-get":
        return {"argv": argv}
    told = "".join(f"{name}=installed;" for name in sorted(names))  # dpkg-query sorts by name
    return {"argv": argv, "contains": told}


def _note(manager: str, plan: Simulation) -> Text:
    en, zh = "packages that were there before stay, also on undo", "原有软件包保持不变，撤销时也不会改动"
    if plan.upgrades:
        listed = ", ".join(plan.upgrades)
        en = f"also upgrades {listed}, which undo does not take back; other {en}"
        zh = f"同时会升级 {listed}，撤销时不会降级；其他{zh}"
    if plan.absent:
        listed = ", ".join(plan.absent)
        en, zh = f"left out, since no source offers it: {listed}; {en}", f"软件源中没有，已跳过：{listed}；{zh}"
    if plan.installs is None:
        en, zh = f"{manager} was not asked beforehand what it would do; {en}", f"未事先模拟 {manager} 的操作；{zh}"
    return Bilingual(en, zh)


def simulate(host: Host, manager: str, choices: Sequence[tuple[str, ...]]) -> Simulation:
    """What apt-get would do; Skipped when it would remove something or cannot do it."""
    unasked = Simulation(tuple(names[0] for names in choices))
    if manager != "apt-get":
        return unasked
    try:
        offered = candidates(host.run(("apt-cache", "policy", *(n for names in choices for n in names)), 30.0).stdout)
        found = [next((n for n in names if n in offered), None) for names in choices]
        absent = tuple(names[0] for names, name in zip(choices, found) if name is None)
        rest = tuple(name for name in found if name is not None)
        if not rest:
            return Simulation((), (), (), absent)
        result = host.run(("apt-get", "-s", "install", "--no-install-recommends", *rest), 60.0)
    except HostError:
        return unasked  # not recorded, or no answer in time: the real one decides
    if result.returncode != 0:
        last = (result.stderr.strip() or result.stdout.strip() or "?").splitlines()[-1]
        raise Skipped(Message("apt-get cannot install them: {last}", last=last))
    new, upgraded, removed = simulated(result.stdout)
    if removed:
        listed = ", ".join(removed)
        raise Skipped(Message("apt-get would remove {listed}", listed=listed))
    return Simulation(rest, new, upgraded, absent)


def candidates(policy: str) -> frozenset[str]:
    """The packages of `apt-cache policy` that some source offers."""
    found = re.findall(r"^(\S+):\n(?:[ \t]+.*\n)*?[ \t]+Candidate: (?!\(none\))\S+", policy, re.M)
    return frozenset(found)


def simulated(text: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """(new, upgraded, removed) packages of `apt-get -s install`."""
    new = re.findall(r"^Inst (\S+) \(", text, re.M)
    upgraded = re.findall(r"^Inst (\S+) \[", text, re.M)
    return tuple(new), tuple(upgraded), tuple(re.findall(r"^(?:Remv|Purg) (\S+)", text, re.M))
