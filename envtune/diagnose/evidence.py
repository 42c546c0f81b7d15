"""Combine weak signs if there is no strong answer: an answer of low confidence. Pure.

Two different weak signatures of one entry together are evidence that neither is alone; a single one is enough if it is
the last error of a log that ends with it. An unknown error of another process competes with both.
"""

from __future__ import annotations

from dataclasses import replace

from envtune.diagnose.rank import Candidate, Resolution, follows
from envtune.diagnose.scan import Hit, Scan
from envtune.ranks.failures import FAILED


def with_weak_signs(resolution: Resolution, scan: Scan) -> Resolution:
    """Return the resolution with the hint as its answer, if there is no other answer."""
    root = resolution.job.root
    if resolution.diagnoses or not resolution.hints:
        return resolution
    hints = [h for h in resolution.hints if h.entry.role != "wrapper" and not follows(h, resolution.processes)]
    if root is not None and root.why == FAILED:
        hints = [hint for hint in hints if any(hit.file.path in root.process.files for hit in hint.hits)]
    several = [hint for hint in hints if _signatures(hint) > 1]
    last = [hint for hint in hints if len(resolution.hints) == 1 and _ends_with(hint.hits[-1], scan)]
    chosen = max(several, key=lambda hint: (_signatures(hint), hint.entry.precedence), default=None)
    answer = chosen or next(iter(last), None)
    if answer is None:
        return resolution
    return replace(
        resolution, diagnoses=(answer,), hints=tuple(hint for hint in resolution.hints if hint is not answer)
    )


def _signatures(hint: Candidate) -> int:
    """Return how many different signatures were found, in different lines."""
    first = {hit.pattern.index: hit.line.number for hit in reversed(hint.hits)}
    return min(len(first), len({(hit.file.path, hit.line.number) for hit in hint.hits}))


def _ends_with(hit: Hit, scan: Scan) -> bool:
    """Return whether it is the last error of a file that ends with an error."""
    progress = scan.progress.get(hit.file.path)
    return progress is not None and progress.ends_with(hit.line.number)
