"""CPU frequency policies: /sys/devices/system/cpu/cpufreq, every policy and not only cpu0's.

A policy is a set of CPUs that share one frequency; the kernel's own documentation of the files is
https://docs.kernel.org/admin-guide/pm/cpufreq.html.
"""

from __future__ import annotations

import posixpath
import re
from functools import partial
from typing import Iterable, Mapping, NamedTuple, Optional

from envtune import expect
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, NotRecorded, host_error_text
from envtune.host import Host, exists
from envtune.messages import Literal, Message, Text, clauses, enumerated
from envtune.model import Command, Evidence, Expectation, Reading
from envtune.ranges import cpu_numbers, join_subjects, whole_number

ROOT = "/sys/devices/system/cpu"
# Porting guide 003:1359-1387, table 1: the six modes it lists.
GOVERNORS = ("performance", "powersave", "userspace", "ondemand", "conservative", "schedutil")
_DIGITS = re.compile(r"[0-9]+")
# Drivers that implement their own algorithm under the names `performance` and `powersave`:
# https://docs.kernel.org/admin-guide/pm/intel_pstate.html and amd-pstate.html, active mode.
SELF_SCALING = ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp")


class Policy(NamedTuple):
    """The CPUs that share one frequency, as `cpu4-7`, and the folder of their files."""

    cpus: str
    folder: str

    def file(self, name: str) -> str:
        """Return the path of one of the policy's files."""
        return f"{self.folder}/{name}"


@probe("cpu.governors", formerly="cpufreq.governors")
def governors(context: Context) -> Iterable[Reading]:
    """Governor in use, for each group of CPUs with the same governor.

    Source: porting guide 003:1355, which reads cpu0 only.
    """
    return context.cached(_governors)


def _governors(context: Context) -> tuple[Reading, ...]:
    driver = context.cached(driver_name)
    return tuple(_governor_reading(context.host, policy, driver) for policy in context.cached(policies))


def driver_name(context: Context) -> str:
    """Return the scaling driver, of which the kernel has one for all policies; empty if it cannot be read."""
    try:
        return context.host.read(context.cached(policies)[0].file("scaling_driver")).strip()
    except HostError:
        return ""


def policies(context: Context) -> tuple[Policy, ...]:
    """Return every policy by CPU number; kernels without policy folders have one per CPU."""
    host = context.host
    file = "scaling_governor"
    paths = host.glob(f"{ROOT}/cpufreq/policy[0-9]*/{file}") or host.glob(f"{ROOT}/cpu[0-9]*/cpufreq/{file}")
    if not paths:
        reason = Message("this kernel offers no CPU frequency control (no driver, or disabled in the BIOS)")
        raise NotApplicable(reason, f"{ROOT}/cpufreq")
    folders = sorted((_number(folder), folder) for folder in map(posixpath.dirname, paths))
    ends = (folders[0][1], folders[-1][1])  # a kernel has a file for all its policies, or for none
    lists = ("affected_cpus", "related_cpus")
    names = tuple(name for name in lists if any(_is_there(host, f"{folder}/{name}") for folder in ends))
    return tuple(Policy(_cpus(host, folder, number, names), folder) for number, folder in folders)


def _is_there(host: Host, path: str) -> bool:
    """Return whether this kernel has a file for its policies; an unreadable one counts as existing."""
    try:
        return exists(host, path)
    except HostError as error:
        return not isinstance(error, NotRecorded)


def _number(path: str) -> int:
    digits = _DIGITS.search(path, len(ROOT))
    return 0 if digits is None else whole_number(digits[0]) or 0


def _cpus(host: Host, folder: str, number: int, names: Iterable[str]) -> str:
    """Return the CPUs of a policy; only the number of the policy if the kernel does not list them."""
    for name in names:
        try:
            text = host.read(f"{folder}/{name}")
        except HostError:
            continue
        cpus = cpu_numbers(text)
        if cpus:
            return f"cpu{cpus[0]}" if len(cpus) == 1 else join_subjects(f"cpu{cpu}" for cpu in cpus)
    return f"cpu{number}"


def _governor_reading(host: Host, policy: Policy, driver: str) -> Reading:
    cpus, path = policy.cpus, policy.file("scaling_governor")
    try:
        text = host.read(path)
    except HostError as error:
        return Reading(cpus, None, Evidence(path, str(error)), reason=host_error_text(error))
    name = text.strip()
    if not name or len(name.split()) > 1:
        reason = Message("{path} does not name one governor", path=path)
        return Reading(cpus, None, Evidence(path, text), reason=reason)
    return Reading(cpus, name, Evidence(path, text), shown=_remark(name, driver))


def _remark(name: str, driver: str) -> Optional[Text]:
    """Return the name with its meaning here; None if the name is sufficient."""
    if name not in GOVERNORS:
        return Message("{name} (a governor envtune does not know)", name=name)
    if name == "powersave" and driver in SELF_SCALING:
        return Message("{name} (under {driver}: scales with the load)", name=name, driver=driver)
    return None


@probe("cpu.governor_agreement", formerly="cpufreq.agreement")
def agreement(context: Context) -> Iterable[Reading]:
    """Number of different governors in use; 1 if all CPUs use the same.

    Source: inferred from porting guide 003:1355, whose single read cannot show it.
    """
    readings = context.cached(_governors)
    groups: dict[str, list[Reading]] = {}
    for reading in readings:
        if reading.reason is None:
            groups.setdefault(str(reading.value), []).append(reading)
    if groups:
        yield _agreement(groups)
    yield from (reading for reading in readings if reading.reason is not None)


def _agreement(groups: Mapping[str, list[Reading]]) -> Reading:
    usual = "performance" if "performance" in groups else max(groups, key=lambda name: len(groups[name]))
    different = [reading for name, group in groups.items() if name != usual for reading in group]
    cpus = {name: join_subjects([reading.subject for reading in group]) for name, group in groups.items()}
    shown = clauses(
        Message("{subject}: {found}", subject=name, found=enumerated(cpus[name].split(", ")))
        for name in sorted(cpus, key=lambda name: (name == usual, name))  # those that differ first
    )
    evidence = (different or groups[usual])[0].evidence
    subject = join_subjects([reading.subject for reading in different]) or cpus[usual]
    return Reading(subject, len(groups), evidence, shown, Message("one governor on all CPUs"))


@probe("cpu.available_governors", formerly="cpufreq.available_governors")
def available_governors(context: Context) -> Iterable[Reading]:
    """Available governors of each CPU frequency policy.

    Source: porting guide 003:1359-1387.
    """
    for policy in context.cached(policies):
        yield _available_reading(context.host, policy, context.cached(driver_name))


def _available_reading(host: Host, policy: Policy, driver: str) -> Reading:
    cpus, path = policy.cpus, policy.file("scaling_available_governors")
    try:
        text = host.read(path)
    except HostError as error:
        return Reading(cpus, None, Evidence(path, str(error)), reason=host_error_text(error))
    names = tuple(text.split())
    listed = " ".join(names) or "-"
    shown = Message("{names} (driver {driver})", names=listed, driver=driver) if driver else Literal(listed)
    return Reading(cpus, names, Evidence(path, text), shown)


@probe("cpu.frequency_ceiling", formerly="cpufreq.ceiling", unit="%")
def ceiling(context: Context) -> Iterable[Reading]:
    """Frequency limit of each CPU frequency policy, in percent of the CPUs' maximum frequency, rounded down.

    With intel_pstate also its own limits: `max_perf_pct` in percent, turbo as 100 (on) or 0 (off).
    Source: inferred from porting guide 003:1327, 1409; files as in the kernel's cpufreq and intel_pstate documents.
    """
    for policy in context.cached(policies):
        yield _ceiling_reading(context.host, policy)
    for name in ("max_perf_pct", "no_turbo"):
        reading = _pstate_limit(context.host, name)
        if reading is not None:
            yield reading


def _ceiling_reading(host: Host, policy: Policy) -> Reading:
    cpus, allowed, possible = policy.cpus, policy.file("scaling_max_freq"), policy.file("cpuinfo_max_freq")
    try:
        texts = host.read(allowed), host.read(possible)
    except HostError as error:
        return Reading(cpus, None, Evidence(error.path, str(error)), reason=host_error_text(error))
    limit, top = whole_number(texts[0]), whole_number(texts[1])
    if limit is None or not top:
        reason = Message("{allowed} and cpuinfo_max_freq are not two frequencies", allowed=allowed)
        return Reading(cpus, None, Evidence(allowed, " ".join(texts)), reason=reason)
    shown = Message("{limit} of {top} kHz", limit=limit, top=top)
    evidence = Evidence(allowed, f"scaling_max_freq {limit}\ncpuinfo_max_freq {top}")
    repair = (Command("fix", f"echo {top} | sudo tee {allowed}"),)
    return Reading(cpus, limit * 100 // top, evidence, shown, partial(_ceiling_words, top), commands=repair)


def _ceiling_words(top: int, expectation: Expectation) -> Text:
    """Express an expected percentage as a frequency of this CPU."""
    least = expect.only(expectation, "ge")
    if least is None:
        return expect.describe(expectation, expect.in_unit("%"))
    if least == 100:
        return Message("{top} kHz", top=top)
    least_of_all = -int(-least * top // 100)
    return Message("{least} kHz or more ({percent}% of {top} kHz)", least=least_of_all, percent=least, top=top)


def _pstate_limit(host: Host, name: str) -> Optional[Reading]:
    path = f"{ROOT}/intel_pstate/{name}"
    try:
        text = host.read(path)
    except (Missing, NotRecorded):
        return None  # another driver
    except HostError as error:
        return Reading(name, None, Evidence(path, str(error)), reason=host_error_text(error))
    number = whole_number(text)
    if number is None:
        return Reading(name, None, Evidence(path, text), reason=Message("{path} is not a number", path=path))
    value, expected = (0 if number else 100, "0") if name == "no_turbo" else (number, "100")
    repair = (Command("fix", f"echo {expected} | sudo tee {path}"),)
    return Reading(name, value, Evidence(path, text), Literal(str(number)), Literal(expected), commands=repair)
