"""What to type on this host about a failed check: the lines of the catalog filled in, for the job that was judged.

A line has fields in braces: `{id}` of the check; `{subject}` and what a subject such as `npu3` or `port 60003` names
(`{device}`, `{pci}`, `{pid}`, `{port}`); `{python}` of the job, `{pip}`, which is that Python if pip may write, with
`{sudo}` if it belongs to root; and what the probe adds (Reading.fields). A line with an unknown field is not shown.
Every value is quoted for the shell.
"""

from __future__ import annotations

from typing import Iterable, Iterator, Mapping, Optional, Sequence

from envtune.audit.applicability import excluded
from envtune.commandline import WithheldError, checked, for_this_host, line, quoted
from envtune.context import Context
from envtune.errors import HostError, Skipped, Verdict
from envtune.messages import N_, Message, Text
from envtune.model import Check, Command, Finding, Reading
from envtune.ranges import single_subjects
from envtune.records import expression

REFUSED = N_("envtune fix cannot do it: {reason}")
MAX_SUBJECTS = 6  # of one finding for which lines are shown
_FIELD = expression(r"\{([a-z_]+)\}")
_SUBJECTS = (
    ("device", "npu", expression(r"npu(\d{1,4})(?:\b.*)?")),
    ("pci", "pci ", expression(r"pci ([0-9a-fA-F:.]+)")),
    ("pid", "process ", expression(r"process (\d{1,10})")),
    ("port", "port ", expression(r"port (\d{1,5})")),
)
_PYTHON = expression(r"(?<![\w./-])python3(?= -[cm] )")
_MEANS_PYTHON3 = ("torch.interpreter", "python.pip_command")  # there the question is what `python3` means
_OF_A_SHELL = ("export ", "unset ", "source ")
_FIX = expression(r"envtune\S* fix (\S+)")
_ENVTUNE = expression(r"(?<![\w/.-])envtune (?:fix|check) ")


def commands_for(check: Check, context: Context, group: Sequence[Reading]) -> tuple[Command, ...]:
    """Return the lines for the readings of one finding, repairs first."""
    made: list[Command] = []
    for reading in group[:MAX_SUBJECTS]:
        made += reading.commands or _filled(check, context, reading)
    fitting = (_for_the_job(command, context) for command in made)
    shown = dict.fromkeys(command for command in fitting if command is not None)
    return tuple(sorted(shown, key=lambda command: command.kind != "fix"))


def devices(subject: str) -> tuple[str, ...]:
    """Return the numbers of the NPUs that a subject names."""
    _, _, pattern = _SUBJECTS[0]
    return tuple(found[1] for found in map(pattern.fullmatch, single_subjects(subject)) if found is not None)


def names_fix(finding: Finding) -> bool:
    """Return whether a line runs `envtune fix` for the finding."""
    return any(_is_fix(command, finding.id) for command in finding.commands)


def with_refusals(findings: Iterable[Finding], refused: Mapping[str, Text]) -> tuple[Finding, ...]:
    """Return the findings with each line that `envtune fix` would refuse here replaced by the reason."""
    return tuple(
        _with_refusal(finding, refused[finding.id]) if finding.id in refused and names_fix(finding) else finding
        for finding in findings
    )


def _with_refusal(finding: Finding, reason: Text) -> Finding:
    refusal = Command("fix", Message(REFUSED, reason=reason))
    made = (
        refusal if _is_fix(command, finding.id) and not _is_met(command, reason) else command
        for command in finding.commands
    )
    return finding._replace(commands=tuple(dict.fromkeys(made)))


def is_refusal(text: Text) -> bool:
    """Return whether the text only says why `envtune fix` does not fix it here, which is no instruction."""
    return isinstance(text, Message) and text.template == REFUSED


def _is_fix(command: Command, check: str) -> bool:
    """Return whether the line runs `envtune fix` without options that the plan of a report does not have (--peer)."""
    line = command.line if isinstance(command.line, str) else ""
    return " fix " in line and "--peer" not in line and check in _FIX.findall(line)


def _is_met(command: Command, reason: Text) -> bool:
    """Return whether the line first does what the reason asks for, such as installing pip."""
    first, joined, _ = str(command.line).partition(" && ")
    return bool(joined) and first.removeprefix("sudo ") in reason.en


def _filled(check: Check, context: Context, reading: Reading) -> Iterator[Command]:
    known = _fields(check, context, reading)
    for kind, text in _templates(check, context):
        assert isinstance(text, str)
        if "{" not in text or all(name in known for name in _FIELD.findall(text)):
            try:
                text = _pip_first(context) + text if "{pip}" in text else text
                yield Command(kind, _line(check, context, text, known))
            except (WithheldError, Skipped) as error:
                yield Command(kind, error.reason)


def _line(check: Check, context: Context, text: str, known: Mapping[str, str]) -> str:
    """Return a line with its fields filled in, for the job's Python. Raises WithheldError."""
    if "python3" in text and check.probe not in _MEANS_PYTHON3 and "python" in known:
        text = _PYTHON.sub("{python}", text)
    filled = text
    if "{" in text:
        filled = _FIELD.sub(lambda field: known["sudo"] if field[1] == "sudo" else quoted(known[field[1]]), text)
    is_for_the_job = context.host.live and "envtune " in text and _ENVTUNE.search(text)
    words = context.target.options._replace(peers=()).words if is_for_the_job else ()
    return f"{filled} {line(words)}" if words else filled


def _templates(check: Check, context: Context) -> tuple[Command, ...]:
    """Return the lines of the catalog (`commands_by` may give them per fact)."""
    rows = (commands for when, commands in check.commands_by if excluded(when, context.facts)[0] is None)
    return next(rows, check.commands)


def _fields(check: Check, context: Context, reading: Reading) -> dict[str, str]:
    fields = {"id": check.id, "subject": reading.subject}
    for name, first, pattern in _SUBJECTS:
        found = pattern.fullmatch(reading.subject) if reading.subject.startswith(first) else None
        if found is not None:
            fields[name] = found[1]
    python = context.target.python
    if python is not None:  # by path: `python3` may be another one in another shell
        fields.update(python=python.path, pip=python.path, sudo="sudo " if _is_roots(context, python.prefix) else "")
    return {**fields, **reading.fields}


def _pip_first(context: Context) -> str:
    """Return the start of the line if the job's Python has no pip. Raises Skipped if pip must not write."""
    from envtune.resources.python.site import WithoutPip, refuse_without_pip

    try:
        refuse_without_pip(context)
    except WithoutPip as missing:
        if missing.is_systems:
            raise
        return "{sudo}{python} -m ensurepip && "
    except (HostError, Verdict):
        pass
    return ""


def _is_roots(context: Context, path: str) -> bool:
    try:
        return context.host.stat(path).uid == 0
    except HostError:
        return False


def _for_the_job(command: Command, context: Context) -> Optional[Command]:
    """Return the line for the job that was judged; None if it would not affect that job.

    Setting variables of a shell repairs the jobs that this shell will start. Variables of a launch script or an env
    file are repaired in that file, and those of a running process or a finished job cannot be repaired.
    """
    if isinstance(command.line, str):
        text = for_this_host(command.line) if context.host.live else command.line
        command = command._replace(line=checked(text))
    options = context.target.options
    if command.kind != "fix" or not isinstance(command.line, str) or not command.line.startswith(_OF_A_SHELL):
        return command
    if options.pid is not None or context.target.environment.finished:
        return None
    file = options.script or options.env_file
    if file is None:
        return command
    line = command.line
    if options.script is None and context.target.environment.is_plain:
        verb, _, line = line.partition(" ")
        if verb == "unset":
            return Command("fix", Message("remove {name} from {file}", name=line, file=file))
        if verb != "export":
            return None
    return Command("fix", Message("in {file}: {line}", file=file, line=line))
