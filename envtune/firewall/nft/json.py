"""nftables: the JSON of `nft -j list ruleset` as tables of rules. Source: libnftables-json(5).

Conditions are in expressions.py; this module has the structure: tables, chains, sets, and what a rule does.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Mapping, Optional, Sequence

from envtune.firewall.match import Condition, Packet, any_of, unknown
from envtune.firewall.model import Action, BaseChain, Chain, ListingError, Rule, Table
from envtune.firewall.nft.expressions import Listing, as_list, match_condition, membership
from envtune.firewall.nft.format import rule_text
from envtune.ranges import decimal

# Names of nft(8); `out` is for bridges, for which other names have different numbers, which does not matter here.
PRIORITIES = {"raw": -300, "mangle": -150, "dstnat": -100, "filter": 0, "security": 50, "srcnat": 100, "out": 100}
ROUTED = ("ip", "ip6", "inet")  # families whose packets are ours; arp, bridge and netdev see frames
_VERDICTS = {
    "accept": Action.ACCEPT,
    "drop": Action.DROP,
    "reject": Action.DROP,
    "return": Action.RETURN,
    "continue": Action.CONTINUE,
    "jump": Action.JUMP,
    "goto": Action.GOTO,
    **dict.fromkeys(("snat", "masquerade"), Action.ACCEPT),
    **dict.fromkeys(("dnat", "redirect", "tproxy", "queue", "fwd", "synproxy"), Action.DIVERTED),
}
_NO_EFFECT = frozenset(
    {"counter", "log", "comment", "last", "flow", "dup", "secmark", "set", "ct helper", "ct timeout", "ct expectation"}
)
_RATES = frozenset({"limit", "quota", "ct count", "meter", "socket"})
_XT_TARGETS = {"REJECT": Action.DROP, **dict.fromkeys(("LOG", "NFLOG", "AUDIT", "CHECKSUM"), Action.CONTINUE)}
Change = Callable[[Packet], Packet]
Key = tuple[str, str]  # family, table


def parse_json(text: str, family: int) -> list[Table]:
    """Return the tables a packet of IPv4 (4) or IPv6 (6) passes; raises ListingError if the text is incomplete."""
    try:
        items = json.loads(text)["nftables"]
        return tables([_with_flags(item) for item in items if isinstance(item, dict)], family)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ListingError(str(error)) from None


def _with_flags(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an empty set as one that packets may add to: the JSON of nft 1.0.6 leaves `dynamic` out of its flags."""
    body = item.get("set")
    if not isinstance(body, dict) or body.get("elem"):
        return item
    return {**item, "set": {**body, "flags": [*as_list(body.get("flags")), "dynamic"]}}


def tables(items: Sequence[Mapping[str, Any]], family: int) -> list[Table]:
    """Return the tables of a listing; rules are compiled when a packet reaches them."""
    by_key: dict[Key, Table] = {}
    dormant = {(str(body["family"]), str(body["name"])) for body in _bodies(items, "table") if _dormant(body)}
    sets: dict[Key, dict[str, Mapping[str, Any]]] = {}
    rules: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for body in [*_bodies(items, "set"), *_bodies(items, "map")]:
        sets.setdefault(_key(body), {})[str(body["name"])] = body
    for body in _bodies(items, "rule"):
        rules.setdefault((*_key(body), str(body["chain"])), []).append(body)
    listings = {key: Listing(names, _dynamic_sets(key, names, rules)) for key, names in sets.items()}
    for body in _bodies(items, "chain"):
        key = _key(body)
        if key not in dormant and key[0] != ("ip6" if family == 4 else "ip"):
            table = by_key.setdefault(key, Table(*key))
            inside = rules.get((*key, str(body["name"])), [])
            table.foreign |= any("xt" in statement for rule in inside for statement in rule.get("expr", ()))
            _add_chain(table, body, inside, listings.get(key, Listing({})))
    return list(by_key.values())


def _bodies(items: Sequence[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    return [item[kind] for item in items if isinstance(item.get(kind), dict)]


def _key(body: Mapping[str, Any]) -> Key:
    return str(body["family"]), str(body["table"])


def _dormant(body: Mapping[str, Any]) -> bool:
    return "dormant" in as_list(body.get("flags"))


def _dynamic_sets(
    key: Key, names: Mapping[str, Mapping[str, Any]], rules: Mapping[tuple[str, str, str], Sequence[Mapping[str, Any]]]
) -> frozenset[str]:
    """Return the sets that packets add to: an address that is not in them now may be soon."""
    dynamic = {name for name, body in names.items() if "dynamic" in as_list(body.get("flags"))}
    for where, inside in rules.items():
        if where[:2] == key:
            dynamic.update(name for rule in inside for name in _added_to(rule.get("expr", ())))
    return frozenset(dynamic)


def _added_to(expr: Sequence[Any]) -> list[str]:
    """Return the sets a rule adds packets' values to."""
    bodies = [part["set"] for part in expr if isinstance(part, dict) and isinstance(part.get("set"), dict)]
    return [str(body.get("set", "")).lstrip("@") for body in bodies]


def _add_chain(table: Table, body: Mapping[str, Any], rules: Sequence[Mapping[str, Any]], listing: Listing) -> None:
    name = str(body["name"])
    where = f"{table.family} {table.name} {name}"

    def load() -> list[Rule]:
        return [
            compiled._replace(handle=decimal(str(rule.get("handle"))) or 0)
            for rule in rules
            for compiled in compile_rule(rule.get("expr", []), where, listing)
        ]

    chain = table.chains[name] = Chain(name, load)
    if body.get("hook"):
        hook = str(body["hook"])
        table.bases.append(
            BaseChain(
                chain,
                hook,
                priority(body.get("prio", 0)),
                str(body.get("policy", "accept")),
                where,
                nat=body.get("type") == "nat",
                opaque=table.family not in ROUTED or hook in ("ingress", "egress"),
            )
        )


def priority(value: Any) -> int:
    """Return a priority that is a number, or a name of nft(8) with an offset."""
    if isinstance(value, int):
        return value
    words = str(value).replace("+", " + ").replace("-", " - ").split()
    base, sign = 0, 1
    for word in words:
        if word in "+-":
            sign = 1 if word == "+" else -1
        elif (offset := decimal(word)) is not None:
            base += sign * offset
        elif word in PRIORITIES:
            base += PRIORITIES[word]
        else:
            raise ListingError(f"priority {value}")
    return base


def compile_rule(expr: Sequence[Mapping[str, Any]], where: str, listing: Listing) -> list[Rule]:
    """Return a rule as a list with one item; a verdict map becomes one rule for each verdict."""
    text = rule_text(expr)
    rule = _RuleBuilder(listing)
    try:
        for statement in expr:
            ((kind, body),) = statement.items()
            if rule.add(kind, body):
                break
        return [Rule(text, where, *ending) for ending in rule.endings()]
    except (ValueError, TypeError, KeyError, AttributeError, IndexError):
        return [Rule(text, where, (unknown,), Action.UNKNOWN)]


class _RuleBuilder:
    """One rule, statement by statement."""

    def __init__(self, listing: Listing) -> None:
        self.listing = listing
        self.conditions: list[Condition] = []
        self.changes: list[Change] = []
        self.opaque = False  # some statement is not modeled
        self.verdicts: list[tuple[str, str, Optional[Condition]]] = []

    def add(self, kind: str, body: Any) -> bool:
        """Add a statement; return whether it ends the rule with a verdict."""
        if kind == "match":
            self._require(match_condition(body, self.listing))
        elif kind in _RATES or (kind == "set" and "stmt" in body):
            self._require(unknown)  # a rate or a count: it matches some packets but not others
        elif kind == "mangle":
            self.changes.append(_mangle(body))
        elif kind == "notrack":
            self.changes.append(lambda packet: packet._replace(state="untracked"))
        elif kind == "vmap":
            self.verdicts = _verdict_map(body, self.listing)
        elif kind in _VERDICTS or kind == "xt":
            self._verdict(kind, body)
        elif kind not in _NO_EFFECT:
            self.opaque = True
            self._require(unknown)
        return bool(self.verdicts)

    def _require(self, condition: Condition) -> None:
        self.opaque = self.opaque or bool(self.changes)  # a change before a condition affects more than the rule
        self.conditions.append(condition)

    def _verdict(self, kind: str, body: Any) -> None:
        if kind != "xt":
            self.verdicts = [(*_verdict(kind, body), None)]
            return
        name = str(body.get("name")) if isinstance(body, dict) else ""
        if isinstance(body, dict) and body.get("type") == "target" and name in _XT_TARGETS:
            self.verdicts = [(_XT_TARGETS[name], "", None)] if _XT_TARGETS[name] != Action.CONTINUE else []
            return
        self.opaque = self.opaque or not (isinstance(body, dict) and body.get("type") == "match")
        self._require(unknown)

    def endings(self) -> list[tuple[tuple[Condition, ...], str, str, Optional[Change]]]:
        """Return (conditions, action, target, changes) of each rule that this one expands to."""
        changes = _in_turn(self.changes)
        if not self.verdicts:
            return [(tuple(self.conditions), Action.UNKNOWN if self.opaque else Action.CONTINUE, "", changes)]
        return [
            ((*self.conditions, *([] if key is None else [key])), action, target, changes)
            for action, target, key in self.verdicts
        ]


def _verdict(kind: str, body: Any) -> tuple[str, str]:
    return _VERDICTS.get(kind, Action.UNKNOWN), str(body.get("target", "")) if isinstance(body, dict) else ""


def _in_turn(changes: Sequence[Change]) -> Optional[Change]:
    if not changes:
        return None

    def apply(packet: Packet) -> Packet:
        for change in changes:
            packet = change(packet)
        return packet

    return apply


def _mangle(body: Mapping[str, Any]) -> Change:
    """Return the change of `meta mark set 1`; other values and the connection's mark are not tracked."""
    key, value = body["key"], body.get("value")
    if key == {"meta": {"key": "mark"}}:
        known = value if isinstance(value, int) else None
        return lambda packet: packet._replace(mark=known)
    if "ct" in key:
        return lambda packet: packet._replace(connection_mark=None)
    return lambda packet: packet  # priority, DSCP, segment size: no modeled rule tests them


def _verdict_map(body: Mapping[str, Any], listing: Listing) -> list[tuple[str, str, Optional[Condition]]]:
    data = body["data"]
    name = data.lstrip("@") if isinstance(data, str) else ""
    elements = as_list(listing.sets[name].get("elem") if name else data["set"])
    by_verdict: dict[tuple[str, str], list[Any]] = {}
    for key, verdict in elements:
        ((kind, target),) = verdict.items()
        by_verdict.setdefault(_verdict(kind, target), []).append(key)
    rows: list[tuple[str, str, Optional[Condition]]] = []
    for (action, target), keys in by_verdict.items():
        condition = membership(body["key"], keys)
        if name in listing.dynamic:
            condition = any_of([condition, unknown])
        rows.append((action, target, condition))
    return rows or [(Action.CONTINUE, "", None)]
