"""The closed list of commands a plan may give a packet filter: one rule that lets named peers reach named ports.

Nothing else: no rule that accepts from everywhere, no policy, no flush, no reload, nothing stopped. Every command that
resources/firewall/commands.py generates has a form here; anything else is refused.
"""

from __future__ import annotations

import re
from typing import Any, Mapping, Optional, Sequence

from envtune.messages import Message, Text

_NAME = r"[A-Za-z0-9_.+/-]+"
_SOURCE = r"(?P<source>[0-9A-Fa-f.:/]+)"
_SET = r"(?P<source>[0-9A-Fa-f.:/]+|\{ [0-9A-Fa-f.:/, ]+ \})"
_MARK = "envtune:[0-9a-f]+"
_COLON_PORTS = r"[0-9]+(?::[0-9]+)?(?:,[0-9]+(?::[0-9]+)?)*"
_DASH_PORTS = r"(?:[0-9]+(?:-[0-9]+)?|\{ [0-9, -]+ \})"
_PLACE = rf"(?:ip|ip6|inet) {_NAME} {_NAME}"
_RICH = rf'rule family="ipv[46]" source address="{_SOURCE}" port port="[0-9]+(?:-[0-9]+)?" protocol="tcp" accept'
_FILES = rf"/etc/firewalld/zones/{_NAME}[.]xml(?:[.]old)?|/etc/ufw/user6?[.]rules"
_FORMS: Mapping[str, tuple[str, ...]] = {
    "nft": (
        rf"(?:insert|add) rule {_PLACE}(?: position [0-9]+)? ip6? saddr {_SET} tcp dport {_DASH_PORTS} "
        rf'accept comment "{_MARK}"',
        rf"delete rule {_PLACE} handle (?:\{{handle\}}|[0-9]+)",
        rf"(?:-a |-j )?list (?:ruleset|chain {_PLACE})",
    ),
    "iptables": (
        rf"-w (?:-t {_NAME} )?(?:-I {_NAME} [0-9]+|-[ACD] {_NAME}) -p tcp -s {_SOURCE} -m multiport "
        rf"--dports {_COLON_PORTS} -m comment --comment {_MARK} -j ACCEPT",
        rf"-V|(?:-w (?:-t {_NAME} )?)?-S(?: {_NAME})?",
    ),
    "ufw": (
        rf"(?:delete )?allow proto tcp from {_SOURCE} to any port {_COLON_PORTS}(?: comment {_MARK})?",
        rf"(?:delete )?allow from {_SOURCE} to any port {_COLON_PORTS} proto tcp(?: comment {_MARK})?",  # 0.1.0
        r"show added|status(?: verbose)?",
    ),
    "firewall-cmd": (
        rf"(?:--permanent )?--zone={_NAME} --(?:add|query|remove)-rich-rule={_RICH}",
        rf"--state|(?:--permanent )?(?:--zone={_NAME} )?--(?:list|get)-[a-z-]+",
    ),
}


def firewall_violation(program: str, argv: Sequence[str]) -> Optional[Text]:
    """Return why this command of a firewall is not run; None for one of the known forms and for other programs."""
    forms = _FORMS.get(program)
    if forms is None:
        return None
    line = " ".join(argv[1:])
    match = next((match for form in forms if (match := re.fullmatch(form, line))), None)
    if match is None:
        return Message(
            "envtune passes {program} only rules for given peers and ports, not: {line}", program=program, line=line
        )
    for source in re.split("[, {}]+", match.groupdict().get("source") or ""):
        if source and not _is_narrow(source):
            return Message("{source} matches every host, or no possible peer", source=source)
    return None


def missing_position_guard(operation: Mapping[str, Any]) -> Optional[Text]:
    """Return why a rule must not be inserted at a position without a precondition for it; None if it may."""
    argv = operation["argv"]
    among_others = (argv[1:2] == ["-w"] and "-I" in argv and argv[argv.index("-I") + 2] != "1") or "position" in argv
    if not among_others or "given" in operation:
        return None
    line = " ".join(argv)
    return Message("no `given` shows on what the position of this rule is based: {line}", line=line)


def foreign_files(operation: Mapping[str, Any]) -> Optional[Text]:
    """Return why a file is not the command's own, to be restored on undo; None if all are."""
    path = next((path for path in operation.get("files", ()) if not re.fullmatch(_FILES, path)), None)
    return None if path is None else Message("{path} is not a file that the command writes", path=path)


def _is_narrow(source: str) -> bool:
    import ipaddress

    from envtune.resources.firewall.rules import WIDEST

    try:
        network = ipaddress.ip_network(source)
    except ValueError:
        return False
    return network.prefixlen >= WIDEST
