"""Thirty checks of the same kind as ours, written for pytest-testinfra: what the neighbor in check_cost.py runs.

They read what a preflight reads (files of the kernel, settings, packages, sockets, processes, interpreter), and judge
little: what matters is the cost of reading.
"""

from __future__ import annotations

from typing import Any

import pytest

KERNEL_FILES = (
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/cmdline",
    "/proc/self/mountinfo",
    "/proc/net/tcp",
    "/sys/devices/system/cpu/online",
    "/etc/os-release",
    "/etc/hosts",
    "/etc/passwd",
    "/etc/environment",
)
SETTINGS = (
    "net.ipv4.ip_local_port_range",
    "vm.swappiness",
    "vm.overcommit_memory",
    "kernel.pid_max",
    "fs.file-max",
)
PACKAGES = ("coreutils", "libc6", "bash", "zlib1g", "python3")
COMMANDS = ("uname -m", "uname -r", "id -u", "nproc", "hostname")


@pytest.mark.parametrize("path", KERNEL_FILES)
def test_file(host: Any, path: str) -> None:
    assert host.file(path).exists


@pytest.mark.parametrize("name", SETTINGS)
def test_setting(host: Any, name: str) -> None:
    assert host.sysctl(name) is not None


@pytest.mark.parametrize("name", PACKAGES)
def test_package(host: Any, name: str) -> None:
    assert host.package(name).is_installed in (True, False)


@pytest.mark.parametrize("line", COMMANDS)
def test_command(host: Any, line: str) -> None:
    assert host.run(line).rc == 0


def test_environment(host: Any) -> None:
    assert "PATH" in host.environment()


def test_system(host: Any) -> None:
    assert host.system_info.type == "linux"


def test_processes(host: Any) -> None:
    assert host.process.filter(pid="1")


def test_user(host: Any) -> None:
    assert host.user("root").uid == 0


def test_disk(host: Any) -> None:
    assert host.run("df -P /tmp").rc == 0
