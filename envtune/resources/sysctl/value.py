"""Kernel parameters: the value in the running kernel, and the one after the next boot."""

from __future__ import annotations

from typing import Annotated, Iterable

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import Missing
from envtune.messages import N_, Message
from envtune.model import Reading
from envtune.resources.files.value import MISSING, Value, missing, reading
from envtune.resources.sysctl.files import boot_settings, effective_setting, key_path


@probe("sysctl.value")
def value(
    context: Context, *, key: Annotated[str, N_("Kernel parameter, such as `vm.max_map_count`.")]
) -> Iterable[Reading]:
    """Current value of a kernel parameter; several numbers are separated by one blank."""
    path = f"/proc/sys/{key_path(key)}"
    try:
        text = context.host.read(path)
    except Missing:
        shown = Message("this kernel has no {key}", key=key)
        return [missing(key, path)._replace(shown=shown)]
    return [reading(key, " ".join(text.split()), path, text)]


@probe("sysctl.boot")
def at_boot(
    context: Context, *, key: Annotated[str, N_("Kernel parameter, such as `vm.max_map_count`.")]
) -> Iterable[Reading]:
    """Value of a kernel parameter set at boot by a sysctl.d file; `missing` if no file sets it."""
    found = effective_setting(boot_settings(context.host), key_path(key))
    if found is None or found.value is None:
        shown = Message("no file of sysctl.d sets it")
        return [Reading(key, Value(MISSING), missing(key, "/etc/sysctl.d").evidence, shown)]
    return [reading(key, " ".join(found.value.split()), found.path, f"{found.location}: {found.value}")]
