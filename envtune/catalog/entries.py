"""Validated rows -> the types of model.py."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Sequence

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
_SEVERITIES = {severity.value: severity for severity in Severity}
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


def check_from(data: Row, later: Optional[Callable[[str, int], Text]] = None) -> Check:
    """Return a check from its validated mapping.

    Of a short row (store.py) `later` makes the texts that it only counts, by their name and number.
    """
    get = data.get  # this runs for every check at every start
    ((probe, arguments),) = data["probe"].items()
    commands, rows, covers = get("commands"), get("severity_by"), get("covers")
    return Check(
        id=data["id"],
        name=data["name"],
        title=text_from(data["title"]),
        status=data["status"],
        severity=_SEVERITIES[data["severity"]],
        rationale=text_from(data["rationale"]) if later is None else later("rationale", 0),
        origin=data["origin"],
        probe=probe,
        arguments=arguments or {},
        expect=expectation_of(data),
        applies=get("applies", {}),
        severity_by=tuple([_severity_row(row) for row in rows]) if rows else (),
        seed=get("seed", ""),
        references=tuple(get("references", ())),
        tags=tuple(get("tags", ())),
        falsepositives=_falsepositives(data, later),
        remedy=_optional(get("remedy")) if later is None or not get("remedy") else later("remedy", 0),
        commands=_commands(commands) if commands else (),
        commands_by=tuple([(row["when"], _commands(row["commands"])) for row in get("commands_by", ())]),
        faq=tuple(get("faq", ())),
        deadline=float(get("deadline", 20)),
        impact=get("impact", "degrades"),
        note=get("note", False),
        note_when=get("note_when", {}),
        covers=tuple([Covered(**row) for row in covers]) if covers else (),
        expected=_optional(get("expected")),
    )


def _falsepositives(data: Row, later: Optional[Callable[[str, int], Text]]) -> tuple[Text, ...]:
    if later is None:
        return tuple(text_from(text) for text in data.get("falsepositives", ()))
    return tuple([later("falsepositives", number) for number in range(data.get("falsepositives", 0))])


def with_directories(check: Check, file: str, directories: Sequence[Path]) -> Check:
    """Return a check of a `--catalog` directory with that option added to its lines that start envtune."""
    return with_options(check, directory_options(file, directories))


def with_options(check: Check, words: str) -> Check:
    """Return the check with these words added to its lines that start `envtune fix` or `check`."""
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
    """Return the lines to type; a plain line, as former catalogs have them, may only look."""
    return tuple([Command(*(("look", row) if isinstance(row, str) else next(iter(row.items())))) for row in rows])


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
        title=text_from(data["title"]),
        signatures=tuple(_signature(row) for row in data["signatures"]),
        cause=text_from(data["cause"]),
        remedy=text_from(data["remedy"]),
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
        title=text_from(data["title"]),
        fixes=tuple(data["fixes"]),
        safety=data["safety"],
        disruption=data["disruption"],
        steps=tuple(_step(row) for row in data["steps"]),
        root=data.get("requires", {}).get("root", False),
        seed=data.get("seed", ""),
        references=tuple(data.get("references", ())),
    )


def _criteria(data: Row, effect: str) -> tuple[Criterion, ...]:
    """Return the items of one list; those of a former `confirm` count as favoring the entry."""
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
    from envtune.catalog.signatures.tokens import expression_of

    return expression_of(row["tokens"], row.get("multiline", False))


def _step(row: Row) -> Step:
    ((kind, arguments),) = row.items()
    if kind != "instructions":
        return Step(kind, arguments or {})
    return Step(kind, {}, _pairs(arguments["en"], arguments["zh"]))


def _pairs(en: Sequence[str], zh: Sequence[str]) -> tuple[Text, ...]:
    return tuple(Bilingual(one, other) for one, other in zip(en, zh))


def _optional(value: Any) -> Optional[Text]:
    return text_from(value) if value else None


def text_from(value: Any) -> Text:
    """Return a text of the catalog: the same in both languages, or one for each."""
    return Literal(value) if isinstance(value, str) else Bilingual(value["en"], value["zh"])
