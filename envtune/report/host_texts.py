"""What a report says of the host and of the job: the lines of the long form, the line of the short one."""

from __future__ import annotations

from typing import Iterable, Iterator, Mapping, Optional

from envtune.audit.subjects import SYSTEMS, system_name
from envtune.job.target import THIS_SHELL
from envtune.messages import Joined, Literal, Message, Text, in_context, listed
from envtune.model import Fact, Report, Source


def header_texts(report: Report) -> Mapping[str, Text]:
    """Return the lines of the header, made of facts and target."""
    facts = {fact.name: fact for fact in report.facts}

    def show(name: str) -> Text:
        fact = facts.get(name)
        if fact is None:
            return in_context("value", "unknown")
        if fact.value is not None:
            return Literal(fact.value)
        reason = fact.reason or Literal("")
        return Message("unknown ({reason})", reason=reason)

    system = Joined([_system(show("os")), show("os_version")], " ")
    cpus = facts.get("cpus")
    known = cpus is not None and cpus.value is not None
    shown = Message("{count} CPUs", count=show("cpus")) if known else Message("CPUs: {count}", count=show("cpus"))
    return {
        "host": listed([system, kind_of_machine(report.facts), show("arch"), show("kernel"), shown]),
        "npu": _npu(show("npu"), show("npu_count"), show("driver"), show("firmware")),
        "cann": _unless_none(show("cann"), Message("none installed")),
        "python": _python(report.target),
        "job": _job(report.target),
    }


def host_texts(report: Report) -> list[Text]:
    """Return what the short report says: NPUs, driver, CANN, Python, system; the job where one is named."""
    values = {fact.name: fact.value for fact in report.facts}
    machine = kind_of_machine(report.facts)
    python = report.target.get("python_version")
    system = [system_name(values.get("os") or "?"), *(values.get(name) or "?" for name in ("os_version", "arch"))]
    parts = [
        *_ascend(values),
        Message("Python {version}", version=python) if python else Message("Python unknown"),
        Literal(" ".join(system)),
        *([] if machine.en == "bare metal" else [machine]),
    ]
    job = report.target.get("environment", THIS_SHELL)
    return parts if job == THIS_SHELL else [*parts, _job(report.target)]


def _system(name: Text) -> Text:
    return Literal(system_name(name.en)) if name.en.lower() in SYSTEMS else name


def _ascend(values: Mapping[str, Optional[str]]) -> Iterator[Text]:
    """Yield NPUs, driver and CANN; a host without anything of Ascend has none of them to name."""
    if values.get("ascend") == "false":
        return
    model, count = values.get("npu"), values.get("npu_count")
    if model == "none":
        yield Message("no NPU")
    else:
        yield Literal(f"{count} x {model}") if model and count else Message("NPUs unknown")
    driver, cann = values.get("driver"), values.get("cann")
    if driver == "none":
        yield Message("no driver")
    else:
        yield Message("driver {version}", version=driver) if driver else Message("driver unknown")
    if cann == "none":
        yield Message("no CANN")
    else:
        yield Message("CANN {version}", version=cann) if cann else Message("CANN unknown")


def kind_of_machine(facts: Iterable[Fact]) -> Text:
    """Return container, virtual machine or bare metal, as far as the facts say."""
    values = {"container": None, "vm": None, **{fact.name: fact.value for fact in facts}}
    if values["container"] == "true":
        return Message("container")
    if values["vm"] == "true":
        return Message("virtual machine")
    return Message("kind of machine unknown") if None in (values["container"], values["vm"]) else Message("bare metal")


def _unless_none(value: Text, none: Text) -> Text:
    return none if value.en == "none" else value


def _npu(model: Text, count: Text, driver: Text, firmware: Text) -> Text:
    if model.en == "none":
        return Message("none")
    return Message(
        "{count} x {model}, driver {driver}, firmware {firmware}",
        count=count,
        model=model,
        driver=_unless_none(driver, Message("none")),
        firmware=_unless_none(firmware, Message("none")),
    )


def _python(target: Mapping[str, Source]) -> Text:
    if "python" not in target:
        return Message("unknown: {reason}", reason=target.get("python_reason", ""))
    version, reason = target.get("python_version", "?"), target.get("python_chosen", "")
    return Message("{version}  {path}  ({reason})", version=version, path=target["python"], reason=reason)


def _job(target: Mapping[str, Source]) -> Text:
    if "environment_reason" in target:
        return Message("environment unknown: {reason}", reason=target["environment_reason"])
    return in_context("job", "environment of {source}", source=target.get("environment", "?"))
