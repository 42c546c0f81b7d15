"""Packages of the distribution: the right names, the answers of apt, taken back exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

import pytest
from helpers.package_sandbox import Repository, call, in_package_sandbox

from envtune.collector.sources.images import PILLOW_BUILD_DEBIAN
from envtune.executor.recover import undo_run
from envtune.executor.run import apply_plan
from envtune.fix.plan import executable
from envtune.host import LocalHost
from envtune.model import Change
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


# ---------------------------------------------------------------------- parsers


def test_candidates_and_simulation_in_odd_shapes() -> None:
    assert candidates(POLICY) == {"libjpeg-dev", "zlib1g-dev"}
    assert candidates("") == candidates("N: Unable to locate package x\n") == candidates("\x00\xff") == frozenset()
    assert parse_simulation(SIMULATED) == (("libjpeg62-turbo-dev", "libjpeg-dev"), ("libjpeg62-turbo",), ())
    assert parse_simulation("") == ((), (), ())
    assert parse_simulation("Remv a [1]\nPurg b [2]\n")[2] == ("a", "b")


# ---------------------------------------------------------------------- for real


@pytest.mark.root
def test_installed_with_what_it_needs_and_exactly_that_removed(tmp_path: Path) -> None:
    """The operation as it is planned, carried out by apt and dpkg themselves."""
    state = str(tmp_path / "state")

    def work() -> None:
        offered = Repository(tmp_path / "debs")
        offered.add("envtune-needed", "1.0", {})
        offered.add("envtune-wanted", "1.0", {}, Depends="envtune-needed")
        theirs = offered.add("envtune-theirs", "1.0", {})
        offered.publish()
        before = installed()
        asked = simulate(LocalHost(), "apt-get", [("envtune-wanted",), ("envtune-absent",)])
        assert asked.installs is not None and {*asked.installs} == {"envtune-needed", "envtune-wanted"}
        run, results = apply_plan(executable([planned("envtune-wanted")._replace(id="C01")]), state)
        assert results[0]["status"] == "done", results
        assert installed() - before == {"envtune-needed", "envtune-wanted"}
        call("dpkg", "-i", str(theirs))
        assert [row["status"] for row in undo_run(state, run)] == ["undone"]
        assert installed() ^ before == {"envtune-theirs"}

    in_package_sandbox(tmp_path, work)


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


def installed() -> set[str]:
    lines = call("dpkg-query", "-W", r"-f=${db:Status-Status} ${Package}\n").splitlines()
    return {line.split()[1] for line in lines if line.startswith("installed ")}
