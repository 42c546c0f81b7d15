"""Install the torchvision and torchaudio releases that belong to the installed torch with pip.

Sources: pytorch.org, "Installing previous versions of PyTorch" (which releases belong together, and that CPU builds are
on a separate index); requirements.txt of vllm-project/vllm-ascend (2.10.0). On PyPI wheels for x86_64 are built for
CUDA and those for aarch64 are not. TORCH_DEVICE_BACKEND_AUTOLOAD=0 keeps torch from loading torch_npu, for which the
variables of CANN would have to be set (pytorch.org, tutorial "Out-of-tree extension autoloading").
"""

from __future__ import annotations

from typing import Iterable, Mapping, Optional, Sequence

from envtune.context import Context
from envtune.context.registry import action
from envtune.errors import Skipped
from envtune.messages import Message
from envtune.model import Change, Finding, FixOptions, VersionChange
from envtune.resources.python.distributions import Distribution, every
from envtune.resources.python.install import Installation, any_case, binary, replacements
from envtune.resources.torch.packages import COMPANIONS, required_torch, same_release
from envtune.resources.torch.stack import release, version_fact

# Release of torch for which there is a torch_npu -> those of COMPANIONS.
RELEASES: Mapping[str, tuple[str, str]] = {
    "1.11.0": ("0.12.0", "0.11.0"),
    "2.0.1": ("0.15.2", "2.0.2"),
    "2.1.0": ("0.16.0", "2.1.0"),
    "2.2.0": ("0.17.0", "2.2.0"),
    "2.3.1": ("0.18.1", "2.3.1"),
    "2.4.0": ("0.19.0", "2.4.0"),
    "2.5.1": ("0.20.1", "2.5.1"),
    "2.6.0": ("0.21.0", "2.6.0"),
    "2.7.1": ("0.22.1", "2.7.1"),
    "2.8.0": ("0.23.0", "2.8.0"),
    "2.9.0": ("0.24.0", "2.9.0"),
    "2.10.0": ("0.25.0", "2.10.0"),
}
MODULES: Mapping[str, tuple[str, ...]] = {"torchvision": ("torchvision",), "torchaudio": ("torchaudio", "torio")}


@action("torch.install_companions")
def install_companions(context: Context, findings: Sequence[Finding], *, options: FixOptions) -> Iterable[Change]:
    """Install the torchvision and torchaudio that belong to the installed torch; torch itself does not change."""
    return replacements(context, findings, options, choose)


def choose(context: Context, findings: Sequence[Finding], wheels: Optional[str]) -> Iterable[Installation]:
    """Yield an installation for each of them that requires another torch."""
    torch = version_fact(context, "torch")
    names = tuple(name for name in COMPANIONS if _differs(context, name, torch))
    if not names:
        raise Skipped(Message("every companion package requires the installed torch"))
    numbers = release(torch)
    if numbers not in RELEASES:
        known = ", ".join(RELEASES)
        raise Skipped(
            Message(
                "torch {torch} is not one of those whose companions envtune installs: {known}",
                torch=torch,
                known=known,
            )
        )
    for name in names:
        version = RELEASES[numbers][COMPANIONS.index(name)]
        yield _installation(context, every(context, name)[0], version, findings, wheels)


def _differs(context: Context, name: str, torch: str) -> bool:
    pin = required_torch(context, name)
    return pin is not None and not same_release(torch, pin)


def _installation(
    context: Context, row: Distribution, version: str, findings: Sequence[Finding], wheels: Optional[str]
) -> Installation:
    on_index = wheels is None and context.facts.value("arch") == "x86_64"
    requirement = f"{row.name}=={version}+cpu" if on_index else f"{row.name}=={version}"
    note = Message(
        "on PyPI {name} for x86_64 is built for CUDA: pip needs an index with {requirement}, or give --wheels",
        name=row.name,
        requirement=requirement,
    )
    return Installation(
        entry=row.entry,
        remove=(row,),
        requirements=(requirement,),
        names=(row.name,),
        modules=MODULES[row.name],
        after=requirement,
        findings=tuple(dict.fromkeys(finding.id for finding in findings)),
        subject=row.name,
        prepare=(binary(wheels, requirement),),
        wheels=("{work}/wheels/" + any_case(row.name) + "-*.whl",),
        environ={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        smoke=f"import {row.name}",
        note=note if on_index else None,
        versions=(VersionChange(row.name, row.version, version),),
    )
