"""Container, virtual machine or bare metal: by the signs that real runtimes and hypervisors leave."""

from __future__ import annotations

from typing import Any, Mapping

import pytest
from helpers.examples import example_context

from envtune.resources.system.virtualization import hypervisor_flag, mounted_by_runtime, names_container

ID = "3f4c1b7d9e2a5c6f8b0d1e2f3a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d"
OVERLAY = "742 690 0:58 / / rw,relatime master:231 - overlay overlay rw,lowerdir="
HOST_ROOT = "27 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw\n"
MARKED = {"/.dockerenv": ""}
FIRST = {"/proc/self/ns/pid": {"link": "pid:[4026531836]"}, "/proc/self/ns/cgroup": {"link": "cgroup:[4026531835]"}}


def fact(name: str, files: Mapping[str, Any], arch: str = "x86_64") -> tuple[Any, str]:
    no_names = {"/sys/class/dmi/id/sys_vendor": None, "/sys/class/dmi/id/product_name": None}
    context = example_context({"arch": arch, "files": {**no_names, **files}})
    return context.facts[name].value, context.facts[name].source


@pytest.mark.parametrize(
    "path",
    [
        f"/docker/{ID}",
        f"/system.slice/docker-{ID}.scope",
        f"/kubepods/burstable/pod8c7a9d10-6f0e-4f6e-9d3a-0a1b2c3d4e5f/{ID}",
        f"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod8c7a.slice/cri-containerd-{ID}.scope",
        f"/isulad/{ID}",
        f"/machine.slice/libpod-{ID}.scope/container",
        f"/kubepods.slice/kubepods-pod1.slice/crio-{ID}.scope",
        "/lxc.payload.train/init.scope",
        "/lxc/train",
    ],
)
def test_a_runtime_shows_in_the_cgroup_path(path: str) -> None:
    assert names_container(f"12:cpu,cpuacct:{path}\n0::/\n")
    assert names_container(f"0::{path}\n")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/init.scope",
        "/user.slice/user-0.slice/session-3.scope",
        "/system.slice/docker.service",
        "/system.slice/containerd.service",
        "/system.slice/docker-registry.service",
        "/user.slice/user-1000.slice/user@1000.service/app.slice/docker-desktop",
    ],
)
def test_a_host_that_runs_docker_is_no_container(path: str) -> None:
    assert not names_container(f"0::{path}\n")


@pytest.mark.parametrize(
    "line",
    [
        f"{OVERLAY}/var/lib/docker/overlay2/l/ABC,upperdir=/var/lib/docker/overlay2/x/diff",
        f"{OVERLAY}/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/81/fs",
        f"{OVERLAY}/var/lib/containers/storage/overlay/l/XYZ",
        f"760 742 8:2 /var/lib/docker/containers/{ID}/hostname /etc/hostname rw - ext4 /dev/sda2 rw",
        "761 742 8:2 /var/lib/kubelet/pods/8c7a/etc-hosts /etc/hosts rw - ext4 /dev/sda2 rw",
        f"762 742 253:0 /var/lib/isulad/engines/lcr/{ID}/resolv.conf /etc/resolv.conf rw - xfs /dev/mapper/root rw",
    ],
)
def test_a_private_cgroup_namespace_still_shows_in_the_mounts(line: str) -> None:
    assert mounted_by_runtime(f"{line}\n")
    assert fact("container", {"/proc/self/cgroup": "0::/\n", "/proc/self/mountinfo": f"{line}\n"}) == (
        "true",
        "/proc/self/mountinfo",
    )


def test_the_mounts_of_a_container_on_its_host_say_nothing() -> None:
    merged = f"900 27 0:60 / /var/lib/docker/overlay2/{ID}/merged rw - overlay overlay rw,lowerdir=/var/lib/docker/x\n"
    live_medium = "27 1 0:20 / / rw - overlay overlay rw,lowerdir=/media/root-ro,upperdir=/media/root-rw\n"
    assert not mounted_by_runtime(HOST_ROOT + merged)
    assert not mounted_by_runtime(live_medium)
    assert not mounted_by_runtime("short line\n\n- - -\n")


def test_marker_files() -> None:
    assert fact("container", MARKED) == ("true", "/.dockerenv")
    assert fact("container", {"/run/systemd/container": "lxc\n"}) == ("true", "/run/systemd/container")
    assert fact("container", {})[0] == "false"


def test_an_image_booted_as_a_machine_keeps_the_marker_and_is_no_container() -> None:
    assert fact("container", {**MARKED, **FIRST}) == ("false", "/proc/1/cgroup")
    shared_pids = {**FIRST, "/proc/self/ns/cgroup": {"link": "cgroup:[4026532711]"}}
    assert fact("container", {**MARKED, **shared_pids}) == ("true", "/.dockerenv")


@pytest.mark.parametrize(
    ("files", "arch", "expected"),
    [
        ({"/sys/class/dmi/id/product_name": "KVM Virtual Machine\n"}, "aarch64", "true"),
        ({"/sys/class/dmi/id/sys_vendor": "OpenStack Foundation\n"}, "aarch64", "true"),
        ({"/sys/class/dmi/id/sys_vendor": "QEMU\n"}, "x86_64", "true"),
        ({"/sys/class/dmi/id/sys_vendor": "Huawei Cloud\n"}, "aarch64", "true"),
        ({"/sys/class/dmi/id/sys_vendor": "Huawei\n"}, "aarch64", "false"),
        ({"/sys/class/dmi/id/product_name": "Atlas 800 (Model 9000)\n"}, "aarch64", "false"),
        (
            {"/sys/class/dmi/id/sys_vendor": "Amazon EC2\n", "/sys/class/dmi/id/product_name": "m5.metal\n"},
            "x86_64",
            "false",
        ),
        ({"/proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu vme hypervisor lahf_lm\n"}, "x86_64", "true"),
        ({"/proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu vme lahf_lm\n"}, "x86_64", "false"),
        ({"/proc/device-tree/compatible": "linux,dummy-virt\0"}, "aarch64", "true"),
        ({"/proc/device-tree/hypervisor/compatible": "linux,kvm\0"}, "aarch64", "true"),
        ({"/sys/hypervisor/type": "xen\n"}, "aarch64", "true"),
        ({"/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver": "cppc_cpufreq\n"}, "aarch64", "false"),
        ({}, "aarch64", None),
        ({"/proc/cpuinfo": "\x7fELF\x01garbage\n"}, "aarch64", None),
    ],
)
def test_virtual_machine(files: Mapping[str, Any], arch: str, expected: Any) -> None:
    assert fact("vm", files, arch)[0] == expected


def test_the_flag_is_a_word_of_its_own() -> None:
    assert hypervisor_flag("flags : fpu nohypervisor\n") is False
    assert hypervisor_flag("Features\t: fp asimd evtstrm\n") is None
    assert hypervisor_flag("") is None
