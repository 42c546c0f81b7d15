"""The NPU's own network: /etc/hccn.conf, and what hccn_tool prints about a device.

Sources: HCCL user guide, "rank table" (`address_N=`, `netmask_N=`, `netdetect_N=`; N is the physical id of the NPU);
public copies of hccn.conf (gateway_N, send_arp_status_N, blanks around `=`, comments); hccn_tool of the driver:
hicann/driver and mind-cluster documentation (-ip, -link, -tls, -net_health with -g).
"""

from __future__ import annotations

import re
from typing import Mapping, NamedTuple, Optional

from envtune import intervals
from envtune.collector.sources.npu import HCCN_CONF, HCCN_TOOL
from envtune.context import Context
from envtune.errors import HostError, Missing, NotApplicable, Undetermined, host_error_text
from envtune.host import exists
from envtune.messages import Message
from envtune.resources.npu.devices import device_nodes, in_container

TOOL_SECONDS = 3.0  # for one query of one device; the driver answers in a fraction of it
_SETTING = re.compile(r"([A-Za-z_]\w*?)_(\d{1,3})\s*[=:]\s*(.*)")


class HccnConf(NamedTuple):
    """/etc/hccn.conf: device -> key without the number -> value, and the text."""

    devices: Mapping[int, Mapping[str, str]]
    text: str


class Answer(NamedTuple):
    """The output of hccn_tool for one device: the value, None if there is none, and the line."""

    value: Optional[str]
    text: str
    source: str


def parse_hccn_conf(text: str) -> Mapping[int, Mapping[str, str]]:
    """Return device -> key -> value of lines such as `address_0=192.0.2.1`; the last of several counts."""
    found: dict[int, dict[str, str]] = {}
    for line in text.lstrip("\ufeff").splitlines():
        setting = _SETTING.fullmatch(line.strip())
        if setting is not None:
            found.setdefault(int(setting[2]), {})[setting[1].lower()] = setting[3].strip().strip("\"'")
    return found


def hccn_conf(context: Context) -> HccnConf:
    """Return /etc/hccn.conf; raises NotApplicable without it, or in a container, where the addresses are the host's."""
    return context.cached(_read_conf)


def _read_conf(context: Context) -> HccnConf:
    if in_container(context):
        raise NotApplicable(Message("a container: the NPU network is configured on the host"), HCCN_CONF)
    if not device_nodes(context):
        raise NotApplicable(Message("no NPU device node"), HCCN_CONF)
    try:
        text = context.host.read(HCCN_CONF)
    except Missing:
        raise NotApplicable(Message("{path} does not exist", path=HCCN_CONF), HCCN_CONF) from None
    return HccnConf(parse_hccn_conf(text), text)


def addresses(conf: HccnConf) -> Mapping[int, str]:
    """Return the IPv4 or IPv6 address of each device that has one."""
    names = ("address", "ipv6_address")
    rows = ((number, next((row[name] for name in names if row.get(name)), "")) for number, row in conf.devices.items())
    return {number: address for number, address in sorted(rows) if address}


def family_of(text: str) -> int:
    """Return 4 or 6 for an IP address, 0 for anything else."""
    try:
        return intervals.address_family(text)
    except ValueError:
        return 0


def same_address(one: str, other: str) -> bool:
    """Return whether two texts are the same IP address."""
    family = family_of(one)
    if not family or family != family_of(other):
        return False
    return intervals.address_number(one, family) == intervals.address_number(other, family)


def ask_devices(context: Context, query: str, pattern: str) -> Mapping[int, Answer]:
    """Return the output of `hccn_tool -i N QUERY -g` for each existing device that hccn.conf configures.

    `pattern` finds the value in group 1. Raises Undetermined if the tool is missing, times out or prints something else
    for every device; after the first timeout no further device is queried.
    """
    conf = hccn_conf(context)
    asked = [number for number in device_nodes(context) if number in conf.devices]
    if not asked:
        raise NotApplicable(Message("{path} configures no NPU of this host", path=HCCN_CONF), HCCN_CONF)
    _require_tool(context)
    found: dict[int, Answer] = {}
    for number in asked:
        argv = (HCCN_TOOL, "-i", str(number), query, "-g")
        try:
            result = context.host.run(argv, timeout=TOOL_SECONDS)
        except HostError as error:
            raise Undetermined(host_error_text(error), error.path) from None
        text = result.stdout + result.stderr
        match = re.search(pattern, text, re.I | re.M)
        found[number] = Answer(match[1].strip() if match else None, text[:400], " ".join(argv))
    if all(answer.value is None for answer in found.values()):
        first = found[asked[0]]
        reason = Message("hccn_tool does not show it")
        raise Undetermined(reason, first.source, first.text, needs_privilege=context.host.euid != 0)
    return found


def _require_tool(context: Context) -> None:
    if not exists(context.host, HCCN_TOOL):
        raise Undetermined(Message("{path} does not exist", path=HCCN_TOOL), HCCN_TOOL)
