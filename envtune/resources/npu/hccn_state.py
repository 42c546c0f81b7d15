"""The state of the NPUs' network ports, as hccn_tool shows it: link, health, TLS switch.

Sources: HCCL user guide, EI0016/EJ0004 and "cluster information check failed" (the TLS switch must agree); MindCluster
documentation, "Constructing a Fault" (link down gives `net health status: Fault`, then `Success`), according to which a
link that is down does not affect a job on one server.
"""

from __future__ import annotations

from collections import Counter
from typing import Iterable, Mapping, Optional

from envtune.collector.sources.npu import HCCN_CONF
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import NotApplicable
from envtune.messages import Literal, Message
from envtune.model import Evidence, Reading
from envtune.resources.npu.hccn import ask_devices, hccn_conf

LINK = r"link status\s*:\s*(\w+)"
HEALTH = r"net health status\s*:\s*(\S[^\r\n]*)"
TLS = r"tls switch\s*\[\s*([01])\s*\]"
UP, SUCCESS, INITIAL = "UP", "Success", "Init"
SWITCH = {"0": "off", "1": "on"}


@probe("npu.network_link")
def link(context: Context) -> Iterable[Reading]:
    """Link state of each NPU's network port, such as `UP`; not applicable if no port of this host has a link."""
    answers = ask_devices(context, "-link", LINK)
    if not any(answer.value is not None and answer.value.upper() == UP for answer in answers.values()):
        source = next(iter(answers.values()))
        reason = Message("no NPU of this host has a link: it trains without the NPU network")
        raise NotApplicable(reason, source.source, source.text)
    for number, answer in answers.items():
        evidence = Evidence(answer.source, answer.text)
        if answer.value is None:
            yield Reading(f"npu{number}", None, evidence, reason=Message("hccn_tool shows no link status"))
            continue
        shown = Message("link {state}", state=answer.value)
        yield Reading(f"npu{number}", answer.value.upper(), evidence, shown, Message("a link, as other NPUs have"))


@probe("npu.network_health")
def health(context: Context) -> Iterable[Reading]:
    """Network health of each NPU from `hccn_tool -net_health -g`; `Success` if its detection address responds.

    `Init` is the state before the first detection, and of a device without a detection address.
    """
    answers = ask_devices(context, "-net_health", HEALTH)
    devices = hccn_conf(context).devices
    known = {n: a for n, a in answers.items() if _detects(devices.get(n, {}), a.value)}
    if not known:
        raise NotApplicable(Message("no NPU of this host has a detection address"), HCCN_CONF)
    for number, answer in known.items():
        evidence = Evidence(answer.source, answer.text)
        state = answer.value
        if state is None or state.lower() == INITIAL.lower():
            reason = Message("no detection has been made yet") if state else Message("hccn_tool shows no health")
            yield Reading(f"npu{number}", None, evidence, reason=reason)
            continue
        value = SUCCESS if state.lower() == SUCCESS.lower() else state
        yield Reading(f"npu{number}", value, evidence, Literal(state))


def _detects(settings: Mapping[str, str], state: Optional[str]) -> bool:
    """Return whether an NPU has a detection address; a state other than `Init` also shows that."""
    addressed = any("netdetect" in name and value for name, value in settings.items())
    return addressed or (state or INITIAL).lower() != INITIAL.lower()


@probe("npu.network_tls")
def tls(context: Context) -> Iterable[Reading]:
    """Whether the TLS setting of each NPU is that of most NPUs of this host."""
    answers = ask_devices(context, "-tls", TLS)
    known = Counter(answer.value for answer in answers.values() if answer.value is not None)
    common = max(sorted(known), key=lambda value: known[value])
    for number, answer in answers.items():
        evidence = Evidence(answer.source, answer.text)
        if answer.value is None:
            yield Reading(f"npu{number}", None, evidence, reason=Message("hccn_tool shows no TLS switch"))
            continue
        shown = Message("TLS {state}", state=SWITCH[answer.value])
        expected = Message("TLS {state}, as on most NPUs of this host", state=SWITCH[common])
        yield Reading(f"npu{number}", answer.value == common, evidence, shown, expected)
