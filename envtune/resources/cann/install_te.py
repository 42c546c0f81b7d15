"""Replace te, topi and hccl of the job's Python by what the active CANN ships, or remove them if it ships none.

The version says nothing (0.4.0 for many releases), so the wheels are installed with --force-reinstall and compared byte
by byte. They are not imported afterwards: that needs the environment of set_env.sh, not only the files.
"""

from __future__ import annotations

from typing import Iterable, Optional, Sequence

from envtune.collector.sources.cann import TE_PACKAGES
from envtune.collector.wheels import wheel_top_level
from envtune.context import Context
from envtune.context.registry import action
from envtune.errors import Skipped
from envtune.messages import Message, Text
from envtune.model import Change, Finding, FixOptions, VersionChange
from envtune.resources.cann.installs import active_install
from envtune.resources.cann.te import newest_wheel
from envtune.resources.cann.tree import Install, install_root
from envtune.resources.python import distributions as python_env
from envtune.resources.python.distributions import Distribution
from envtune.resources.python.install import Installation, replacements
from envtune.resources.python.site import main_entry


@action("cann.install_te", formerly="python.install", formerly_with={"what": "cann-wheels"})
def install_te(context: Context, findings: Sequence[Finding], *, options: FixOptions) -> Iterable[Change]:
    """Replace te, topi and hccl of the job's Python with those of the active CANN."""
    return replacements(context, findings, options, choose)


def choose(context: Context, findings: Sequence[Finding], wheels: Optional[str]) -> Iterable[Installation]:
    """Yield one installation per directory that has (or will have) one of the packages the findings name."""
    install = active_install(context)
    names = [name for name in TE_PACKAGES if any(f.subject == name for f in findings)]
    if not names:
        raise Skipped(Message("the findings name no package"))
    copies = {name: _copy(context, name) for name in TE_PACKAGES}
    entries = {name: _entry(context, copies, name) for name in names}
    ids = tuple(dict.fromkeys(f.id for f in findings))
    for entry in dict.fromkeys(entries.values()):
        here = [name for name in names if entries[name] == entry]
        yield _installation(context, install, entry, here, copies, ids)


def _copy(context: Context, name: str) -> Optional[Distribution]:
    """Return the copy that pip installed, outside any CANN tree; None if there is none."""
    rows = python_env.every(context, name)
    return next((row for row in rows if install_root(context.host, row.metadata) is None), None)


def _entry(context: Context, copies: dict[str, Optional[Distribution]], name: str) -> str:
    """Return the location of the old copy, else of its companions, else where pip installs."""
    for one in (name, *TE_PACKAGES):
        copy = copies[one]
        if copy is not None:
            return copy.entry
    return main_entry(context)


def _installation(
    context: Context,
    install: Install,
    entry: str,
    names: Sequence[str],
    copies: dict[str, Optional[Distribution]],
    ids: tuple[str, ...],
) -> Installation:
    wheels = {name: found for name in names for found in [newest_wheel(context.host, install, name)] if found}
    remove = tuple(copy for name in names for copy in [copies[name]] if copy is not None)
    gone = [name for name in names if name not in wheels]
    if not wheels and not remove:
        raise Skipped(Message("{real} ships no {names}", real=install.real, names=names[0]))
    words = [f"{name} of CANN {install.version or '?'} ({path})" for name, path in wheels.items()]
    words += [f"no {name} beside the one of {install.real}" for name in gone]
    modules = dict.fromkeys(names)
    for path in wheels.values():
        modules.update(dict.fromkeys(_top_level(context, path)))
    return Installation(
        entry=entry,
        remove=remove,
        requirements=tuple(wheels.values()),
        names=tuple(names),
        modules=tuple(modules),
        after="; ".join(words),
        findings=ids,
        subject=", ".join(names),
        wheels=tuple(wheels.values()),
        note=_note(bool(wheels)),
        versions=tuple(
            VersionChange(name, copy.version, path.rpartition("/")[2].split("-")[1])
            for name, path in wheels.items()
            for copy in [copies[name]]
            if copy is not None
        ),
    )


def _top_level(context: Context, wheel: str) -> Iterable[str]:
    """Return the top-level names a wheel installs; none if it cannot be read (in a recording, or too large)."""
    try:
        return wheel_top_level(context.host.read_bytes(wheel))
    except OSError:
        return ()  # the executor checks again, and refuses a wheel that contains more than it saved


def _note(installs: bool) -> Text:
    if installs:
        return Message(
            "compared with the wheel byte by byte afterwards; importing te needs the environment of set_env.sh"
        )
    return Message("its own version is used once PYTHONPATH names the install tree")
