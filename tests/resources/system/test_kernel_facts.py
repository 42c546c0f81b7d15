"""Facts of the kernel's command line and of hyper-threads, on real command lines."""

from __future__ import annotations

from typing import Optional

import pytest
from helpers.examples import shared_host

from envtune.context.open import open_context, recorded_options
from envtune.snapshot.host import SnapshotHost

SMT = "/sys/devices/system/cpu/smt/control"
CENTOS = "BOOT_IMAGE=/vmlinuz-3.10.0-957.el7.x86_64 root=/dev/mapper/centos-root ro crashkernel=auto rhgb quiet"
# kernel-parameters.txt: iommu.passthrough and arm-smmu on ARM64, intel_iommu, amd_iommu and iommu= on x86.
LINES = [
    (CENTOS, "default", "default"),
    (f"{CENTOS} intel_iommu=on iommu=pt mitigations=off", "intel_iommu=on iommu=pt", "mitigations=off"),
    (f"{CENTOS} amd_iommu=off nopti nospectre_v2", "amd_iommu=off", "nopti nospectre_v2"),
    ("root=/dev/sda2 iommu.passthrough=1 iommu.strict=0", "iommu.passthrough=1 iommu.strict=0", "default"),
    ("root=/dev/sda2 arm-smmu.disable_bypass=n kpti=off", "arm-smmu.disable_bypass=n", "kpti=off"),
    ("root=/dev/sda2 arm_smmu_v3.disable_bypass=0 mds=full,nosmt", "arm_smmu_v3.disable_bypass=0", "mds=full,nosmt"),
    ("root=LABEL=iommu init=/opt/mitigations=off.sh", "default", "default"),
    ("", "default", "default"),
]


def facts(files: dict[str, str]) -> dict[str, Optional[str]]:
    data = dict(shared_host("bare"))
    data["files"] = {**data["files"], **files}
    context = open_context(SnapshotHost(data), recorded_options({}))
    return {name: context.facts[name].value for name in ("iommu", "mitigations", "smt")}


@pytest.mark.parametrize(("line", "iommu", "mitigations"), LINES)
def test_parameters_of_the_command_line(line: str, iommu: str, mitigations: str) -> None:
    found = facts({"/proc/cmdline": line + "\n"})
    assert (found["iommu"], found["mitigations"]) == (iommu, mitigations)


# Documentation/ABI/testing/sysfs-devices-system-cpu: what smt/control holds.
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("off", "off"),
        ("forceoff", "off"),
        ("notsupported", "none"),
        ("notimplemented", "none"),
        ("2", "2"),
    ],
)
def test_hyper_threads(text: str, value: str) -> None:
    assert facts({SMT: text + "\n"})["smt"] == value


def test_a_kernel_that_does_not_say_so() -> None:
    assert facts({}) == {"iommu": None, "mitigations": None, "smt": None}
