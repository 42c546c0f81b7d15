"""The compatibility matrix (envtune/data/compat.csv), and what it says of torch, torch_npu, CANN, Python and driver.

Every row has a source and keeps its tier: `matched` is a released combination, `compatible` a looser statement of the
vendor, `downstream` a combination that a project above ships. What no row speaks of is unknown, never a pass.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Iterable, Mapping, NamedTuple, Optional

from envtune.messages import Literal, Message, Text
from envtune.model import Evidence, Reading
from envtune.ranges import checked_int
from envtune.resources.cann.version_files import same_version


class MatrixRow(NamedTuple):
    """One statement of the matrix, columns as in the file."""

    relation: str
    package: str
    package_version: str
    branch_or_tag: str
    torch: str
    cann: str
    cann_inner_prefix: str
    python: str
    hdk_driver: str
    note: str
    source: str

    @property
    def text(self) -> str:
        """Return the row as evidence: its columns without the empty ones."""
        parts = [
            f"{self.package} {self.package_version}",
            self.torch and f"torch {self.torch}",
            self.cann and f"CANN {self.cann}",
            self.python and f"Python {self.python}",
            self.hdk_driver and f"{'' if '=' in self.hdk_driver else 'driver '}{self.hdk_driver}",
            self.note,
        ]
        return f"{self.relation}: {'; '.join(part for part in parts if part)} [{self.source}]"


@cache
def matrix() -> tuple[MatrixRow, ...]:
    """Return every row of the shipped file; ValueError when it is damaged."""
    import pkgutil

    data = pkgutil.get_data("envtune", "data/compat.csv")
    return parse_matrix((data or b"").decode("utf-8"))


def parse_matrix(text: str) -> tuple[MatrixRow, ...]:
    """Return the rows of a matrix; ValueError when a column or a source is missing."""
    import csv

    columns = MatrixRow._fields
    lines = list(csv.reader(text.splitlines()))
    if not lines or tuple(lines[0]) != columns:
        raise ValueError("the header is not the one of the compatibility matrix")
    for number, line in enumerate(lines[1:], 2):
        if len(line) != len(columns) or not line[-1].strip():
            raise ValueError(f"line {number} of the compatibility matrix has no source or another number of columns")
    return tuple(MatrixRow(*line) for line in lines[1:])


def rows_of(relation: str) -> tuple[MatrixRow, ...]:
    """Return the rows of one relation."""
    return tuple(row for row in matrix() if row.relation == relation)


def knows_cann(cann: str) -> bool:
    """Return whether the vendor's tables of torch_npu releases name this CANN; they often omit patch releases."""
    return any(same_version(row.cann, cann) for row in matrix() if row.relation in ("matched", "compatible"))


def cann_of_internal(number: str) -> Optional[str]:
    """Return the CANN version of an internal number (`8.2.0.0.201`) or innerversion; None for one never seen."""
    for row in matrix():
        if row.relation in ("cann_internal", "cann_inner") and same_version(row.package_version, number):
            return row.cann
    return None


class MatrixVerdict(NamedTuple):
    """What the matrix says of one pair: matched, compatible, contradicted, or unknown; and the rows it rests on."""

    tier: str
    rows: tuple[MatrixRow, ...] = ()
    expected: Optional[Text] = None  # what would match

    @property
    def evidence(self) -> Evidence:
        """Return the rows with their sources."""
        sources = dict.fromkeys(row.source for row in self.rows)
        return Evidence("; ".join(sources) or "envtune/data/compat.csv", "\n".join(row.text for row in self.rows[:8]))


def torch_npu_rows(torch_npu: str) -> tuple[MatrixRow, ...]:
    """Return the released combinations of one torch_npu version."""
    return tuple(row for row in rows_of("matched") if same_version(row.package_version, torch_npu))


def downstream_rows(torch_npu: str) -> tuple[MatrixRow, ...]:
    """Return the combinations of projects above that pin this torch_npu version."""
    pins = ((row, re.match(r"torch_npu=(\S+)", row.note)) for row in rows_of("downstream"))
    return tuple(row for row, pin in pins if pin and same_version(pin[1], torch_npu))


def adapter_version(branch: str) -> str:
    """Return the adapter release in a branch name: 7.1.0 of `v2.5.1-7.1.0`; empty when the name has none."""
    return branch.partition("-")[2]


def judge_cann(torch_npu: str, cann: str) -> MatrixVerdict:
    """Judge torch_npu with CANN; contradicted only when the matrix knows both and pairs each with others."""
    released = torch_npu_rows(torch_npu)
    downstream = downstream_rows(torch_npu)
    matched = tuple(row for row in released if same_version(row.cann, cann))
    if matched:
        return MatrixVerdict("matched", matched)
    adapters = {adapter_version(row.branch_or_tag) for row in released}
    loose = tuple(
        row for row in rows_of("compatible") if row.package_version in adapters and same_version(row.cann, cann)
    )
    loose += tuple(row for row in downstream if same_version(row.cann, cann))
    if loose:
        return MatrixVerdict("compatible", loose)
    if not released or not knows_cann(cann):
        return MatrixVerdict("unknown", released or downstream)
    return MatrixVerdict("contradicted", released, _expected_cann(torch_npu, cann, released))


def _expected_cann(torch_npu: str, cann: str, released: Iterable[MatrixRow]) -> Text:
    """Return the CANN that the torch_npu is released for, and the torch_npu that are released for this CANN."""
    for_torch_npu = " | ".join(dict.fromkeys(row.cann for row in released))
    for_cann = " | ".join(row.package_version for row in rows_of("matched") if same_version(row.cann, cann))
    if not for_cann:
        return Literal(f"CANN {for_torch_npu} (torch_npu {torch_npu})")
    return Message(
        "CANN {for_torch_npu} (torch_npu {torch_npu}), or torch_npu {for_cann} (CANN {cann})",
        for_torch_npu=for_torch_npu,
        torch_npu=torch_npu,
        for_cann=for_cann,
        cann=cann,
    )


def judge_torch(torch_npu: str, torch: str) -> MatrixVerdict:
    """Judge torch_npu with torch; a build suffix of torch (`+cpu`) does not count."""
    rows = torch_npu_rows(torch_npu)
    if rows:
        if any(same_version(row.torch, torch) for row in rows):
            return MatrixVerdict("matched", rows)
        if any(re.match(re.escape(row.torch) + r"[a-z]", torch) for row in rows):
            return MatrixVerdict("unknown", rows)  # 2.1.0a0+git...: built from some commit before the release
        return MatrixVerdict("contradicted", rows, _alternatives(f"torch {row.torch}" for row in rows))
    rows = downstream_rows(torch_npu)
    if any(same_version(row.torch, torch) for row in rows):
        return MatrixVerdict("compatible", rows)
    return MatrixVerdict("unknown", rows)


def judge_python(torch_npu: str, torch: str, python: str) -> MatrixVerdict:
    """Judge the target's Python with torch_npu, or with torch where torch_npu is not in the matrix."""
    rows = torch_npu_rows(torch_npu) or tuple(r for r in rows_of("torch_python") if same_version(r.torch, torch))
    stated = tuple(row for row in rows if row.python)
    if not stated:
        return MatrixVerdict("unknown", rows)
    if any(python_listed(python, row.python) for row in stated):
        return MatrixVerdict("matched", stated)
    return MatrixVerdict("contradicted", stated, _alternatives(f"Python {row.python}" for row in stated))


def _alternatives(names: Iterable[str]) -> Text:
    return Literal(" | ".join(dict.fromkeys(names)))


def python_listed(python: str, listed: str) -> bool:
    """Return whether X.Y (or X.Y.Z) is in a list like `3.7(>=3.7.5) 3.8(3.8.0-3.8.11) 3.9`.

    The limits in brackets count where Z is known.
    """
    parts = python.split(".")
    for name, limits in re.findall(r"(\d+\.\d+)(?:\(([^)]*)\))?", listed):
        if parts[:2] == name.split("."):
            return len(parts) < 3 or _within(parts, limits)
    return False


def _within(parts: list[str], limits: str) -> bool:
    version = [checked_int(re.match(r"\d*", part)[0] or "0") for part in parts[:3]]  # type: ignore[index]
    bounds = [[checked_int(n) for n in bound.split(".")] for bound in re.findall(r"\d+\.\d+\.\d+", limits)]
    if not bounds:
        return True
    if limits.startswith(">="):
        return version >= bounds[0]
    return bounds[0] <= version <= bounds[-1]


def released_as(torch: str) -> Optional[str]:
    """Return the adapter version inside a torch that carries the NPU itself: 1.5.0.post2 of `1.5.0+ascend.post2`."""
    version = re.match(r"([\d.]+)\+ascend(?:\.(post\d+|rc\d+))?", torch)
    if version is None:
        return None
    return f"{version[1]}.{version[2]}" if version[2] else version[1]


TIERS: Mapping[str, Text] = {
    "matched": Message("matched, a released combination"),
    "compatible": Message("compatible (looser tier than matched)"),
    "contradicted": Message("the matrix pairs it with others"),
}


def pair_reading(subject: str, pair: Text, verdict: MatrixVerdict) -> Reading:
    """Return a verdict as a reading whose value is the tier; a pair that the matrix does not know has a reason."""
    if verdict.tier == "unknown":
        nearest = "; ".join(row.text for row in verdict.rows[:3])
        reason = Message("no row of the compatibility matrix speaks of {pair}", pair=pair)
        if nearest:
            reason = Message("{reason} (nearest: {nearest})", reason=reason, nearest=nearest)
        return Reading(subject, None, verdict.evidence, pair, reason=reason)
    shown = Message("{pair}: {tier}", pair=pair, tier=TIERS[verdict.tier])
    return Reading(subject, verdict.tier, verdict.evidence, shown, verdict.expected)


def hdk_rows(cann: str) -> Iterable[tuple[MatrixRow, str]]:
    """Yield (row, driver version or pattern) of every row that pairs this CANN with drivers."""
    for row in matrix():
        if row.relation in ("cann_hdk", "matched") and row.hdk_driver and same_version(row.cann, cann):
            for driver in row.hdk_driver.split(";"):
                yield row, driver.strip()
