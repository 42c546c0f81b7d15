"""The compatibility matrix (envtune/data/compat.csv), and what it says about torch, torch_npu, CANN, Python and driver.

Every row has a source and keeps its tier: `matched` is a released combination, `compatible` a looser statement of the
vendor, `downstream` a combination shipped by a project that builds on it. A list of pairings is not a list of refusals:
a pair that is not in it is unknown. Only what the vendor explicitly refuses (`cann_hdk_refused`) or a package's own
metadata excludes is refused.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Iterable, Mapping, Optional

from envtune.messages import Literal, Message, Text, alternatives
from envtune.model import Evidence, Reading
from envtune.ranges import checked_int
from envtune.records import NamedTuple
from envtune.resources.cann.version_files import canonical, same_release, same_version, version_key


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
    """Return every row of the shipped file; raises ValueError if it is damaged."""
    import pkgutil

    data = pkgutil.get_data("envtune", "data/compat.csv")
    return parse_matrix((data or b"").decode("utf-8"))


def parse_matrix(text: str) -> tuple[MatrixRow, ...]:
    """Return the rows of a matrix; raises ValueError if a column or a source is missing."""
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


def published() -> str:
    """Return the month of the data, `2026-11`."""
    return rows_of("published")[0].package_version


def newer_than_table(name: str, version: str, known: Iterable[str]) -> Optional[Text]:
    """Return the text for a version that is newer than all in the table; None if it is not."""
    own, keys = version_key(version), [(key, text) for text in known for key in [version_key(text)] if key]
    if own is None or not keys or own <= max(keys)[0]:
        return None
    newest = max(keys)[1]
    return Message(
        "{name} {version} is newer than this table, which ends at {newest}", name=name, version=version, newest=newest
    )


def newer_cann(cann: str) -> Optional[Text]:
    """Return the text for a CANN newer than the table; None if it is not, such as 20.2, which preceded 3.3 and 5.0."""
    if re.match(r"(19|2[0-2])\.", canonical(cann)):
        return None
    return newer_than_table("CANN", cann, (row.cann for row in matrix() if row.cann))


def newer_driver(driver: str) -> Optional[Text]:
    """Return the text for a driver newer than the table; None if it is not."""
    return newer_than_table("driver", driver, (row.package_version for row in matrix() if row.package == "hdk"))


def newer_torch_npu(torch_npu: str) -> Optional[Text]:
    """Return the text for a torch_npu newer than the releases of its line (2.7, 2.8) in the table."""
    releases = [row.package_version for row in rows_of("matched")]
    line = canonical(torch_npu).split(".")[:2]
    return newer_than_table("torch_npu", torch_npu, [r for r in releases if r.split(".")[:2] == line] or releases)


def cann_of_internal(number: str) -> Optional[str]:
    """Return the CANN version of an internal number (`8.2.0.0.201`) or innerversion; None for an unknown one."""
    for row in matrix():
        if row.relation in ("cann_internal", "cann_inner") and same_version(row.package_version, number):
            return row.cann
    return None


class MatrixVerdict(NamedTuple):
    """What is known about one pair: matched, compatible, refused, or unknown; and the rows it is based on."""

    tier: str
    rows: tuple[MatrixRow, ...] = ()
    expected: Optional[Text] = None  # what would match
    newer: Optional[Text] = None  # which version is newer than the matrix
    stated: str = ""  # the line of the package's own metadata that decides

    @property
    def evidence(self) -> Evidence:
        """Return the rows with their sources."""
        sources = dict.fromkeys(row.source for row in self.rows)
        return Evidence("; ".join(sources) or "envtune/data/compat.csv", "\n".join(row.text for row in self.rows[:8]))


def torch_npu_rows(torch_npu: str) -> tuple[MatrixRow, ...]:
    """Return the released combinations of one torch_npu version."""
    return tuple(row for row in rows_of("matched") if same_version(row.package_version, torch_npu))


def downstream_rows(torch_npu: str) -> tuple[MatrixRow, ...]:
    """Return the combinations of downstream projects that pin this torch_npu version."""
    pins = ((row, re.match(r"torch_npu=(\S+)", row.note)) for row in rows_of("downstream"))
    return tuple(row for row, pin in pins if pin and same_version(pin[1], torch_npu))


def adapter_version(branch: str) -> str:
    """Return the adapter release in a branch name: 7.1.0 of `v2.5.1-7.1.0`; empty if the name has none."""
    return branch.partition("-")[2]


def judge_cann(torch_npu: str, cann: str) -> MatrixVerdict:
    """Judge torch_npu with CANN; unknown if the pair is not among those published."""
    released = torch_npu_rows(torch_npu)
    downstream = downstream_rows(torch_npu)
    matched = tuple(row for row in released if same_release(cann, row.cann))
    if matched:
        return MatrixVerdict("matched", matched)
    adapters = {adapter_version(row.branch_or_tag) for row in released}
    loose = tuple(
        row for row in rows_of("compatible") if row.package_version in adapters and same_release(cann, row.cann)
    )
    loose += tuple(row for row in downstream if same_release(cann, row.cann))
    if loose:
        return MatrixVerdict("compatible", loose)
    expected = _expected_cann(torch_npu, cann, released)
    return MatrixVerdict("unknown", released or downstream, expected, newer_torch_npu(torch_npu) or newer_cann(cann))


def _expected_cann(torch_npu: str, cann: str, released: Iterable[MatrixRow]) -> Optional[Text]:
    """Return the CANN that the torch_npu is released for, and the torch_npu that are released for this CANN."""
    canns = list(dict.fromkeys(row.cann for row in released))
    torch_npus = [row.package_version for row in rows_of("matched") if same_release(cann, row.cann)]
    fields = {
        "canns": alternatives(canns),
        "torch_npu": torch_npu,
        "torch_npus": alternatives(torch_npus),
        "cann": cann,
    }
    if canns and torch_npus:
        return Message("CANN {canns} (torch_npu {torch_npu}), or torch_npu {torch_npus} (CANN {cann})", **fields)
    if canns:
        return Message("CANN {canns} (torch_npu {torch_npu})", **fields)
    return Message("torch_npu {torch_npus} (CANN {cann})", **fields) if torch_npus else None


def judge_torch(torch_npu: str, torch: str, requires: str = "") -> MatrixVerdict:
    """Judge torch_npu with torch, by the Requires-Dist of the torch_npu wheel first.

    Every wheel is built for one torch, the one with its own X.Y.Z, and declares it (setup.py of Ascend/pytorch); if the
    line was not recorded, the matrix confirms it or nothing is known. A build suffix of torch (`+cpu`) does not count.
    A pre-release or a build from source (2.1.0a0) is some commit before the release: unknown.
    """
    rows = torch_npu_rows(torch_npu) or downstream_rows(torch_npu)
    wanted = required_release(requires) or ""
    listed = [wanted] if wanted else [row.torch for row in rows]
    exact = any(same_release(torch, one) for one in listed)
    if not exact and any(re.match(re.escape(one) + r"[a-z]", canonical(torch)) for one in listed if one):
        return MatrixVerdict("unknown", rows, stated=requires)
    if wanted:
        tier = "matched" if exact else "refused"
        return MatrixVerdict(tier, rows, Literal(f"torch {wanted}"), stated=requires)
    if exact:
        return MatrixVerdict("matched" if torch_npu_rows(torch_npu) else "compatible", rows)
    expected = alternatives(dict.fromkeys(f"torch {row.torch}" for row in rows)) if rows else None
    if torch_npu_rows(torch_npu) and all(canonical(torch_npu).startswith(row.torch) for row in rows):
        return MatrixVerdict("refused", rows, expected)
    return MatrixVerdict("unknown", rows, expected, newer_torch_npu(torch_npu))


def required_release(requires: str) -> Optional[str]:
    """Return 2.8.0 of `torch==2.8.0` or `torch (==2.8.0)`; None for other forms, which decide nothing here."""
    found = re.fullmatch(r"torch\s*\(?\s*===?\s*([\w.+!-]+?(?:\.\*)?)\s*\)?", requires.partition(";")[0].strip(), re.I)
    return re.sub(r"\.\*$", ".X", found[1]) if found else None


def judge_python(torch_npu: str, torch: str, python: str) -> MatrixVerdict:
    """Judge the target's Python with torch_npu, or with torch if torch_npu is not in the matrix."""
    rows = torch_npu_rows(torch_npu) or tuple(r for r in rows_of("torch_python") if same_version(r.torch, torch))
    stated = tuple(row for row in rows if row.python)
    if any(python_listed(python, row.python) for row in stated):
        return MatrixVerdict("matched", stated)
    expected = alternatives(dict.fromkeys(f"Python {row.python}" for row in stated)) if stated else None
    return MatrixVerdict("unknown", stated or rows, expected, newer_torch_npu(torch_npu))


def python_listed(python: str, listed: str) -> bool:
    """Return whether X.Y (or X.Y.Z) is in a list like `3.7(>=3.7.5) 3.8(3.8.0-3.8.11) 3.9`.

    The limits in brackets apply if Z is known.
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
    """Return the adapter version of a torch with built-in NPU support: 1.5.0.post2 of `1.5.0+ascend.post2`."""
    version = re.match(r"([\d.]+)\+ascend(?:\.(post\d+|rc\d+))?", torch)
    if version is None:
        return None
    return f"{version[1]}.{version[2]}" if version[2] else version[1]


TIERS: Mapping[str, Text] = {
    "matched": Message("matched, a released combination"),
    "compatible": Message("compatible (weaker than matched)"),
    "refused": Message("a wheel of torch_npu requires the torch of its release"),
}


def pair_reading(subject: str, pair: Text, verdict: MatrixVerdict) -> Reading:
    """Return a verdict as a reading whose value is the tier, with the month of the data.

    A pair that is not published has a reason instead of a value.
    """
    month, evidence = published(), verdict.evidence
    if verdict.stated:
        evidence = Evidence("Requires-Dist", "\n".join(part for part in (verdict.stated, evidence.text) if part))
    if verdict.tier == "unknown":
        reason: Text = Message("not among the published pairs of {month}: {pair}", pair=pair, month=month)
        if verdict.newer is not None:
            reason = Message("{reason}; {newer}", reason=reason, newer=verdict.newer)
        if verdict.expected is not None:
            reason = Message("{reason} (published: {expected})", reason=reason, expected=verdict.expected)
        return Reading(subject, None, evidence, pair, verdict.expected, reason=reason)
    shown = Message("{pair}: {tier} (data of {month})", pair=pair, tier=TIERS[verdict.tier], month=month)
    if verdict.stated:
        tier = Message("as its metadata requires") if verdict.tier == "matched" else Message("its metadata excludes it")
        shown = Message(
            "{pair}: {tier}, {stated} (data of {month})", pair=pair, tier=tier, stated=verdict.stated, month=month
        )
    return Reading(subject, verdict.tier, evidence, shown, verdict.expected)


def hdk_rows(cann: str, *relations: str) -> Iterable[tuple[MatrixRow, str]]:
    """Yield (row, driver version or pattern) of every row of these relations about this CANN and drivers."""
    for row in matrix():
        if row.relation in relations and row.hdk_driver and same_release(cann, row.cann):
            for driver in row.hdk_driver.split(";"):
                yield row, driver.strip()


def toolkits_of_ops(ops: str) -> tuple[MatrixRow, ...]:
    """Return the rows that pair an ops package of this version with toolkits."""
    return tuple(row for row in rows_of("ops_toolkit") if same_release(ops, row.package_version))
