"""BIOS settings: the operating system does not show them, so an operator attests what the BIOS screen shows.

The attestation is in /etc/envtune/attestations.json:

    {"bios.power_policy": {"value": "Performance", "by": "zhang.san", "date": "2026-01-31"}}

Without it the outcome is `unknown`: no file, register or command shows the policy on every server.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Iterable, Mapping

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import Missing, Undetermined
from envtune.host import Host
from envtune.host.json import parse_json
from envtune.messages import N_, Message
from envtune.model import Evidence, Reading

ATTESTATIONS = "/etc/envtune/attestations.json"
POWER_POLICY = "bios.power_policy"  # the key of an attestation; used in sites' files


@probe("cpu.bios_power_policy", formerly="bios.power_policy")
def power_policy(
    context: Context, *, menu: Annotated[str, N_("Path of the setting in the BIOS menus.")]
) -> Iterable[Reading]:
    """Power policy of the BIOS in lowercase, as recorded in /etc/envtune/attestations.json.

    Source: porting guide 003:1325-1347 (x86), 003:1405-1429 (ARM).
    """
    expected = Message("{menu} = Performance", menu=menu)
    try:
        entry = read_attestation(context.host, POWER_POLICY)
    except Undetermined as verdict:
        evidence = Evidence(verdict.source, verdict.text)
        return [Reading("BIOS", None, evidence, expected=expected, reason=verdict.reason)]
    value, by, date = entry["value"], entry["by"], entry["date"]
    shown = Message("{value}, recorded by {by} on {date}", value=value, by=by, date=date)
    evidence = Evidence(ATTESTATIONS, json.dumps({POWER_POLICY: entry}, ensure_ascii=False))
    return [Reading("BIOS", value.strip().lower(), evidence, shown, expected)]


def read_attestation(host: Host, name: str) -> Mapping[str, str]:
    """Return the entry `name` with its `value`, `by` and `date`; raises Undetermined if it is missing or incomplete."""
    try:
        text = host.read(ATTESTATIONS)
    except Missing:
        text = "{}"
    try:
        attestations: Any = parse_json(text)
    except ValueError as error:
        reason = Message("{path} is not JSON: {error}", path=ATTESTATIONS, error=error)
        raise Undetermined(reason, ATTESTATIONS, text) from None
    entry = attestations.get(name) if isinstance(attestations, dict) else None
    if entry is None:
        reason = Message(
            "only the BIOS shows it; once somebody has looked it up, record it in {path}", path=ATTESTATIONS
        )
        raise Undetermined(reason, ATTESTATIONS)
    if not isinstance(entry, dict) or not all(isinstance(entry.get(key), str) for key in ("value", "by", "date")):
        reason = Message("{path}: {name} needs value, by and date as text", path=ATTESTATIONS, name=name)
        raise Undetermined(reason, ATTESTATIONS, text)
    return {key: entry[key] for key in ("value", "by", "date")}
