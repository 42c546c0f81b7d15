"""Validated rows -> the types of model.py."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence

from envtune.messages import Bilingual, Literal, Text
from envtune.model import (
    Check,
    Command,
    Covered,
    Criterion,
    Expectation,
    FaqEntry,
    Playbook,
    Severity,
    SeverityRow,
    Signature,
    Step,
)
from envtune.records import expression

Row = Mapping[str, Any]
_STARTS_ENVTUNE = expression(r"(?:sudo |\{sudo\})?envtune (?:fix|check) ")

# What shows that a job uses an NPU (`npu: true` of a signature). A program that asks whether there is one, or could use
# one, shows nothing: is_torch_npu_available, `PyTorch NPU available: False`, `--device {cpu,cuda,npu}`. Nor do words
# such as `ascending=True`, and variables of Ray such as RAY_EXPERIMENTAL_NOSET_ASCEND_RT_VISIBLE_DEVICES.
_NPU = (
    r"(?i)\b(?:ascend(?!ing|ed|s\b|er|ant)"
    r"|hccl(?<![,|{]hccl)(?<!, hccl)(?<![ng][cl][co][lo]/hccl)(?![|}]|,\S|[,/] ?(?:nccl|gloo))|RankID:-?\d|EI000\d\b"
    r"|npu(?:-smi|[: -]?\d|[\"']?(?: available)?\s?[:=]\s?[\"']?true\b)|torch\.npu\b|platform npu\b|on (?:the )?npus?\b"
    r"|(?:device|accelerator)(?:_type|_name)?[\"']?\s?[:=(]\s?[\"']?npu\b|\d{1,4} npus\b)"
    r"|(?:torch[_-]npu|mindspore)(?<!is_torch_npu)(?<!is_mindspore)(?!_available)|vllm[_-]ascend|_npu/|\.npu\("
    r"|accelerator to npu\b|910b[1-4]\b|cann (?:version )?v?[5-9]\.\d"
)


def check_from(data: Row) -> Check:
    """Return a check from its validated mapping."""
    ((probe, arguments),) = data["probe"].items()
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
        expect=expectation_of(data),
        applies=data.get("applies", {}),
        severity_by=tuple(_severity_row(row) for row in data.get("severity_by", ())),
        seed=data.get("seed", ""),
        references=tuple(data.get("references", ())),
        tags=tuple(data.get("tags", ())),
        falsepositives=tuple(_text(t) for t in data.get("falsepositives", ())),
        remedy=_optional(data.get("remedy")),
        commands=_commands(data.get("commands", ())),
        commands_by=tuple((row["when"], _commands(row["commands"])) for row in data.get("commands_by", ())),
        faq=tuple(data.get("faq", ())),
        deadline=float(data.get("deadline", 20)),
        impact=data.get("impact", "degrades"),
        note=data.get("note", False),
        note_when=data.get("note_when", {}),
        covers=tuple(Covered(**row) for row in data.get("covers", ())),
        expected=_optional(data.get("expected")),
    )


def with_directories(check: Check, file: str, directories: Sequence[Path]) -> Check:
    """Return a check of a `--catalog` directory with that option added to its lines that start envtune."""
    words = directory_options(file, directories)
    if not words or "{" in words:  # it would be read as a field of the line
        return check

    def extended(commands: Sequence[Command]) -> tuple[Command, ...]:
        return tuple(
            row._replace(line=f"{row.line} {words}") if _STARTS_ENVTUNE.match(str(row.line)) else row
            for row in commands
        )

    by_facts = tuple((when, extended(commands)) for when, commands in check.commands_by)
    return check._replace(commands=extended(check.commands), commands_by=by_facts)


def directory_options(file: str, directories: Sequence[Path]) -> str:
    """Return the options a command needs to find the entry of that file; none for one that is always read."""
    if not any(file.startswith(f"{os.path.abspath(directory)}/") for directory in directories):
        return ""
    import shlex

    return " ".join(f"--catalog {shlex.quote(os.path.abspath(directory))}" for directory in directories)


def _severity_row(row: Row) -> SeverityRow:
    return SeverityRow(row.get("when", {}), row.get("value"), Severity(row["severity"]))


def _commands(rows: Sequence[Any]) -> tuple[Command, ...]:
    """Return the lines to type; a plain string, as in older catalogues, must be read-only."""
    return tuple(Command(*(("look", row) if isinstance(row, str) else next(iter(row.items())))) for row in rows)


def expectation_of(data: Row) -> Expectation:
    """Return what a check expects; `{profile: train}` means what the table of variables expects of its variable.

    Raises ValueError if the table expects nothing of it, or the check is not about one variable.
    """
    if "profile" not in data["expect"]:
        expect: Expectation = data["expect"]
        return expect
    from envtune.resources.environment.training_values import train_expectation

    ((_, arguments),) = data["probe"].items()
    profile = train_expectation((arguments or {}).get("name", ""))
    if profile is None:
        raise ValueError("the table of variables has no profile for this")
    return {"all": profile}


def faq_from(data: Row) -> FaqEntry:
    """Return an FAQ entry from its validated mapping."""
    return FaqEntry(
        id=data["id"],
        name=data["name"],
        title=_text(data["title"]),
        signatures=tuple(_signature(row) for row in data["signatures"]),
        cause=_text(data["cause"]),
        remedy=_text(data["remedy"]),
        side=data["side"],
        aliases=tuple(data.get("aliases", ())),
        role=data.get("role", "cause"),
        precedence=data.get("precedence", 500),
        proves=_criteria(data, "proves"),
        favours=_criteria(data, "favours"),
        rules_out=_criteria(data, "rules_out"),
        run=data.get("run", ""),
        settings={name: tuple(values) for name, values in data.get("set", {}).items()},
        named_by=tuple(data.get("named_by", ())),
        versions=data.get("versions", {}),
        seed=data.get("seed", ""),
        references=tuple(data.get("references", ())),
    )


def playbook_from(data: Row) -> Playbook:
    """Return a playbook from its validated mapping."""
    return Playbook(
        id=data["id"],
        title=_text(data["title"]),
        fixes=tuple(data["fixes"]),
        safety=data["safety"],
        disruption=data["disruption"],
        steps=tuple(_step(row) for row in data["steps"]),
        root=data.get("requires", {}).get("root", False),
        seed=data.get("seed", ""),
        references=tuple(data.get("references", ())),
    )


def _criteria(data: Row, effect: str) -> tuple[Criterion, ...]:
    """Return the items of one list; those of a former `confirm` count as favouring the entry."""
    usual = "pass" if effect == "rules_out" else "fail"
    rows = [{"outcome": usual, **row} for row in data.get(effect, ())]
    if effect == "favours":
        rows += [{"check": check} for check in data.get("confirm", ())]
    return tuple(Criterion(**{**row, "found": _optional(row.get("found"))}) for row in rows)


def _signature(row: Row) -> Signature:
    return Signature(
        regex=row["regex"] if "regex" in row else _expression(row),
        strength=row["strength"],
        origin=row["origin"],
        multiline=row.get("multiline", False),
        requires=(*row.get("requires", ()), *([_NPU] if row.get("npu") else ())),
        unless=tuple(row.get("unless", ())),
        tokens=tuple(row.get("tokens", ())),
        frame=row.get("frame", ""),
    )


def _expression(row: Row) -> str:
    from envtune.catalog.tokens import expression_of

    return expression_of(row["tokens"], row.get("multiline", False))


def _step(row: Row) -> Step:
    ((kind, arguments),) = row.items()
    if kind != "instructions":
        return Step(kind, arguments or {})
    return Step(kind, {}, _pairs(arguments["en"], arguments["zh"]))


def _pairs(en: Sequence[str], zh: Sequence[str]) -> tuple[Text, ...]:
    return tuple(Bilingual(one, other) for one, other in zip(en, zh))


def _optional(value: Any) -> Optional[Text]:
    return _text(value) if value else None


def _text(value: Any) -> Text:
    return Literal(value) if isinstance(value, str) else Bilingual(value["en"], value["zh"])
