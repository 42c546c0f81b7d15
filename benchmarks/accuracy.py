#!/usr/bin/env python3
"""How often `diagnose` names the right error: `python benchmarks/accuracy.py CORPUS`.

A corpus is a folder with index.jsonl (one object a line: `id`, `entry` = the label or null for a log without an Ascend
problem) and one `<id>.log` each. A label is a FAQ id (F06) or the `name` of an entry. Prints a table; ends with 1 when
fewer than 95 % of the F labels or 90 % of the others are first, or a negative gets a diagnosis.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Iterator, Optional

from envtune.diagnose import diagnose

SECONDARY = {"F12": "harmless", "tbe-subprocess-secondary": "consequences"}


def corpus(folder: Path) -> Iterator[tuple[str, Optional[str]]]:
    for line in (folder / "index.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        yield str(folder / f"{row['id']}.log"), row["entry"]


def verdict(path: str, label: Optional[str]) -> tuple[str, list[str]]:
    """right, top3, wrong, missed, false alarm or quiet; and the answer that was given."""
    found = diagnose([path], check=False)
    told = [{d.candidate.entry.id, d.candidate.entry.name} for d in found.diagnoses]
    names = [d.candidate.entry.name for d in found.diagnoses]
    if label is None:
        return ("false alarm" if told else "quiet"), names
    if label in SECONDARY:
        apart = [{d.candidate.entry.id, d.candidate.entry.name} for d in getattr(found, SECONDARY[label])]
        apart += [{d.candidate.entry.id, d.candidate.entry.name} for d in found.hints]
        return ("right" if any(label in a for a in apart) and not told else "wrong"), names
    if not told:
        return "missed", names
    if label in told[0]:
        return "right", names
    return ("top3" if any(label in names for names in told[:3]) else "wrong"), names


def main(argv: list[str]) -> int:
    if len(argv) != 2:
        print(__doc__)
        return 2
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    labels: dict[str, Counter[str]] = defaultdict(Counter)
    for path, label in corpus(Path(argv[1])):
        kind = "negative" if label is None else "faq" if re.fullmatch(r"F\d\d", label) else "other"
        said, names = verdict(path, label)
        counts[kind][said] += 1
        labels[label or "(no Ascend problem)"][said] += 1
        if said not in ("right", "quiet"):
            print(f"{said:12} {Path(path).name:12} {label or '-':36} answered {', '.join(names[:3]) or '-'}")
    print(f"\n{'label':38} right top3 wrong missed")
    for name, row in sorted(labels.items()):
        right, wrong = row["right"] + row["quiet"], row["wrong"] + row["false alarm"]
        print(f"{name:38} {right:5} {row['top3']:4} {wrong:5} {row['missed']:6}")
    good = True
    for kind, floor in (("faq", 0.95), ("other", 0.90), ("negative", 1.0)):
        row = counts[kind]
        total = sum(row.values())
        right = row["right"] + row["quiet"]
        share = right / total if total else 1.0
        good = good and share >= floor
        print(
            f"\n{kind:9} {right}/{total} first ({share:.1%}); top 3: {row['top3']}, wrong {row['wrong']}, "
            f"missed {row['missed']}, false alarms {row['false alarm']}"
        )
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv))
