"""Install missing packages of the distribution: simulated first, undone exactly.

The names are data (envtune/data/packages.csv), with the porting guide's wrong ones corrected. At plan time apt-get
simulates what it would do (`apt-get -s` takes a second and needs no privilege); dnf, yum and zypper would have to
refresh their metadata, and test their transaction themselves before they write. Nothing is upgraded on purpose and
nothing removed: an installation that would remove a package is not proposed. Undoing removes the packages that were not
installed before, and only those: dpkg and rpm refuse if something installed since needs one of them.
"""

from __future__ import annotations

import pkgutil
import re
from typing import Annotated, Iterable, Literal, Mapping, NamedTuple, Optional, Sequence

from envtune.context import Context
from envtune.context.registry import action
from envtune.errors import HostError, Skipped
from envtune.host import Host, realpath
from envtune.messages import N_, Message, Text, clauses, enumerated
from envtune.model import Change, Finding
from envtune.resources.images.build_requirements import installed_debian
from envtune.resources.python.distributions import interpreter
from envtune.resources.system.platform import MANAGERS, find_binary

Need = Literal["pillow-build", "pillow-headers", "cpupower"]
HEADERS = ("jpeglib.h", "zlib.h", "Python.h")


class PackageRow(NamedTuple):
    """One line of the table; any one of `packages` is enough, the first that the sources offer is installed."""

    need: str
    os: str
    packages: tuple[str, ...]
    separate: bool  # may be missing in the distribution's sources, and must not stop the others


class Manager(NamedTuple):
    """The commands of a package manager: install, check that a package is installed, list all, remove."""

    install: tuple[str, ...]
    check: tuple[str, ...]
    inventory: tuple[str, ...]
    pattern: str  # the name of an installed package in a line of the inventory
    remove: tuple[str, ...]
    environ: Mapping[str, str] = {}


def _rpm(*install: str) -> Manager:
    inventory = ("rpm", "-qa", "--qf", r"%{NAME}.%{ARCH}\n")
    pattern = r"(?m)^(?!gpg-pubkey)(\S+)$"
    return Manager(install, ("rpm", "-q", "--whatprovides"), inventory, pattern, ("rpm", "-e", "{new}"))


# Without the option a simulation as root leaves /var/log/apt/eipp.log.xz behind.
_APT_SIMULATES = ("apt-get", "-s", "-o", "Dir::Log::Planner=/dev/null", "install", "--no-install-recommends")
_APT = ("apt-get", "install", "-y", "--no-install-recommends", "--no-remove", "-o", "DPkg::Lock::Timeout=120")
COMMANDS: Mapping[str, Manager] = {
    "apt-get": Manager(
        _APT,
        ("dpkg-query", "-W", "-f=${Package}=${db:Status-Status};"),
        ("dpkg-query", "-W", r"-f=${db:Status-Status} ${binary:Package}\n"),
        r"(?m)^(?!config-files|not-installed)\S+ (\S+)$",  # also what a killed dpkg left unpacked: undo removes it
        ("dpkg", "--remove", "{new}"),
        {"DEBIAN_FRONTEND": "noninteractive", "NEEDRESTART_SUSPEND": "1"},
    ),
    "dnf": _rpm("dnf", "install", "-y"),
    "yum": _rpm("yum", "install", "-y"),
    "zypper": _rpm("zypper", "--non-interactive", "install", "--no-recommends"),
}


# Neither a simulation nor the packages tell what their scripts, other packages' triggers and needrestart will restart.
MAY_RESTART = Message("may restart services; which ones is not known in advance")


class Simulation(NamedTuple):
    """What the package manager says it would do with `names`; `installs` is None if nothing was simulated."""

    names: tuple[str, ...]
    installs: Optional[tuple[str, ...]] = None  # everything new, dependencies included
    upgrades: tuple[str, ...] = ()
    not_offered: tuple[str, ...] = ()  # by any source


@action("packages.install", formerly="package.install")
def install(
    context: Context,
    findings: Sequence[Finding],
    *,
    need: Annotated[
        Need, N_("Purpose of the packages; envtune/data/packages.csv lists their names for each distribution.")
    ],
) -> Iterable[Change]:
    """Propose one change for what belongs together, and one for each package that may be missing in the sources."""
    manager = find_manager(context)
    rows = [row for row in _needed_rows(context, findings, need) if not is_installed(context, manager, row.packages)]
    if not rows:
        raise Skipped(Message("every package is installed already"))
    together = [row for row in rows if not row.separate]
    groups = ([together] if together else []) + [[row] for row in rows if row.separate]
    plans = [simulate(context.host, manager, [row.packages for row in group]) for group in groups]
    ids = tuple(dict.fromkeys(f.id for f in findings))
    changes = [_change(manager, plan, ids) for plan in plans if plan.names]
    if not changes:
        raise Skipped(
            Message(
                "no repository of {manager} has {packages}; is the package list up to date (apt-get update)?",
                manager=manager,
                packages=enumerated(row.packages[0] for row in rows),
            )
        )
    return changes


def find_manager(context: Context) -> str:
    """Return apt-get, dnf, yum or zypper, by the distribution's family; raises Skipped if it has another or none."""
    family = context.facts.value("os_family") or "other"
    for name in MANAGERS.get(family, ()):
        if find_binary(context.host, name) is not None:
            return name
    raise Skipped(Message("no package manager of the {family} family found", family=family))


def _needed_rows(context: Context, findings: Sequence[Finding], need: Need) -> list[PackageRow]:
    names: tuple[str, ...] = (need,)
    if need == "pillow-headers":
        names = tuple(h for h in HEADERS if any(f.subject == h for f in findings))
        if "Python.h" in names:
            _require_distribution_python(context)
    values = {"version": _python_version(context), "release": context.host.uname["release"]}
    return [
        row._replace(packages=tuple(name.format(**values) for name in row.packages))
        for name in names
        for row in rows_for(name, context.facts.value("os") or "", context.facts.value("os_family") or "")
    ]


def rows_for(need: str, os: str, family: str) -> list[PackageRow]:
    """Return the packages of a need on a distribution: its own rows, else those of its family."""
    rows = [row for row in package_table() if row.need == need]
    return [row for row in rows if row.os == os] or [row for row in rows if row.os == family]


def package_table() -> tuple[PackageRow, ...]:
    """Return the rows of envtune/data/packages.csv."""
    import csv

    text = (pkgutil.get_data("envtune", "data/packages.csv") or b"").decode("utf-8")
    return tuple(
        PackageRow(row["need"], row["os"], tuple(row["packages"].split()), row["apart"] == "yes")
        for row in csv.DictReader(text.splitlines())
    )


def _python_version(context: Context) -> str:
    python = context.target.python
    return "3" if python is None else python.version


def _require_distribution_python(context: Context) -> None:
    """Raise Skipped for a Python of other origin, whose Python.h is not in a package of the distribution."""
    python, host = interpreter(context), context.host
    if not python.real.startswith("/usr/bin/"):
        raise Skipped(
            Message(
                "{path} is not the distribution's Python: its own installation must provide Python.h", path=python.real
            )
        )
    if context.facts.value("os_family") != "debian" and not _is_default(host, python.real):
        raise Skipped(
            Message(
                "/usr/bin/python3 does not point to {path}: choose the -devel package of {version}",
                path=python.real,
                version=python.version,
            )
        )


def _is_default(host: Host, real: str) -> bool:
    try:
        return realpath(host, "/usr/bin/python3") == real
    except HostError:
        return False


def is_installed(context: Context, manager: str, names: Sequence[str]) -> bool:
    """Return whether one of the packages is installed (for rpm: provided by something that is)."""
    if manager == "apt-get":
        return bool(installed_debian(context.host, names))
    return any(context.host.run((*COMMANDS[manager].check, name), 10.0).returncode == 0 for name in names)


def _change(manager: str, plan: Simulation, ids: tuple[str, ...]) -> Change:
    commands = COMMANDS[manager]
    return Change(
        finding=ids[0],
        subject="packages",
        playbook="",
        action="packages.install",
        target=" ".join(plan.names),
        before="not installed",
        after="installed" if plan.installs is None else "installed: " + " ".join(plan.installs),
        scope="job",  # it survives a reboot, and needs none
        operations=(
            {
                "op": "run",
                "argv": [*commands.install, *plan.names],
                "check": _check(manager, plan.names),
                "census": {"argv": list(commands.inventory), "pattern": commands.pattern},
                "undo": {"argv": list(commands.remove)},
                "env": dict(commands.environ),
                "timeout": 1800,
            },
        ),
        safety="confirm",
        disruption="none",
        interrupts=MAY_RESTART,
        root=True,
        note=_note(manager, plan),
        fixes=ids[1:],
    )


def _check(manager: str, names: Sequence[str]) -> dict[str, object]:
    argv = [*COMMANDS[manager].check, *names]
    if manager != "apt-get":
        return {"argv": argv}
    output = "".join(f"{name}=installed;" for name in sorted(names))  # dpkg-query sorts by name
    return {"argv": argv, "contains": output}


def _note(manager: str, plan: Simulation) -> Text:
    parts: list[Text] = []
    if plan.installs is None:
        parts.append(Message("{manager} was not run in simulation first", manager=manager))
    if plan.not_offered:
        packages = enumerated(plan.not_offered)
        parts.append(Message("skipped, because no repository has them: {packages}", packages=packages))
    if plan.installs is None:
        parts.append(Message("undo removes new packages; packages upgraded with them stay upgraded"))
        return clauses(parts)
    dependencies = [name for name in plan.installs if name not in plan.names]
    if dependencies:
        parts.append(Message("undo also removes its dependencies: {packages}", packages=enumerated(dependencies)))
    if plan.upgrades:
        parts.append(
            Message(
                "also upgrades {packages}, which undo does not revert; other existing packages stay, even after undo",
                packages=enumerated(plan.upgrades),
            )
        )
    else:
        parts.append(Message("existing packages stay, even after undo"))
    return clauses(parts)


def simulate(host: Host, manager: str, choices: Sequence[tuple[str, ...]]) -> Simulation:
    """Return what apt-get would do; raises Skipped if it would remove something or fail."""
    not_simulated = Simulation(tuple(names[0] for names in choices))
    if manager != "apt-get":
        return not_simulated
    try:
        offered = candidates(host.run(("apt-cache", "policy", *(n for names in choices for n in names)), 30.0).stdout)
        chosen = [next((n for n in names if n in offered), None) for names in choices]
        not_offered = tuple(names[0] for names, name in zip(choices, chosen) if name is None)
        packages = tuple(name for name in chosen if name is not None)
        if not packages:
            return Simulation((), (), (), not_offered)
        result = host.run((*_APT_SIMULATES, *packages), 60.0)
    except HostError:
        return not_simulated  # not recorded, or no answer in time: the real one decides
    if result.returncode != 0:
        last = (result.stderr.strip() or result.stdout.strip() or "?").splitlines()[-1]
        raise Skipped(Message("apt-get cannot install them: {last}", last=last))
    new, upgraded, removed = parse_simulation(result.stdout)
    if removed:
        raise Skipped(Message("apt-get would remove {packages}", packages=enumerated(removed)))
    return Simulation(packages, new, upgraded, not_offered)


def candidates(policy: str) -> frozenset[str]:
    """Return the packages of `apt-cache policy` that some source offers."""
    return frozenset(re.findall(r"^(\S+):\n(?:[ \t]+.*\n)*?[ \t]+Candidate: (?!\(none\))\S+", policy, re.M))


def parse_simulation(text: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the (new, upgraded, removed) packages of `apt-get -s install`."""
    new = re.findall(r"^Inst (\S+) \(", text, re.M)
    upgraded = re.findall(r"^Inst (\S+) \[", text, re.M)
    return tuple(new), tuple(upgraded), tuple(re.findall(r"^(?:Remv|Purg) (\S+)", text, re.M))
