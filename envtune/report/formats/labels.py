"""The headings and labels of the documents and of the long report."""

from __future__ import annotations

from typing import Mapping

from envtune.messages import Literal, Message, Text, in_context


def pair(lang: str, name: str, said: str) -> str:
    """Return what is said of something after its name, with the colon of the language; that alone without a name."""
    return Message("{subject}: {found}", subject=name, found=said).to(lang) if name else said


def colon(lang: str) -> str:
    """Return the colon of the language, with the blank that belongs to it."""
    return Message("{subject}: {found}", subject="", found="").to(lang)


def remark(lang: str, name: str, said: str) -> str:
    """Return what is said of something in brackets, those of the language."""
    return Message("({remark})", remark=pair(lang, name, said)).to(lang)


LABELS: Mapping[str, Text] = {
    "host": Message("Host"),
    "npu": Literal("NPU"),
    "cann": Literal("CANN"),
    "python": Literal("Python"),
    "job": Message("Job"),
    "found": Message("found"),
    "expected": Message("expected"),
    "why": Message("why"),
    "do": in_context("text", "do"),
    "fix": Message("fix"),
    "look": in_context("text", "look"),
    "where": Message("where"),
    "waived": Message("waived"),
    "waiver": Message("waiver"),
    "problems": in_context("heading", "Problems"),
    "notes": in_context("heading", "Notes"),
    "unknown": in_context("heading", "Unknown"),
    "others": Message("All other checks"),
    "wrong": Message("What is wrong"),
    "families": Message("All checks"),
    "check": in_context("column", "check"),
    "severity": in_context("column", "severity"),
    "problem": in_context("column", "problem"),
    "errors": Message("known errors"),
    "same": Message("same cause"),
    "fixable": Message("envtune fix can fix this"),
    "search": Message("Search"),
    "evidence": Message("what was read"),
}
