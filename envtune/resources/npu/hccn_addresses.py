"""The addresses of the NPUs' network ports in /etc/hccn.conf."""

from __future__ import annotations

from typing import Iterable, Mapping, Optional

from envtune import intervals
from envtune.collector.sources.npu import HCCN_CONF
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import NotApplicable
from envtune.messages import Literal, Message, Text, clauses
from envtune.model import Evidence, Reading
from envtune.resources.npu.devices import device_nodes
from envtune.resources.npu.hccn import HccnConf, addresses, ask_devices, family_of, hccn_conf, same_address

ALL_ONES = (1 << 32) - 1
# `ipaddr:192.0.2.1`; the vnic listing uses a different field.
IP_ADDRESS = r"(?<!vnic )\bipaddr\s*:\s*([0-9a-f.:]+)"


@probe("npu.network_addressed")
def addressed(context: Context) -> Iterable[Reading]:
    """Whether /etc/hccn.conf contains an address for each NPU; not applicable if it contains none."""
    conf = hccn_conf(context)
    known = addresses(conf)
    if not known:
        raise NotApplicable(Message("{path} has no address", path=HCCN_CONF), HCCN_CONF, conf.text[:400])
    for number in device_nodes(context):
        shown = Literal(known[number]) if number in known else Message("no address_{number}", number=number)
        yield Reading(f"npu{number}", number in known, _evidence(conf, number), shown, Message("an address"))


@probe("npu.network_addresses_valid")
def valid(context: Context) -> Iterable[Reading]:
    """Errors in the address, netmask and gateway of each NPU in /etc/hccn.conf; empty if all are valid."""
    conf = hccn_conf(context)
    known = addresses(conf)
    if not known:
        raise NotApplicable(Message("{path} has no address", path=HCCN_CONF), HCCN_CONF, conf.text[:400])
    for number, address in known.items():
        faults = list(address_faults(conf.devices[number], address))
        shown = clauses(faults) if faults else Literal(address)
        value = "; ".join(fault.en for fault in faults)
        yield Reading(f"npu{number}", value, _evidence(conf, number), shown, Message("a host address in its subnet"))


def address_faults(row: Mapping[str, str], address: str) -> Iterable[Text]:
    """Yield what is wrong with the settings of one device; IPv6 addresses are only parsed."""
    family = family_of(address)
    if not family:
        yield Message("{value} is not an IP address", value=address)
        return
    mask = row.get("netmask", "")
    if family != 4:
        return
    if not mask:
        yield Message("no netmask")
        return
    bits = netmask_number(mask)
    if bits is None:
        yield Message("{value} is not a netmask", value=mask)
        return
    number = intervals.address_number(address, 4)
    host_part = number & ~bits & ALL_ONES
    if bits < ALL_ONES - 1 and host_part in (0, ~bits & ALL_ONES):
        yield Message("{value} is the network or broadcast address of {mask}", value=address, mask=mask)
    gateway = row.get("gateway", "")
    if gateway and family_of(gateway) != 4:
        yield Message("gateway {value} is not an IPv4 address", value=gateway)
    elif gateway and intervals.address_number(gateway, 4) & bits != number & bits:
        yield Message("gateway {value} is outside the subnet {mask}", value=gateway, mask=mask)


def netmask_number(text: str) -> Optional[int]:
    """Return a netmask as a number; None unless it is ones followed by zeros."""
    if family_of(text) != 4:
        return None
    number = intervals.address_number(text, 4)
    rest = ~number & ALL_ONES
    return number if number and rest & (rest + 1) == 0 else None


@probe("npu.network_addresses_unique")
def unique(context: Context) -> Iterable[Reading]:
    """Other NPUs or interfaces of this host that have the address of an NPU; empty if the address is unique."""
    conf = hccn_conf(context)
    known = addresses(conf)
    own = [(one.name, address.partition("/")[0]) for one in context.host.interfaces() for address in one.addresses]
    rows = [(f"npu{number}", address) for number, address in known.items()]
    if not rows:
        raise NotApplicable(Message("{path} has no address", path=HCCN_CONF), HCCN_CONF, conf.text[:400])
    for number, address in known.items():
        name = f"npu{number}"
        others = [other for other, one in (*rows, *own) if other != name and same_address(one, address)]
        shown: Text = Literal(address)
        if others:
            shown = Message("{address}, also of {others}", address=address, others=", ".join(others))
        yield Reading(name, ", ".join(others), _evidence(conf, number), shown, Message("a unique address"))


@probe("npu.network_address_applied")
def applied(context: Context) -> Iterable[Reading]:
    """Whether the network address of each NPU (`hccn_tool -ip -g`) is the one in /etc/hccn.conf."""
    conf = hccn_conf(context)
    known = addresses(conf)
    for number, answer in ask_devices(context, "-ip", IP_ADDRESS).items():
        wanted = known.get(number)
        evidence = Evidence(answer.source, answer.text)
        if wanted is None:
            continue
        if answer.value is None:
            yield Reading(f"npu{number}", None, evidence, reason=Message("hccn_tool shows no address"))
            continue
        shown = Message("the device has {address}", address=answer.value)
        expected = Message("{address}, as in {path}", address=wanted, path=HCCN_CONF)
        yield Reading(f"npu{number}", same_address(wanted, answer.value), evidence, shown, expected)


def _evidence(conf: HccnConf, number: int) -> Evidence:
    row = conf.devices.get(number, {})
    return Evidence(HCCN_CONF, "\n".join(f"{key}_{number}={value}" for key, value in row.items()))
