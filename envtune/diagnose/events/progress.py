"""What a log shows after an error: steps that go on, a retry that succeeds, a run that ends well, or a new start."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

from envtune.diagnose.events.forms import is_mention
from envtune.diagnose.logs.lines import is_error
from envtune.records import expression

STEPS = 10  # lines of steps after an error that show that the run went on
FEW = 3  # lines of steps that show it where no line says that anything failed
END = 12  # lines at the end of a file
NEVER = 1 << 62
MAX_LINE = 500  # characters of a line that are looked at
NEAR = 40  # lines after an error in which its retry is looked for

# All but _WARNING and _START are tried on lower-case text: an expression that ignores case is ten times as slow.
_STEP = expression(
    r"(?:\u8fed\u4ee3|\u7b2c|\u6b65\u6570|\u8f6e\u6b21|\u5df2\u5b8c\u6210|\u8fdb\u5ea6)\W{0,3}\d"
    r"|\b(?:global_?steps?|steps?|iter(?:ation)?|it|epoch|batch)\b(?:\(\w{1,8}\))?\W{0,16}\d|\d/\d+ ?\["
    r"|\{'(?:train_|eval_)?loss'"
)
_MEASURED = expression(
    r"\u635f\u5931|\u8017\u65f6|/\u79d2|\u79d2/|loss|lr\b|learning_rate|it/s|s/it|throughput|samples|tokens?[/ ]|time"
    r"|fps|ms\b|grad|acc|reward"
)
_SERVED = expression(
    r"#running-req: [1-9].{0,200}throughput|throughput: [\d.]+ tokens/s.{0,200}running: [1-9]|http/1\.[01]\\?\" 200\b"
    r"|\b(?:post|get) /[\w./-]{1,60} (?:http/\S{1,4} )?200\b"
    r"|\breq(?:uest)?[_ -]?(?:id)?[=: #] ?(?!.{0,200}(?:fail|error|abort|timeout))\S+.{0,160}"
    r"(?:\bttft\b|\btpot\b|\bgen(?:erated)?\W{1,3}\d|status\W{1,3}(?:ok|200)\b)"
)
_RECOVERED = expression(
    r"(?:retr(?:y|ied|ying|ies)|attempt|trying batch)\b.{0,60}(?:(?<!not )(?<!un)succe(?!ss: no|ss=false)|\bok\b"
    r"|(?<!not )\bconnected|\bdone|\bworked)"
    r"|(?<!un)(?:succe\w+|connected|recovered|reconnected|established|worked|joined|completed|passed)\b.{0,40}"
    r"(?:after|on|at|from|in)\b.{0,30}(?:retr|attempt|failure|error|try\b|tries\b|\d+ s)|\b(?:re)connect\w* succe"
    r"|\brecovered from\b|\bis reachable again|\bback online"
    r"|\u91cd\u8bd5.{0,12}\u6210\u529f|\u5df2\u6062\u590d|\u91cd\u8fde\u6210\u529f"
)
_CAUGHT = expression(
    r"\b(?:caught (?:by|(?:an? )?(?:oom|out of memory|\w*error))|skip(?:ping|ped)(?! iterations)|ignor(?:ing|ed)"
    r"|fall(?:ing|s)? ?back|retrying with|trying \d+|(?:reduc|lower|decreas)(?:ing|ed"
    r"|es) (?:the )?(?:micro[_ -]?)?batch|halv\w+"
    r"|(?:empt(?:y|ied|ying)|clear\w*) (?:the )?cache|cache emptied)\b|\u8df3\u8fc7|\u56de\u9000"
)
_SUCCESS = expression(
    r"\b(?:train(?:ing)?|finetun\w+|run|job|evaluation|benchmark|pipeline|inference)\b (?:is |has |was )?"
    r"(?:successfully )?(?:complete[d]?|finished|done|succeeded|ended (?:well|normally))\b"
    r"(?!.{0,40}(?:error|fail|exit|abort|kill|exception))"
    r"|exit(?:ed)? (?:with )?(?:code|status)[ :=]{1,2}0\b|\b(?:finished|completed) (?:the )?training\b"
    r"|\btrain_runtime\b|^#\d+ (?:exporting|writing|naming) .*\bdone\b"
    r"|(?:\u8bad\u7ec3|\u4efb\u52a1|\u63a8\u7406|\u8bc4\u6d4b)(?:\u5df2)?(?:\u5b8c\u6210|\u7ed3\u675f)"
    r"(?!.{0,20}(?:\u5931\u8d25|\u5f02\u5e38|\u9519\u8bef))"
    r"|(?<![\u975e\u672a\u4e0d\u6cd5\u80fd])\u6b63\u5e38\u9000\u51fa|\bstatus\W{1,4}succeeded\b"
    # of CI services
    r"|^(?:\[?\d{4}-\S+\s+)?(?:finished: success|build success(?:ful)?\b|##\[section\]finishing: .*succeeded)"
    r"|\bconclusion\W{1,4}success\b"
)
_START = expression(
    r"ChildFailedError|Root Cause \(first observed|[Rr]estarting (?:the )?(?:worker|job|training)"
    r"|[Ww]orker group FAILED|will restart worker group|\bKilled\b|failed \(exitcode"
)
_RESTART = expression(
    r"will restart worker group|restart_count[=:] ?[1-9]"
    r"|\u7b2c ?[2-9] ?\u6b21(?:\u62c9\u8d77|\u542f\u52a8|\u91cd\u542f)"
)
_WARNING = expression(r"\[?W(?:\d{3,4})?\s|.{0,120}\bWARN(?:ING)?\b")
_LOGGED = expression(r"\d\d:\d\d:\d\d.{0,40}\b(?:INFO|DEBUG)\b|\b(?:INFO|DEBUG)\b.{0,40}\d\d:\d\d:\d\d")


class _Kind(NamedTuple):
    """What a line shows if, in lower case, it has one of the words and all of the expressions match."""

    name: str
    words: str  # separated by blanks; most lines have none, and to look for words costs a tenth of the expressions
    expressions: tuple[re.Pattern[str], ...]

    def is_shown(self, lowered: str) -> bool:
        """Return whether the line, in lower case, is one."""
        return any(word in lowered for word in self.words.split()) and all(e.search(lowered) for e in self.expressions)


_KINDS = (
    _Kind(
        "steps", "step iter it epoch batch / loss' \u8fed\u4ee3 \u7b2c \u6b65\u6570 \u8f6e\u6b21", (_STEP, _MEASURED)
    ),
    _Kind("steps", "throughput http/1 post get req", (_SERVED,)),
    _Kind(
        "recovered",
        "retr attempt trying succe connect recover establish worked joined reachable online"
        " \u91cd\u8bd5 \u6062\u590d \u91cd\u8fde",
        (_RECOVERED,),
    ),
    _Kind("caught", "caught skip ignor fall trying batch halv cache \u8df3\u8fc7 \u56de\u9000", (_CAUGHT,)),
    _Kind(
        "succeeded",
        "complete finish done succe ended exit train_runtime"
        " \u8bad\u7ec3 \u4efb\u52a1 \u63a8\u7406 \u8bc4\u6d4b \u6b63\u5e38",
        (_SUCCESS,),
    ),
)
_STEPS = tuple(kind for kind in _KINDS if kind.name == "steps")
_MAYBE_STEP = expression(f"{_STEP.pattern}|{_SERVED.pattern}")  # one pass over many lines costs less than one over each


class Progress(NamedTuple):
    """The numbers of lines near the end of a file that show what became of the run, in order."""

    steps: tuple[int, ...] = ()
    recovered: tuple[int, ...] = ()
    caught: tuple[int, ...] = ()
    succeeded: tuple[int, ...] = ()
    logged: tuple[int, ...] = ()  # with a time and a level at which nothing fails
    starts: tuple[int, ...] = ()
    restarts: tuple[int, ...] = ()  # of the launcher, by itself
    errors: tuple[int, ...] = ()
    warnings: tuple[int, ...] = ()
    lines: int = 0  # the number of the last one

    def ends_with(self, line: int) -> bool:
        """Return whether the error in a line is the last one, at the end of the file."""
        return line in self.errors and line == self.errors[-1] and self.lines - line <= END

    def why_outlived(self, line: int) -> str:
        """Return why the error in a line did not end the run: steps, recovered, caught, succeeded; or nothing."""
        end = min(_after(self.starts, line)[:1], default=NEVER)
        last_error = self.errors[-1] if self.errors else 0
        following = [number for number in _after(self.steps, line) if number < end]
        if len(following) >= (FEW if line not in self.errors and line > last_error else STEPS):
            return "steps"
        again = [number for number in self.restarts if line < number <= line + NEAR and last_error <= number]
        if again and len(_after(self.steps, again[0])) >= STEPS:
            return "recovered"
        if any(number <= line + NEAR for number in _after(self.recovered, line - 1)):
            return "recovered"
        caught = [number for number in _after(self.caught, line) if last_error < number <= line + NEAR]
        if caught and any(caught[0] < number < end for number in (*self.steps, *self.succeeded, *self.logged)):
            return "caught"
        return "succeeded" if any(last_error < number < end for number in _after(self.succeeded, line)) else ""


def _after(numbers: tuple[int, ...], line: int) -> tuple[int, ...]:
    return numbers[bisect_right(numbers, line) :]


def progress_of(text: bytes, first: int) -> Progress:
    """Return what lines show, of which the first has that number; a step that is seen twice counts once."""
    found: dict[str, list[int]] = {}
    seen: set[str] = set()
    for number, raw in enumerate(text.split(b"\n"), first):
        line = raw[:MAX_LINE].decode("utf-8", "replace")
        kinds = _kinds(line)
        for kind in kinds:
            if kind != "steps" or line not in seen:
                found.setdefault(kind, []).append(number)
        if kinds:
            seen.add(line)
    return Progress(**{kind: tuple(numbers) for kind, numbers in found.items()}, lines=first + text.count(b"\n"))


def steps_follow(text: bytes) -> bool:
    """Return whether so many lines of steps show that a run goes on, before any of the end of a process."""
    whole = text.decode("utf-8", "replace")
    end = _START.search(whole)
    lowered = (whole if end is None else whole[: end.start()]).lower()
    steps: set[str] = set()
    for found in _MAYBE_STEP.finditer(lowered):
        begin, stop = lowered.rfind("\n", 0, found.start()) + 1, lowered.find("\n", found.start())
        line = lowered[begin : stop if stop >= 0 else None][:MAX_LINE]
        if any(kind.is_shown(line) for kind in _STEPS):
            steps.add(line)
            if len(steps) >= STEPS:
                return True
    return False


def _kinds(line: str) -> set[str]:
    """Return the fields of Progress that a line belongs to."""
    lowered = line.lower()
    kinds = {kind.name for kind in _KINDS if kind.is_shown(lowered)}
    if _START.search(line):
        kinds.add("starts")
    if _RESTART.search(line):
        kinds.add("restarts")
    if is_error(line) and not is_mention(line):
        kinds.add("errors")
    elif _WARNING.match(line):
        kinds.add("warnings")
    elif _LOGGED.search(line):
        kinds.add("logged")
    return kinds
