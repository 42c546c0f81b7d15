"""The compatibility matrix (envtune/data/compat.csv), and what it says of torch, torch_npu, CANN, Python and driver.

Every row has a source and keeps its tier: `matched` is a released combination, `compatible` a looser statement of the
vendor, `downstream` a combination that a project above ships. What no row speaks of is unknown, never a pass.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Iterable, Mapping, NamedTuple, Optional

from envtune.messages import Bilingual, Message, Text
from envtune.model import Evidence, Reading
from envtune.resources.cann.version_files import same_version

COLUMNS = (
    "relation",
    "package",
    "package_version",
    "branch_or_tag",
    "torch",
    "cann",
    "cann_inner_prefix",
    "python",
    "hdk_driver",
    "note",
    "source",
)


class Row(NamedTuple):
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
        """The row as evidence: what it names, without the empty columns."""
        told = [
            f"{self.package} {self.package_version}",
            self.torch and f"torch {self.torch}",
            self.cann and f"CANN {self.cann}",
            self.python and f"Python {self.python}",
            self.hdk_driver and f"{'' if '=' in self.hdk_driver else 'driver '}{self.hdk_driver}",
            self.note,
        ]
        return f"{self.relation}: {'; '.join(part for part in told if part)} [{self.source}]"


@cache
def matrix() -> tuple[Row, ...]:
    """Every row of the shipped file; ValueError when it is damaged."""
    import pkgutil

    data = pkgutil.get_data("envtune", "data/compat.csv")
    return parse_matrix((data or b"").decode("utf-8"))


def parse_matrix(text: str) -> tuple[Row, ...]:
    """The rows of a matrix; ValueError when a column or a source is missing."""
    import csv

    lines = list(csv.reader(text.splitlines()))
    if not lines or tuple(lines[0]) != COLUMNS:
        raise ValueError("the header is not the one of the compatibility matrix")
    for number, line in enumerate(lines[1:], 2):
        if len(line) != len(COLUMNS) or not line[-1].strip():
            raise ValueError(f"line {number} of the compatibility matrix has no source or another number of columns")
    return tuple(Row(*line) for line in lines[1:])


def rows_of(relation: str) -> tuple[Row, ...]:
    """The rows of one relation."""
    return tuple(row for row in matrix() if row.relation == relation)


def knows_cann(cann: str) -> bool:
    """Whether the vendor's own tables of torch_npu releases name this CANN; patch releases are often missing there."""
    return any(same_version(row.cann, cann) for row in matrix() if row.relation in ("matched", "compatible"))


def cann_of_internal(number: str) -> Optional[str]:
    """The CANN version of an internal number (`8.2.0.0.201`) or innerversion; only numbers that were seen are known."""
    for row in matrix():
        if row.relation in ("cann_internal", "cann_inner") and same_version(row.package_version, number):
            return row.cann
    return None


class Verdict(NamedTuple):
    """What the matrix says of one pair: matched, compatible, contradicted, or unknown; and the rows it rests on."""

    tier: str
    rows: tuple[Row, ...] = ()
    wanted: str = ""  # what would match

    @property
    def evidence(self) -> Evidence:
        """The rows with their sources."""
        sources = dict.fromkeys(row.source for row in self.rows)
        return Evidence("; ".join(sources) or "envtune/data/compat.csv", "\n".join(row.text for row in self.rows[:8]))


def torch_npu_rows(torch_npu: str) -> tuple[Row, ...]:
    """The released combinations of one torch_npu version."""
    return tuple(row for row in rows_of("matched") if same_version(row.package_version, torch_npu))


def downstream_rows(torch_npu: str) -> tuple[Row, ...]:
    """Combinations of projects above that pin this torch_npu version."""
    found = []
    for row in rows_of("downstream"):
        pinned = re.match(r"torch_npu=(\S+)", row.note)
        if pinned and same_version(pinned[1], torch_npu):
            found.append(row)
    return tuple(found)


def adapter_version(branch: str) -> str:
    """The adapter release in a branch name: 7.1.0 of `v2.5.1-7.1.0`; empty when the name has none."""
    return branch.partition("-")[2]


def judge_cann(torch_npu: str, cann: str) -> Verdict:
    """torch_npu with CANN. Contradicted only when the matrix knows both and pairs each with others."""
    own = torch_npu_rows(torch_npu)
    downstream = downstream_rows(torch_npu)
    matched = tuple(row for row in own if same_version(row.cann, cann))
    if matched:
        return Verdict("matched", matched)
    adapters = {adapter_version(row.branch_or_tag) for row in own}
    loose = tuple(
        row for row in rows_of("compatible") if row.package_version in adapters and same_version(row.cann, cann)
    )
    loose += tuple(row for row in downstream if same_version(row.cann, cann))
    if loose:
        return Verdict("compatible", loose)
    if not own or not knows_cann(cann):
        return Verdict("unknown", own or downstream)
    wanted = " | ".join(dict.fromkeys(row.cann for row in own))
    return Verdict("contradicted", own, f"CANN {wanted} (torch_npu {torch_npu})" + _others(cann))


def _others(cann: str) -> str:
    """The torch_npu versions that are released for this CANN."""
    versions = [row.package_version for row in rows_of("matched") if same_version(row.cann, cann)]
    return f", or torch_npu {' | '.join(versions)} (CANN {cann})" if versions else ""


def judge_torch(torch_npu: str, torch: str) -> Verdict:
    """torch_npu with torch; a build suffix of torch (`+cpu`) does not count."""
    rows = torch_npu_rows(torch_npu)
    if rows:
        if any(same_version(row.torch, torch) for row in rows):
            return Verdict("matched", rows)
        if any(re.match(re.escape(row.torch) + r"[a-z]", torch) for row in rows):
            return Verdict("unknown", rows)  # 2.1.0a0+git...: built from some commit before the release
        return Verdict("contradicted", rows, " | ".join(dict.fromkeys(f"torch {row.torch}" for row in rows)))
    rows = downstream_rows(torch_npu)
    if any(same_version(row.torch, torch) for row in rows):
        return Verdict("compatible", rows)
    return Verdict("unknown", rows)


def judge_python(torch_npu: str, torch: str, python: str) -> Verdict:
    """The Python of the target with torch_npu, or with torch where torch_npu is not in the matrix."""
    rows = torch_npu_rows(torch_npu) or tuple(r for r in rows_of("torch_python") if same_version(r.torch, torch))
    told = [row for row in rows if row.python]
    if not told:
        return Verdict("unknown", rows)
    if any(python_listed(python, row.python) for row in told):
        return Verdict("matched", tuple(told))
    return Verdict("contradicted", tuple(told), " | ".join(dict.fromkeys(f"Python {row.python}" for row in told)))


def python_listed(python: str, listed: str) -> bool:
    """Whether X.Y (or X.Y.Z) is in a list like `3.7(>=3.7.5) 3.8(3.8.0-3.8.11) 3.9`; limits count where Z is known."""
    parts = python.split(".")
    for name, limits in re.findall(r"(\d+\.\d+)(?:\(([^)]*)\))?", listed):
        if parts[:2] == name.split("."):
            return len(parts) < 3 or _within(parts, limits)
    return False


def _within(parts: list[str], limits: str) -> bool:
    have = [int(re.match(r"\d*", part)[0] or 0) for part in parts[:3]]  # type: ignore[index]
    bounds = [[int(n) for n in bound.split(".")] for bound in re.findall(r"\d+\.\d+\.\d+", limits)]
    if not bounds:
        return True
    if limits.startswith(">="):
        return have >= bounds[0]
    return bounds[0] <= have <= bounds[-1]


def released_as(torch: str) -> Optional[str]:
    """The adapter version inside a torch that carries the NPU itself: 1.5.0.post2 of `1.5.0+ascend.post2`."""
    found = re.match(r"([\d.]+)\+ascend(?:\.(post\d+|rc\d+))?", torch)
    if found is None:
        return None
    return f"{found[1]}.{found[2]}" if found[2] else found[1]


def pair_reading(subject: str, shown: Text, verdict: Verdict) -> Reading:
    """A verdict as a reading: `value` is the tier, an unknown pair is not told."""
    if verdict.tier == "unknown":
        known = "; ".join(row.text for row in verdict.rows[:3])
        reason = Bilingual(
            f"no row of the compatibility matrix speaks of {shown.en}" + (f" (nearest: {known})" if known else ""),
            f"兼容性矩阵中没有关于 {shown.zh} 的条目" + (f"（最接近：{known}）" if known else ""),
        )
        return Reading(subject, None, verdict.evidence, shown, reason=reason)
    words = TIERS[verdict.tier]
    expected = Bilingual(verdict.wanted, verdict.wanted.replace(", or ", "，或 ")) if verdict.wanted else None
    text = Message("{shown}: {words}", shown=shown, words=words)
    return Reading(subject, verdict.tier, verdict.evidence, text, expected)


TIERS: Mapping[str, Text] = {
    "matched": Message("matched, a released combination"),
    "compatible": Message("compatible (looser tier than matched)"),
    "contradicted": Message("the matrix pairs it with others"),
}


def hdk_rows(cann: str) -> Iterable[tuple[Row, str]]:
    """(row, driver version or pattern) of every row that pairs this CANN with drivers."""
    for row in matrix():
        if row.relation in ("cann_hdk", "matched") and row.hdk_driver and same_version(row.cann, cann):
            for driver in row.hdk_driver.split(";"):
                yield row, driver.strip()
