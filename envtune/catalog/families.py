"""The families of checks: one table for the ids, the folders and the headings of reports."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, NamedTuple, Optional

from envtune.messages import Bilingual, Message, Text


class Family(NamedTuple):
    """A family of checks: ids begin with its prefix, `folder` is its place below checks/, playbooks/ and tests/."""

    prefix: str
    folder: str
    title: Text


FAMILIES: Mapping[str, Family] = {
    family.prefix: family
    for family in (
        Family("SYS", "system", Message("Host and operating system")),
        Family("CPU", "cpu", Message("CPU frequency and power")),
        Family("IMG", "images", Message("Image libraries")),
        Family("PY", "python", Message("Python and PyTorch")),
        Family("CANN", "cann", Message("CANN, driver and firmware")),
        Family("ENV", "environment", Message("Environment variables")),
        Family("NET", "network", Message("Network, ports and firewall")),
        Family("CTR", "containers", Message("Containers")),
        Family("PROC", "processes", Message("Processes and NPU memory")),
        Family("BLD", "build", Message("Compilers and hdf5")),
        Family("LOG", "logs", Message("Host logs")),
        Family("CFG", "config", Message("Files of the job")),
    )
}


_POLICY: Mapping[str, Text] = {"POL": Message("Site policy")}  # its check has no file (policy/golden.py)


def folders_of(prefix: str) -> tuple[str, ...]:
    """Return the folders for checks with this prefix; a site's own family is named after its letters."""
    letters = prefix.lower()
    return (FAMILIES[prefix].folder, letters) if prefix in FAMILIES else (letters,)


_titles: dict[str, Text] = {}  # of the catalog that was loaded


def use_titles(rows: Iterable[Mapping[str, Any]]) -> None:
    """Set the headings of a site's families from the rows of their files (checks/<family>/family.yaml)."""
    _titles.clear()
    _titles.update((row["id"], Bilingual(row["title"]["en"], row["title"]["zh"])) for row in rows)


def family_title(prefix: str) -> Optional[Text]:
    """Return the heading of a family; None for a site's family without one."""
    family = FAMILIES.get(prefix)
    return _titles.get(prefix) or (_POLICY.get(prefix) if family is None else family.title)
