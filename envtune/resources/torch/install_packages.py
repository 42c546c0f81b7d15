"""Install, with pip, packages of the job's Python that CANN's compiler needs or that another package overwrote.

Each is installed alone (--no-deps), so that nothing else changes; its additional requirements are in PACKAGES. Sources:
the requirements and the lists of files of the packages' wheels on PyPI; vllm-project/vllm-ascend#7790 (triton and
triton-ascend share a directory: both are removed, then triton-ascend is installed again).
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Iterable, Mapping, NamedTuple, Optional, Sequence

from envtune.context import Context
from envtune.context.registry import action
from envtune.errors import Skipped
from envtune.messages import N_, Message, enumerated
from envtune.model import Change, Finding, FixOptions, VersionChange
from envtune.resources.python.distributions import Distribution, every
from envtune.resources.python.install import Installation, any_case, binary, replacements
from envtune.resources.python.site import main_entry
from envtune.resources.torch.requirements import absent, minimum, needs_numpy_1
from envtune.resources.torch.stack import release_numbers


class Package(NamedTuple):
    """What a wheel installs: names in the site directory, files below the prefix, the import that verifies it."""

    modules: tuple[str, ...]
    proof: str
    scripts: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()  # requirements that are installed with it
    keeps_version: bool = False  # whether the installed version is kept


PACKAGES: Mapping[str, Package] = {
    "attrs": Package(("attr", "attrs"), "attr.validators"),
    "cffi": Package(("cffi", "_cffi_backend.*"), "cffi", requires=("pycparser",)),
    "decorator": Package(("decorator", "decorator.py", "__pycache__/decorator.*"), "decorator"),
    "mpmath": Package(("mpmath",), "mpmath"),
    "numpy": Package(("numpy",), "numpy", ("bin/f2py*", "bin/numpy-config")),
    "protobuf": Package(("google",), "google.protobuf"),
    "psutil": Package(("psutil",), "psutil"),
    "pycparser": Package(("pycparser",), "pycparser"),
    "pyyaml": Package(("yaml", "_yaml"), "yaml"),
    "scipy": Package(("scipy",), "scipy"),
    "sympy": Package(
        ("sympy", "isympy.py", "__pycache__/isympy.*"),
        "sympy",
        ("bin/isympy", "share/man/man1/isympy.1"),
        ("mpmath==1.3.*",),
    ),
    "triton-ascend": Package(("triton",), "triton", ("bin/proton*",), keeps_version=True),
}


@action("torch.install_requirements")
def install_requirements(context: Context, findings: Sequence[Finding], *, options: FixOptions) -> Iterable[Change]:
    """Install the packages that CANN's operator compiler needs and that are missing or of an unfit version."""
    return replacements(context, findings, options, choose_requirements)


@action("torch.keep_package")
def keep_package(
    context: Context,
    findings: Sequence[Finding],
    *,
    wanted: Annotated[str, N_("Package to keep.")],
    other: Annotated[str, N_("Package to remove, which installs a module of the same name.")],
    options: FixOptions,
) -> Iterable[Change]:
    """Remove a package that overwrites another one, and install the other one again."""
    return replacements(context, findings, options, partial(choose_package, wanted=wanted, other=other))


def choose_requirements(context: Context, findings: Sequence[Finding], wheels: Optional[str]) -> Iterable[Installation]:
    """Yield an installation of all missing packages, and one for each that is replaced."""
    ids = tuple(dict.fromkeys(finding.id for finding in findings))
    missing = absent(context)
    replaced = [row for row in map(partial(_unfit, context), sorted(minimum(context))) if row is not None]
    if not missing and not replaced:
        raise Skipped(Message("no package is missing or of an unfit version any more"))
    if missing:
        yield _installation(context, main_entry(context), (), missing, ids, wheels)
    for row in replaced:
        yield _installation(context, row.entry, (row,), (row.name,), ids, wheels)


def _unfit(context: Context, name: str) -> Optional[Distribution]:
    """Return the installed package if it is too old, or a numpy that is too new."""
    rows = every(context, name)
    if not rows or not rows[0].version:
        return None
    version = release_numbers(rows[0].version)
    too_new = name == "numpy" and version >= (2,) and needs_numpy_1(context) is not None
    return rows[0] if too_new or version < release_numbers(minimum(context)[name]) else None


def choose_package(
    context: Context, findings: Sequence[Finding], wheels: Optional[str], wanted: str, other: str
) -> Iterable[Installation]:
    """Yield an installation for each directory that holds both packages."""
    ids = tuple(dict.fromkeys(finding.id for finding in findings))
    rows = (*every(context, wanted), *every(context, other))
    both = [
        entry
        for entry in dict.fromkeys(row.entry for row in rows)
        if {row.name for row in rows if row.entry == entry} == {wanted, other}
    ]
    if not both:
        raise Skipped(Message("no directory holds both {wanted} and {other} any more", wanted=wanted, other=other))
    for entry in both:
        here = tuple(row for row in rows if row.entry == entry)
        yield _installation(context, entry, here, (wanted,), ids, wheels)


def _installation(
    context: Context,
    entry: str,
    remove: tuple[Distribution, ...],
    names: Sequence[str],
    ids: tuple[str, ...],
    wheels: Optional[str],
) -> Installation:
    """Return the installation of packages, with their additional requirements that the job's Python lacks."""
    present = {row.name: row.version for row in remove}
    requirements = [_requirement(context, name, present) for name in names]
    for name in names:
        requirements += [one for one in PACKAGES[name].requires if not every(context, one.partition("==")[0])]
    all_names = tuple(dict.fromkeys(one.partition("==")[0] for one in requirements))
    packages = [PACKAGES[name] for name in all_names]
    after = enumerated(requirements).en
    before = {row.name: row.version for row in remove if row.name in names}
    return Installation(
        entry=entry,
        remove=remove,
        requirements=tuple(requirements),
        names=all_names,
        modules=tuple(dict.fromkeys(module for package in packages for module in package.modules)),
        after=after,
        findings=ids,
        subject=", ".join(names),
        prepare=tuple(binary(wheels, requirement) for requirement in requirements),
        wheels=tuple("{work}/wheels/" + any_case(name) + "-*.whl" for name in all_names),
        smoke="import " + ", ".join(package.proof for package in packages),
        versions=tuple(VersionChange(name, version, after) for name, version in before.items()),
        below_root=tuple(script for package in packages for script in package.scripts),
    )


def _requirement(context: Context, name: str, present: Mapping[str, str]) -> str:
    if PACKAGES[name].keeps_version and present.get(name):
        return f"{name}=={present[name]}"
    return "numpy==1.*" if name == "numpy" and needs_numpy_1(context) is not None else name
