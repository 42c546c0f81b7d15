"""The output of `firewall-cmd --list-all` and `ufw status verbose` as tables: for recorded hosts without the rules.

Both print their own settings, not the kernel's rules. What they deny is denied; what they allow may still be dropped by
another rule set, so the caller records that gap. Source: firewalld.zone(5), firewall-cmd(1), ufw(8).
"""

from __future__ import annotations

import re
from typing import Optional, Sequence

from envtune import intervals
from envtune.errors import HostError
from envtune.firewall import match
from envtune.firewall.match import Condition
from envtune.firewall.model import Action, BaseChain, Chain, Rule, Table
from envtune.host import Host
from envtune.model import CommandResult
from envtune.ranges import decimal

# Services whose ports are never those of a job. Source: /usr/lib/firewalld/services of firewalld 0.6-1.3.
_KNOWN_SERVICES = frozenset(
    {"ssh", "dhcpv6-client", "dhcp", "dhcpv6", "mdns", "cockpit", "http", "https", "dns", "ntp", "samba", "snmp", "ftp"}
    | {"samba-client", "nfs", "nfs3", "mountd", "rpc-bind", "ldap", "ldaps", "mysql", "postgresql", "smtp", "tftp"}
)
_UFW_ACTION = re.compile(r"(?<=\s\s)(?P<action>ALLOW|DENY|REJECT|LIMIT)(?: (?P<direction>IN|OUT|FWD))?(?=\s)")


def frontend_tables(host: Host, family: int) -> list[Table]:
    """Return the tables that the recorded front ends describe; none if they do not run."""
    tables = []
    state = _run(host, ("firewall-cmd", "--state"))
    if state is not None and (state.stdout + state.stderr).strip() == "running":
        zone = _run(host, ("firewall-cmd", "--list-all"))
        if zone is not None and zone.returncode == 0:
            tables.append(zone_table(zone.stdout, family))
            tables[-1].source = zone.line
    status = _run(host, ("ufw", "status", "verbose"))
    if status is not None and status.stdout.startswith("Status: active"):
        tables.append(ufw_table(status.stdout, family))
        tables[-1].source = status.line
    return tables


def _run(host: Host, argv: Sequence[str]) -> Optional[CommandResult]:
    """Return the recorded output of a command; on a live host these are never run."""
    if host.live:
        return None
    try:
        return host.run(argv)
    except HostError:
        return None


def _table(family: str, name: str, rules: Sequence[Rule], policy: str) -> Table:
    table = Table(family, name)
    table.chains["input"] = Chain("input", lambda: rules)
    table.bases.append(BaseChain(table.chains["input"], "input", 0, policy, f"{family} {name} input"))
    return table


def zone_table(text: str, family: int) -> Table:
    """Return the zone of `firewall-cmd --list-all`: replies and listed items pass, the target decides the rest."""
    lines = text.splitlines() or [""]
    zone = (lines[0].split() or ["?"])[0]
    fields = _zone_fields(lines[1:])
    where = f"firewalld {zone} input"
    rules = [Rule("established", where, (match.state(("established",)),), Action.ACCEPT)]
    rules += [Rule(line, where, *_rich(line, family)) for line in fields.get("rich rules", []) if line]
    rules += [Rule(f"ports: {word}", where, (_port(word),), Action.ACCEPT) for word in _words(fields, "ports")]
    services = [word for word in _words(fields, "services") if word not in _KNOWN_SERVICES]
    rules += [Rule(f"services: {word}", where, (match.unknown,), Action.ACCEPT) for word in services]
    if "tcp" in _words(fields, "protocols"):
        rules.append(Rule("protocols: tcp", where, (), Action.ACCEPT))
    if "(active)" not in lines[0] and "default" not in lines[0]:
        rules.append(Rule(f"zone {zone} is not active", where, (match.unknown,), Action.ACCEPT))
    target = " ".join(_words(fields, "target"))
    return _table("firewalld", zone, rules, "accept" if target.strip("%") == "ACCEPT" else "drop")


def _zone_fields(lines: Sequence[str]) -> dict[str, list[str]]:
    """Return `ports: 22/tcp` and the like by name; the rich rules are on separate lines."""
    fields: dict[str, list[str]] = {}
    key = ""
    for line in lines:
        name, colon, value = line.strip().partition(":")
        if colon and re.fullmatch(r"[a-z][a-z -]*", name):
            key = name
            fields.setdefault(key, []).append(value.strip())
        elif key:
            fields[key].append(line.strip())
    return fields


def _words(fields: dict[str, list[str]], key: str) -> list[str]:
    return " ".join(fields.get(key, [])).split()


def _port(word: str) -> Condition:
    ports, _, protocol = word.partition("/")
    if protocol not in ("tcp", ""):
        return match.never
    low, dash, high = ports.partition("-")
    first, last = decimal(low), decimal(high if dash else low)
    if first is None or last is None:
        return match.unknown
    return match.port("destination", intervals.union([(first, last)]))


def _rich(line: str, family: int) -> tuple[tuple[Condition, ...], str]:
    """Return the conditions and action of a rich rule of an address, a port and a verdict; others are not modeled."""
    pattern = (
        r'rule(?: priority="-?\d+")?(?: family="(?P<family>ipv[46])")?(?: source address="(?P<source>[^"]+)")?'
        r'(?: port port="(?P<port>[\d-]+)" protocol="(?P<protocol>\w+)")?(?: log.*?)? (?P<verdict>accept|drop|reject)'
    )
    rule = re.fullmatch(pattern, line)
    if rule is None:
        return (match.unknown,), Action.UNKNOWN
    conditions: list[Condition] = []
    if rule["family"]:
        conditions.append(match.ip_version([4 if rule["family"] == "ipv4" else 6]))
    if rule["source"]:
        conditions.append(_source(rule["source"], family))
    if rule["port"]:
        conditions.append(_port(f"{rule['port']}/{rule['protocol']}"))
    return tuple(conditions), Action.ACCEPT if rule["verdict"] == "accept" else Action.DROP


def _source(text: str, family: int) -> Condition:
    if (":" in text) != (family == 6):
        return match.never
    try:
        return match.address("source", (intervals.network_range(text, family),), family)
    except ValueError:
        return match.unknown


def ufw_table(text: str, family: int) -> Table:
    """Return ufw's default and its rules in order; the first match decides."""
    default = re.search(r"^Default: (\w+) \(incoming\)", text, re.MULTILINE)
    rules = [Rule("established", "ufw rules input", (match.state(("established",)),), Action.ACCEPT)]
    for line in text.splitlines():
        line = line.strip()
        rule = _UFW_ACTION.search(line)
        if rule is not None and rule["direction"] in (None, "IN"):
            words = line[: rule.start()].rstrip(), rule["action"], line[rule.end() :].partition("#")[0].strip()
            rules.append(Rule(line, "ufw rules input", *_ufw_rule(*words, family)))
    if default is None:
        rules.append(Rule("Default: not shown", "ufw rules input", (match.unknown,), Action.UNKNOWN))
    return _table("ufw", "rules", rules, "accept" if default is not None and default[1] == "allow" else "drop")


def _ufw_rule(to: str, action: str, source: str, family: int) -> tuple[tuple[Condition, ...], str]:
    if ("(v6)" in to or "(v6)" in source) != (family == 6):
        return (match.never,), Action.CONTINUE
    to, source = to.replace("(v6)", "").strip(), source.replace("(v6)", "").strip()
    conditions = [_ufw_to(to, family), match.always if source == "Anywhere" else _source(source, family)]
    verdict = {"ALLOW": Action.ACCEPT, "DENY": Action.DROP, "REJECT": Action.DROP}.get(action)
    return (tuple(conditions), verdict) if verdict else ((*conditions, match.unknown), Action.DROP)  # LIMIT: by rate


def _ufw_to(text: str, family: int) -> Condition:
    """Read `29688/tcp`, `29688,60000:60031/tcp`, `Anywhere`, `22/tcp (OpenSSH)`; anything else may be one of ours."""
    words = text.split()
    if words == ["Anywhere"]:
        return match.always
    if not words:
        return match.unknown
    ports, _, protocol = words[0].partition("/")
    named = len(words) == 1 or words[1].startswith("(")
    if not named or not re.fullmatch(r"[0-9,:]+", ports):
        return match.unknown
    if protocol not in ("", "tcp"):
        return match.never
    pairs = [part.partition(":") for part in ports.split(",") if part]
    numbers = [(decimal(low), decimal(high or low)) for low, _, high in pairs]
    ranges = [(low, high) for low, high in numbers if low is not None and high is not None]
    if len(ranges) < len(pairs):
        return match.unknown
    return match.port("destination", intervals.union(ranges))
