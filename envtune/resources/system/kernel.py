"""The kernel's command line and its modules. Source: kernel, Documentation/admin-guide/kernel-parameters.txt."""

from __future__ import annotations

from typing import Annotated, Iterable

from envtune.context import Context
from envtune.context.registry import fact, probe
from envtune.errors import Missing, Undetermined
from envtune.host import Host, exists
from envtune.messages import N_, Message
from envtune.model import Fact, Reading
from envtune.resources.files.value import missing, reading

CMDLINE = "/proc/cmdline"
MODULES = "/proc/modules"


# Parameters about address translation for devices, and about mitigations of CPU vulnerabilities.
_IOMMU = ("iommu", "intel_iommu", "amd_iommu")
_OF_IOMMU = ("iommu.", "arm-smmu.", "arm_smmu.", "arm-smmu-v3.", "arm_smmu_v3.")
_MITIGATIONS = (
    *("mitigations", "nopti", "pti", "kpti", "spec_store_bypass_disable", "ssbd", "l1tf", "mds", "mmio_stale_data"),
    *("tsx_async_abort", "srbds", "retbleed", "gather_data_sampling", "reg_file_data_sampling", "nobp"),
    "spec_rstack_overflow",
)
_OF_MITIGATIONS = ("nospectre_", "spectre_")


@fact("iommu")
def fact_iommu(context: Context) -> Fact:
    """IOMMU parameters on the kernel command line, such as `iommu.passthrough=1`; `default` if none is set."""
    return _given("iommu", context.host, _IOMMU, _OF_IOMMU)


@fact("mitigations")
def fact_mitigations(context: Context) -> Fact:
    """CPU vulnerability mitigations set on the kernel command line; `default` if none is set."""
    return _given("mitigations", context.host, _MITIGATIONS, _OF_MITIGATIONS)


def _given(name: str, host: Host, names: tuple[str, ...], beginnings: tuple[str, ...]) -> Fact:
    """Return the parameters with one of these names, or with one of these beginnings."""
    words = host.read(CMDLINE).split()
    found = (word for word in words if word.startswith(beginnings) or word.partition("=")[0] in names)
    return Fact(name, " ".join(found) or "default", CMDLINE)


@probe("kernel.parameter")
def parameter(
    context: Context, *, name: Annotated[str, N_("Parameter, such as `iommu.passthrough`.")]
) -> Iterable[Reading]:
    """Value of a parameter on the kernel command line; `set` if it has no value, `missing` if it is absent."""
    text = context.host.read(CMDLINE)
    words = (word.partition("=") for word in text.split())
    values = [value if mark else "set" for key, mark, value in words if key.replace("-", "_") == name.replace("-", "_")]
    return [reading(name, value, CMDLINE, text.strip()) for value in values] or [missing(name, CMDLINE)]


@probe("kernel.module")
def module(context: Context, *, name: Annotated[str, N_("Module, such as `ip_vs`.")]) -> Iterable[Reading]:
    """State of a kernel module: `loaded`, `builtin` or `missing`."""
    host, name = context.host, name.replace("-", "_")
    for line in host.read(MODULES).splitlines():
        if line.split()[:1] == [name]:
            return [reading(name, "loaded", MODULES, line)]
    if exists(host, f"/sys/module/{name}"):
        return [reading(name, "builtin", f"/sys/module/{name}")]
    path = f"/lib/modules/{host.uname['release']}/modules.builtin"
    return [reading(name, "builtin", path) if name in _builtin(host, path) else missing(name, MODULES)]


def _builtin(host: Host, path: str) -> frozenset[str]:
    """Return the modules that are compiled in; raises Undetermined if a recording keeps only a part of the list."""
    try:
        lines = host.read(path).split()
    except Missing:
        return frozenset()
    if not host.live and len(lines) > 1 and all("/netfilter/" in line for line in lines[1:]):
        raise Undetermined(Message("the recording contains only a part of {path}", path=path), path)
    return frozenset(line.rpartition("/")[2].partition(".ko")[0].replace("-", "_") for line in lines)
