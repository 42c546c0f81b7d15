"""BIOS settings: the operating system does not show them, so an operator states what the BIOS screen shows.

The statement lives in /etc/envtune/attestations.json:

    {"bios.power_policy": {"value": "Performance", "by": "zhang.san", "date": "2026-01-31"}}

Without it the answer is `unknown`: no file, register or command readable here tells the policy on every server.
"""

from __future__ import annotations

import json
from typing import Any, Iterable, Mapping

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import Missing, Undetermined
from envtune.host import Host
from envtune.model import Evidence, Reading, Text

ATTESTATIONS = "/etc/envtune/attestations.json"
POWER_POLICY = "bios.power_policy"  # the key of an attestation; sites have it in their files


@probe("cpu.bios_power_policy", formerly="bios.power_policy")
def power_policy(context: Context, *, menu: str) -> Iterable[Reading]:
    """The attested power policy in lower case; `menu` is the way to it in the BIOS.

    Source: porting guide 003:1325-1347 (x86), 003:1405-1429 (ARM).
    """
    expected = Text(f"{menu} = Performance", f"{menu} = Performance")
    try:
        entry = attested(context.host, POWER_POLICY)
    except Undetermined as verdict:
        evidence = Evidence(verdict.source, verdict.text)
        return [Reading("BIOS", None, evidence, expected=expected, reason=verdict.reason)]
    value, by, date = entry["value"], entry["by"], entry["date"]
    shown = Text(f"{value}, stated by {by} on {date}", f"{value}，由 {by} 于 {date} 确认")
    evidence = Evidence(ATTESTATIONS, json.dumps({POWER_POLICY: entry}, ensure_ascii=False))
    return [Reading("BIOS", value.strip().lower(), evidence, shown, expected)]


def attested(host: Host, name: str) -> Mapping[str, str]:
    """The entry `name` with its `value`, `by` and `date`; Undetermined where nobody stated it in full."""
    try:
        text = host.read(ATTESTATIONS)
    except Missing:
        text = "{}"
    try:
        known: Any = json.loads(text)
    except ValueError as error:
        reason = Text(f"{ATTESTATIONS} is not JSON: {error}", f"{ATTESTATIONS} 不是 JSON：{error}")
        raise Undetermined(reason, ATTESTATIONS, text) from None
    entry = known.get(name) if isinstance(known, dict) else None
    if entry is None:
        reason = Text(
            f"only the BIOS shows it; once somebody has looked, {ATTESTATIONS} can say so",
            f"只有 BIOS 界面能看到；人工确认后可记录在 {ATTESTATIONS} 中",
        )
        raise Undetermined(reason, ATTESTATIONS)
    if not isinstance(entry, dict) or not all(isinstance(entry.get(key), str) for key in ("value", "by", "date")):
        reason = Text(
            f"{ATTESTATIONS}: {name} needs value, by and date as text",
            f"{ATTESTATIONS}：{name} 需要文本形式的 value、by 和 date",
        )
        raise Undetermined(reason, ATTESTATIONS, text)
    return {key: entry[key] for key in ("value", "by", "date")}
