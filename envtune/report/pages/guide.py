"""Citations of the catalog (`seed: "003:1349-1403"`) as people look them up: a document's title and its sections.

The sections of each document, with the line each begins at, are data (envtune/data/guide.csv).
"""

from __future__ import annotations

import csv
import pkgutil
import re
from bisect import bisect_right
from functools import cache
from typing import Iterator, Mapping

from envtune.messages import Bilingual, Message, Text, clauses

_CITATION = re.compile(r"(?:([0-9]{3}):)?([0-9]+)(?:-[0-9]+)?")


def cited(seed: str) -> Iterator[Text]:
    """Yield a line for each document that `seed` cites: its title, and its sections in the order of the document."""
    cited_lines: dict[str, set[int]] = {}
    document = ""
    for found in _CITATION.finditer(seed):
        document = found[1] or document
        starts = documents()[document][0]
        # a line before the first section is counted as one of it
        cited_lines.setdefault(document, set()).add(max(bisect_right(starts, int(found[2])) - 1, 1))
    for document, numbers in cited_lines.items():
        titles = documents()[document][1]
        sections = clauses(titles[number] for number in sorted(numbers))
        yield Message("{document}: {sections}", document=titles[0], sections=sections)


@cache
def documents() -> Mapping[str, tuple[list[int], list[Text]]]:
    """Return, by number, the first lines and titles of every document's sections, after the document itself."""
    data = pkgutil.get_data("envtune", "data/guide.csv") or b""
    found: dict[str, tuple[list[int], list[Text]]] = {}
    for row in csv.DictReader(data.decode("utf-8").splitlines()):
        starts, titles = found.setdefault(row["document"], ([], []))
        starts.append(int(row["line"]))
        titles.append(Bilingual(row["en"] if row["en"] == row["zh"] else f"{row['en']} ({row['zh']})", row["zh"]))
    return found
