"""The catalogue: checks, FAQ entries and playbooks as data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping, Sequence

from envtune.catalog.selection import select
from envtune.model import Check, Severity, Text, same

__all__ = ["Catalogue", "check_from", "load", "select"]


@dataclass(frozen=True)
class Catalogue:
    """What was loaded, sorted by id."""

    checks: tuple[Check, ...]


def check_from(data: Mapping[str, Any]) -> Check:
    """A check from its validated mapping."""
    ((probe, arguments),) = data["probe"].items()
    remedy = data.get("remedy")
    return Check(
        id=data["id"],
        name=data["name"],
        title=_text(data["title"]),
        status=data["status"],
        severity=Severity(data["severity"]),
        rationale=_text(data["rationale"]),
        origin=data["origin"],
        probe=probe,
        arguments=arguments or {},
        expect=data["expect"],
        applies=data.get("applies", {}),
        severity_by=tuple((row["when"], Severity(row["severity"])) for row in data.get("severity_by", ())),
        seed=data.get("seed", ""),
        references=tuple(data.get("references", ())),
        tags=tuple(data.get("tags", ())),
        falsepositives=tuple(_text(t) for t in data.get("falsepositives", ())),
        remedy=_text(remedy) if remedy else None,
        commands=tuple(data.get("commands", ())),
        playbook=data.get("playbook", ""),
        faq=tuple(data.get("faq", ())),
        volatile=data.get("volatile", False),
        deadline=float(data.get("deadline", 20)),
    )


def _text(value: Any) -> Text:
    return same(value) if isinstance(value, str) else Text(value["en"], value["zh"])


def load(extra: Sequence[Path] = ()) -> Catalogue:
    """The shipped catalogue."""
    import yaml

    root = Path(__file__).resolve().parents[2] / "checks"
    files = [p for p in sorted(root.glob("*/*.yaml")) if p.parent.name not in ("faq", "examples")]
    return Catalogue(
        tuple(sorted((check_from(yaml.safe_load(p.read_text("utf-8"))) for p in files), key=lambda c: c.id))
    )
