"""The names of subjects as reports show them: devices, variables and paths unchanged, envtune's words translated.

In data a subject is one word, the same in every language; here it becomes text for people.
"""

from __future__ import annotations

import re
from typing import Mapping

from envtune.messages import N_, Literal, Message, Text, enumerated, in_context
from envtune.records import expression

# Subjects that are not names: they add nothing to the check's title.
_PLAIN: Mapping[str, Text] = {
    "BIOS": Literal("BIOS"),
    "CANN": Literal("CANN"),
    "affinity library": Message("affinity library"),
    "arch": in_context("subject", "architecture"),
    "boot": in_context("subject", "boot"),
    "clock": in_context("subject", "clock"),
    "cpu": Literal("CPU"),
    "environment": in_context("subject", "environment"),
    "host": in_context("subject", "host"),
    "job": in_context("subject", "job"),
    "logs": in_context("subject", "logs"),
    "memory": in_context("subject", "memory"),
    "npu": Literal("NPU"),
    "nvme": Literal("NVMe"),
    "optimisers": in_context("subject", "optimizers"),
    "os": in_context("subject", "operating system"),
    "packages": in_context("subject", "packages"),
    "server": in_context("subject", "server"),
    "temporary files": in_context("subject", "temporary files"),
    "user": in_context("subject", "user"),
    "workers": in_context("subject", "workers"),
}
_NAMED: Mapping[str, Text] = {
    "driver": in_context("subject", "driver"),
    "driver after the next boot": in_context("subject", "driver after a reboot"),
    "firmware": in_context("subject", "firmware"),
    "other variables": in_context("subject", "other variables"),
}
_NUMBERED = (
    (expression(r"pci ([0-9a-f:.]+)", re.I), N_("PCI {value}")),
    (expression(r"port (\d+(?:-\d+)?)"), N_("port {value}")),
    (expression(r"process (\d+)"), N_("process {value}")),
)


_FACTS: Mapping[str, Text] = {
    **{name: _PLAIN[name] for name in ("arch", "cpu", "npu", "os")},
    **{name: _NAMED[name] for name in ("driver", "firmware")},
    "cann_generation": Literal("CANN"),
    "container": in_context("subject", "container"),
    "container_runtime": Message("container runtime"),
    "cpus": Message("number of CPUs"),
    "kernel": in_context("subject", "kernel"),
    "npu_count": Message("number of NPUs"),
    "os_family": Message("family of the operating system"),
    "os_version": Message("version of the operating system"),
    "python": Literal("Python"),
    "system": _PLAIN["os"],
    "user": _PLAIN["user"],
    "vm": in_context("subject", "virtual machine"),
}


def fact_text(name: str) -> Text:
    """Return the display name of a fact that decides whether a check applies."""
    return _FACTS.get(name) or Literal(name)


def is_plain(subject: str) -> bool:
    """Return whether the subject is no name, so that it adds nothing to the check's title."""
    return subject in _PLAIN


def subject_text(subject: str) -> Text:
    """Return the display text of a subject, or of several joined by `, `."""
    names = subject.split(", ")
    return _name(subject) if len(names) == 1 else enumerated(map(_name, names))


def _name(subject: str) -> Text:
    known = _PLAIN.get(subject) or _NAMED.get(subject)
    if known is not None:
        return known
    for pattern, template in _NUMBERED:
        found = pattern.fullmatch(subject)
        if found is not None:
            return Message(template, value=found[1])
    return Literal(subject)


# ID of os-release(5), in lower case -> what a person calls the system
SYSTEMS: Mapping[str, str] = {
    "alinux": "Alibaba Cloud Linux",
    "bclinux": "BigCloud Linux",
    "centos": "CentOS",
    "debian": "Debian",
    "euleros": "EulerOS",
    "kylin": "Kylin",
    "openeuler": "openEuler",
    "rhel": "RHEL",
    "rocky": "Rocky Linux",
    "sles": "SLES",
    "ubuntu": "Ubuntu",
    "uos": "UOS",
}


def system_name(os: str) -> str:
    """Return what a person calls a system of which os-release names the ID; one that is not known as it is."""
    return SYSTEMS.get(os.lower(), os)
