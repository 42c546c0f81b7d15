"""Packages of the distribution: the right names, only what is missing, simulated first, taken back exactly."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Mapping, Optional

import pytest
from helpers.examples import example_context

from envtune.audit import examine
from envtune.catalog import load
from envtune.collector.sources.images import PILLOW_BUILD_DEBIAN, PILLOW_BUILD_QUERY
from envtune.executor.plan import operation_fault
from envtune.executor.recover import undo_run
from envtune.executor.run import apply_plan
from envtune.fix.plan import Plan, executable, make_plan
from envtune.fix.policy import refusal
from envtune.host import LocalHost
from envtune.model import Change, Finding, FixOptions
from envtune.resources.packages.install import candidates, package_table, parse_simulation, rows_for, simulate

SIMULATED = """NOTE: This is only a simulation!
Reading package lists...
The following NEW packages will be installed:
  libjpeg-dev libjpeg62-turbo-dev
Inst libjpeg62-turbo [1:2.1.4-1] (1:2.1.5-2 Debian:12.5/stable [amd64])
Inst libjpeg62-turbo-dev (1:2.1.5-2 Debian:12.5/stable [amd64])
Inst libjpeg-dev (1:2.1.5-2 Debian:12.5/stable [amd64])
Conf libjpeg62-turbo (1:2.1.5-2 Debian:12.5/stable [amd64])
"""
POLICY = """libjpeg-dev:
  Installed: (none)
  Candidate: 1:2.1.5-2
  Version table:
     1:2.1.5-2 500
        500 http://deb.debian.org/debian bookworm/main amd64 Packages
libjpeg8-dev:
  Installed: (none)
  Candidate: (none)
  Version table:
zlib1g-dev:
  Installed: 1:1.2.13.dfsg-1
  Candidate: 1:1.2.13.dfsg-1
"""
DEBIAN = 'NAME="Debian GNU/Linux"\nID=debian\nVERSION_ID="12"\n'
CENTOS = 'NAME="CentOS Linux"\nVERSION_ID="7"\nID="centos"\nID_LIKE="rhel fedora"\n'
SLES = 'NAME="SLES"\nID="sles"\nID_LIKE="suse"\nVERSION_ID="15"\n'
EULER = 'NAME="openEuler"\nID="openEuler"\nVERSION_ID="22.03"\n'
PROGRAM = {"size": 1, "mode": "0755"}
APT = {"/usr/bin/apt-get": PROGRAM, "/usr/bin/env": PROGRAM}


def plan(id_: str, **example: Any) -> Plan:
    context = example_context({"like": "torch150", "arch": "x86_64", **example})
    findings: list[Finding] = [f for c in load().checks if c.id == id_ for f in examine(c, context)]
    return make_plan(findings, load().playbooks, context, FixOptions())


def operation(change: Change) -> Mapping[str, Any]:
    found = dict(change.operations[0])
    assert operation_fault(found) is None and refusal(found) is None
    return found


# ---------------------------------------------------------------------- names


def test_every_row_says_where_its_name_comes_from() -> None:
    import csv
    import pkgutil

    text = (pkgutil.get_data("envtune", "data/packages.csv") or b"").decode("utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    assert rows and all(None not in row and row["source"].startswith("003:") for row in rows)
    assert len({(r["need"], r["os"], r["packages"]) for r in rows}) == len(rows)


def test_the_names_of_the_guide_that_no_distribution_has_are_not_used() -> None:
    names = {(row.os, name) for row in package_table() for name in row.packages}
    for wrong in (
        ("debian", "libjpeg8-dev"),
        ("debian", "zlib-devel"),
        ("debian", "python-devel"),
        ("rhel", "python-devel"),
    ):
        assert wrong not in names


def test_each_requirement_of_the_probe_can_be_installed() -> None:
    for system in ("debian", "ubuntu"):
        offered = [set(row.packages) for row in rows_for("pillow-build", system, "debian")]
        assert len(offered) == len(PILLOW_BUILD_DEBIAN)
        assert all(any(names & set(any_of) for names in offered) for any_of in PILLOW_BUILD_DEBIAN)


@pytest.mark.parametrize(
    ("os", "family", "names"),
    [
        ("ubuntu", "debian", ("linux-tools-{release}",)),
        ("debian", "debian", ("linux-cpupower",)),
        ("uos", "debian", ("linux-cpupower",)),
        ("openEuler", "rhel", ("kernel-tools",)),
        ("sles", "suse", ("cpupower",)),
        ("alpine", "other", ()),
    ],
)
def test_a_name_per_distribution(os: str, family: str, names: tuple[str, ...]) -> None:
    assert tuple(row.packages[0] for row in rows_for("cpupower", os, family)) == names


# ---------------------------------------------------------------------- plans


def test_only_what_is_missing_and_simulated_first() -> None:
    made = plan(
        "IMG006",
        files={"/etc/os-release": DEBIAN, "/usr/include/zlib.h": "", "/var/lib/dpkg/status": "", **APT},
        commands={
            "apt-cache policy libjpeg-dev": POLICY,
            "apt-get -s install --no-install-recommends libjpeg-dev": SIMULATED,
        },
    )
    (change,) = made.changes
    assert change.target == "libjpeg-dev" and change.after == "installed: libjpeg62-turbo-dev libjpeg-dev"
    assert change.note is not None and "also upgrades libjpeg62-turbo, which undo does not take back" in change.note.en
    assert (change.safety, change.root, change.undoable) == ("confirm", True, True)
    found = operation(change)
    assert (
        found["argv"][:2] == ["apt-get", "install"]
        and "--no-remove" in found["argv"]
        and found["argv"][-1] == "libjpeg-dev"
    )
    assert found["check"]["contains"] == "libjpeg-dev=installed;"
    assert found["undo"] == {"argv": ["dpkg", "--remove", "{new}"]}


def test_what_no_source_offers_is_left_out_and_named() -> None:
    made = simulate_with(POLICY, SIMULATED, ("libjpeg8-dev",), ("libjpeg-dev",))
    assert made.names == ("libjpeg-dev",) and made.not_offered == ("libjpeg8-dev",)
    assert simulate_with(POLICY, SIMULATED, ("libjpeg8-dev", "libjpeg-dev")).names == ("libjpeg-dev",), "the newer name"


def test_an_installation_that_removes_something_is_not_proposed() -> None:
    made = plan(
        "IMG006",
        files={"/etc/os-release": DEBIAN, "/usr/include/zlib.h": "", "/var/lib/dpkg/status": "", **APT},
        commands={
            "apt-cache policy libjpeg-dev": POLICY,
            "apt-get -s install --no-install-recommends libjpeg-dev": SIMULATED + "Remv libjpeg9-dev [9e]\n",
        },
    )
    assert not made.changes and made.skipped[0].reason.en == "apt-get would remove libjpeg9-dev"


def test_without_an_answer_the_plan_says_so() -> None:
    made = plan(
        "IMG006", files={"/etc/os-release": DEBIAN, "/usr/include/zlib.h": "", "/var/lib/dpkg/status": "", **APT}
    )
    (change,) = made.changes
    assert change.after == "installed" and change.note is not None and "was not asked beforehand" in change.note.en


def test_epel_packages_stand_apart_from_the_others() -> None:
    query = "rpm -q --whatprovides "
    missing = ("libtiff-devel", "libraqm-devel", "libimagequant-devel")
    asked = " ".join(PILLOW_BUILD_QUERY[3:])
    answer = "".join(f"no package provides {name}\n" for name in missing)
    singles = {
        query + row.packages[0]: {"rc": int(row.packages[0] in missing), "stdout": ""}
        for row in rows_for("pillow-build", "", "rhel")
    }
    files = {"/etc/os-release": CENTOS, "/usr/bin/yum": PROGRAM, "/usr/bin/env": PROGRAM}
    made = plan("IMG003", files=files, commands={query + asked: {"rc": 3, "stdout": answer}, **singles})
    assert [change.target for change in made.changes] == list(missing)
    assert operation(made.changes[0])["argv"] == ["yum", "install", "-y", "libtiff-devel"]
    assert operation(made.changes[0])["undo"] == {"argv": ["rpm", "-e", "{new}"]}


@pytest.mark.parametrize(
    ("release", "program", "argv"),
    [
        (CENTOS, "yum", ["yum", "install", "-y", "libjpeg-turbo-devel"]),
        (EULER, "dnf", ["dnf", "install", "-y", "libjpeg-turbo-devel"]),
        (SLES, "zypper", ["zypper", "--non-interactive", "install", "--no-recommends", "libjpeg8-devel"]),
    ],
)
def test_the_manager_of_the_family(release: str, program: str, argv: list[str]) -> None:
    name = argv[-1]
    commands = {f"rpm -q --whatprovides {name}": {"rc": 1, "stdout": f"no package provides {name}\n"}}
    files = {"/etc/os-release": release, "/usr/include/zlib.h": "", f"/usr/bin/{program}": PROGRAM}
    (change,) = plan("IMG006", files=files, commands=commands).changes
    assert operation(change)["argv"] == argv


def test_a_python_of_its_own_brings_its_own_header() -> None:
    files = {
        "/etc/os-release": DEBIAN,
        "/usr/include/zlib.h": "",
        "/usr/include/jpeglib.h": "",
        "/usr/local/python3.7.5/include/python3.7m/Python.h": None,
        **APT,
    }
    made = plan("IMG006", files=files)
    assert not made.changes and "is not the distribution's Python" in made.skipped[0].reason.en


def test_no_package_manager() -> None:
    made = plan("IMG006", files={"/etc/os-release": DEBIAN, "/usr/include/zlib.h": ""})
    assert not made.changes and "no package manager" in made.skipped[0].reason.en


# ---------------------------------------------------------------------- parsers


class Answers:
    """A host that answers two commands."""

    def __init__(self, policy: str, text: str) -> None:
        self.texts = {"apt-cache": policy, "apt-get": text}

    def run(self, argv: Any, timeout: float = 5.0) -> Any:
        from envtune.model import CommandResult

        return CommandResult(tuple(argv), 0, self.texts[argv[0]], "")


def simulate_with(policy: str, text: str, *choices: tuple[str, ...]) -> Any:
    return simulate(Answers(policy, text), "apt-get", choices)  # type: ignore[arg-type]


def test_candidates_and_simulation_in_odd_shapes() -> None:
    assert candidates(POLICY) == {"libjpeg-dev", "zlib1g-dev"}
    assert candidates("") == candidates("N: Unable to locate package x\n") == candidates("\x00\xff") == frozenset()
    assert parse_simulation(SIMULATED) == (("libjpeg62-turbo-dev", "libjpeg-dev"), ("libjpeg62-turbo",), ())
    assert parse_simulation("") == ((), (), ())
    assert parse_simulation("Remv a [1]\nPurg b [2]\n")[2] == ("a", "b")


# ---------------------------------------------------------------------- for real


@pytest.fixture
def debian(tmp_path: Path) -> Path:
    """A dpkg database of its own with two small packages in a local archive: apt and dpkg themselves, no network."""
    for program in ("dpkg-deb", "apt-get", "dpkg-query"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program}")
    if os.geteuid() != 0:
        pytest.skip("dpkg sets owners")
    return tmp_path


def package(folder: Path, name: str, depends: str = "") -> Path:
    tree = folder / name
    (tree / "DEBIAN").mkdir(parents=True)
    more = f"Depends: {depends}\n" if depends else ""
    (tree / "DEBIAN/control").write_text(
        f"Package: {name}\nVersion: 1.0\nArchitecture: all\nMaintainer: a test <t@example.org>\n{more}Description: x\n"
    )
    (tree / "usr/share" / name).mkdir(parents=True)
    (tree / "usr/share" / name / "file").write_text(name)
    out = folder / f"{name}_1.0_all.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", str(tree), str(out)], check=True, capture_output=True)
    return out


@pytest.mark.root
def test_installed_with_what_it_needs_and_exactly_that_removed(debian: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operation as it is planned, with dpkg and apt pointed at a root of the test's own."""
    root = debian / "root"
    (root / "var/lib/dpkg/updates").mkdir(parents=True)
    (root / "var/lib/dpkg/info").mkdir()
    (root / "var/lib/dpkg/status").touch()
    for folder in (
        "var/cache/apt/archives/partial",
        "var/lib/apt/lists/partial",
        "etc/apt/apt.conf.d",
        "etc/apt/preferences.d",
        "var/log/apt",
    ):
        (root / folder).mkdir(parents=True)
    archive = debian / "archive"
    archive.mkdir()
    debs = [package(archive, "envtune-needed"), package(archive, "envtune-wanted", "envtune-needed")]
    theirs = package(archive, "envtune-theirs")
    packages = []
    for deb in debs:
        control = subprocess.run(["dpkg-deb", "-f", str(deb)], check=True, capture_output=True, text=True).stdout
        hashed = hashlib.sha256(deb.read_bytes()).hexdigest()
        packages.append(f"{control.strip()}\nFilename: ./{deb.name}\nSize: {deb.stat().st_size}\nSHA256: {hashed}\n")
    (archive / "Packages").write_text("\n".join(packages))
    (root / "etc/apt/sources.list").write_text(f"deb [trusted=yes] file:{archive} ./\n")
    conf = debian / "apt.conf"
    conf.write_text(
        f'Dir "{root}";\nDir::State::status "{root}/var/lib/dpkg/status";\nAPT::Sandbox::User "root";\n'
        f'DPkg::Options {{ "--root={root}"; "--force-script-chrootless"; }};\nDPkg::Chroot-Directory "/";\n'
        'DPkg::Pre-Install-Pkgs {};\nAPT::Architecture "amd64";\n'
    )
    (debian / ".dpkg.cfg").write_text(f"log={debian}/dpkg.log\n")
    monkeypatch.setenv("HOME", str(debian))
    monkeypatch.setenv("APT_CONFIG", str(conf))
    monkeypatch.setenv("DPKG_ROOT", str(root))
    monkeypatch.setenv("DPKG_ADMINDIR", str(root / "var/lib/dpkg"))
    subprocess.run(["apt-get", "-q", "update"], check=True, capture_output=True)
    asked = simulate(LocalHost(), "apt-get", [("envtune-wanted",), ("envtune-absent",)])
    if asked.installs is None:
        pytest.skip("apt-get does not answer here")
    made = planned("envtune-wanted")
    run, results = apply_plan(executable([made._replace(id="C01")]), str(debian / "state"))
    assert results[0]["status"] == "done", results
    assert installed(root) == {"envtune-needed", "envtune-wanted"}
    subprocess.run(["dpkg", f"--root={root}", "-i", str(theirs)], check=True, capture_output=True)
    assert [row["status"] for row in undo_run(str(debian / "state"), run)] == ["undone"]
    assert installed(root) == {"envtune-theirs"}


def planned(name: str) -> Change:
    from envtune.resources.packages import install as package_install

    commands = package_install.COMMANDS["apt-get"]
    found: Optional[Change] = Change(
        "IMG006", "packages", "", "packages.install", name, "", "", "job",
        ({
            "op": "run",
            "argv": [*commands.install, name],
            "check": package_install._check("apt-get", (name,)),
            "census": {"argv": list(commands.inventory), "pattern": commands.pattern},
            "undo": {"argv": list(commands.remove)},
            "env": dict(commands.environ),
        },),
    )  # fmt: skip
    assert found is not None
    return found


def installed(root: Path) -> set[str]:
    argv = ["dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", r"-f=${db:Status-Status} ${Package}\n"]
    done = subprocess.run(argv, capture_output=True, text=True)
    return {line.split()[1] for line in done.stdout.splitlines() if line.startswith("installed ")}
