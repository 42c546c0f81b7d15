"""The recipes of docs/recipes run as they are, each where its component is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterator, Mapping

import pytest
from helpers.examples import ROOT
from helpers.slurm_cluster import Cluster, cluster, wait

RECIPES = ROOT / "docs" / "recipes"
SITE = """\
id: SITE101
name: marked-as-sick
title: The host is marked as sick
severity: high
probe: {{file.kind: {{path: {marker}}}}}
expect: {{eq: missing}}
"""


@pytest.mark.parametrize("path", sorted(RECIPES.rglob("*.sh")), ids=lambda path: path.name)
def test_a_script_is_of_a_shell_and_can_be_started(path: Path) -> None:
    assert os.access(path, os.X_OK)
    assert path.read_text("utf-8").startswith("#!/bin/sh\n")
    subprocess.run(["sh", "-n", str(path)], check=True, timeout=60)


# ---------------------------------------------------------------------- programs


def needs(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with bin/envtune, which reads a site's check: it fails while `sick` exists."""
    site = tmp_path / "site" / "checks" / "site"
    site.mkdir(parents=True)
    (site / "SITE101-marked-as-sick.yaml").write_text(SITE.format(marker=tmp_path / "sick"))
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "envtune"
    places = f'PYTHONPATH="{ROOT}" XDG_CACHE_HOME="{tmp_path}/cache" ENVTUNE_STATE="{tmp_path}/state"'
    start = f'{places} exec "{sys.executable}" -m envtune "$@"'
    catalogue = f'case $1 in check | hook) set -- "$@" --catalog "{tmp_path}/site" ;; esac'
    program.write_text(f"#!/bin/sh\n{catalogue}\n{start}\n")
    program.chmod(0o755)
    return tmp_path


def environment(folder: Path, **more: str) -> Mapping[str, str]:
    home = str(folder / "home")
    return {"PATH": f"{folder}/bin:{os.environ['PATH']}", "HOME": home, "LC_ALL": "C.UTF-8", **more}


# ---------------------------------------------------------------------- MPI


@pytest.mark.slow
def test_mpirun_checks_once_and_diagnoses(folder: Path) -> None:
    needs("mpirun")
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    environ = environment(folder, RANKS="2", OMPI_MCA_rmaps_base_oversubscribe="1", **allowed)
    words = (
        'echo "rank $OMPI_COMM_WORLD_RANK"; echo "ImportError: libhccl.so: cannot open shared object file" >&2; false'
    )
    argv = [str(RECIPES / "mpirun.sh"), "sh", "-c", words]
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert sorted(set(done.stdout.split("\n")) & {"rank 0", "rank 1"})
    assert "F06" in done.stdout + done.stderr


# ---------------------------------------------------------------------- Slurm


@pytest.fixture
def slurm(folder: Path) -> Iterator[Cluster]:
    """A cluster of one host on the loopback interface, with the recipes as prolog and health check."""
    needs("slurmctld", "slurmd", "munged", "srun")
    for name in ("prolog.sh", "health.sh"):
        text = (RECIPES / "slurm" / name).read_text("utf-8")
        path = f"PATH={folder}/bin:/usr/local/sbin"
        lines = text.replace("PATH=/usr/local/sbin", path)
        lines = lines.replace("export PATH\n", f"export PATH SLURM_CONF={folder}/slurm.conf\n")
        assert lines.count(path) == 1
        (folder / name).write_text(lines)
        (folder / name).chmod(0o755)
    example = (RECIPES / "slurm" / "slurm.conf.example").read_text("utf-8")
    lines = [line for line in example.splitlines() if line and not line.startswith("#")]
    settings = "\n".join(lines).replace("/etc/slurm/envtune-", f"{folder}/").replace("Interval=600", "Interval=2")
    with cluster(folder, settings.replace(",CYCLE", ""), environment(folder)) as started:
        yield started


@pytest.mark.root
@pytest.mark.slow
def test_slurm_gives_a_sick_host_no_job(slurm: Cluster, folder: Path) -> None:
    assert slurm.command(str(RECIPES / "srun.sh"), "echo", "ran").stdout == "ran\n"
    (folder / "sick").touch()
    slurm.wait_for("drain")
    assert "envtune: SITE101" in slurm.state()
    (folder / "sick").unlink()
    slurm.wait_for("idle")
    slurm.command("scontrol", "update", f"nodename={slurm.node}", "state=drain", "reason=disk")
    time.sleep(5)  # two rounds of the health check
    assert slurm.state().endswith("disk")


@pytest.mark.root
@pytest.mark.slow
def test_slurm_drains_a_host_in_the_prolog(slurm: Cluster, folder: Path) -> None:
    """Without the health check, which would be first: the verdict is a kept one."""
    (folder / "health.sh").write_text("#!/bin/sh\nexit 0\n")
    (folder / "sick").touch()
    subprocess.run(
        [str(folder / "bin" / "envtune"), "hook", "slurm-health", "--scontrol", "/nowhere/scontrol"],
        env=environment(folder),
        timeout=120,
        check=True,
    )
    assert slurm.state().startswith("idle")
    asked = slurm.command("sbatch", "--wrap", "echo ran", "-o", str(folder / "output.txt"))
    assert asked.returncode == 0, asked.stderr
    slurm.wait_for("drain")
    assert "envtune: SITE101" in slurm.state()
    queue = ("squeue", "-h", "-o", "%T %r")
    wait(lambda: "held" in slurm.command(*queue).stdout, lambda: slurm.command(*queue).stdout)
    assert slurm.command(*queue).stdout.startswith("PENDING")
    assert not (folder / "output.txt").exists()
    slurm.command("scancel", "--user", "root")


# ---------------------------------------------------------------------- Ansible


@pytest.mark.slow
def test_ansible_records_and_compares(folder: Path) -> None:
    play = Path(sys.executable).parent / "ansible-playbook"
    if not play.exists():
        pytest.skip("ansible-core is not installed")
    (folder / "inventory").write_text("node1 ansible_connection=local\nnode2 ansible_connection=local\n")
    argv = [str(play), "-i", str(folder / "inventory"), str(RECIPES / "ansible" / "check.yml")]
    argv += [
        "-e",
        f"hosts_directory={folder}/hosts",
        "-e",
        f"ansible_python_interpreter={sys.executable}",
        "-e",
        "fail_on=none",
    ]
    environ = environment(folder, ANSIBLE_HOME=str(folder / "ansible"), ANSIBLE_LOCALHOST_WARNING="false")
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=300, check=False)
    assert sorted(path.name for path in (folder / "hosts").iterdir()) == ["node1.tar.gz", "node2.tar.gz"], done.stdout
    assert "2 hosts" in done.stdout
    assert done.returncode == 0, done.stdout


# ---------------------------------------------------------------------- systemd


@pytest.mark.slow
def test_systemd_reads_the_units(folder: Path) -> None:
    needs("systemd-analyze")
    units = folder / "units"
    units.mkdir()
    for path in (RECIPES / "systemd").iterdir():
        text = path.read_text("utf-8").replace("/usr/local/bin/envtune", str(folder / "bin" / "envtune"))
        (units / path.name).write_text(text)
    argv = ["systemd-analyze", "verify", *map(str, sorted(units.iterdir()))]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    complaints = [line for line in done.stderr.splitlines() if "envtune-check" in line]
    assert (complaints, done.returncode) == ([], 0), done.stderr
