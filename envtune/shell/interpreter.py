"""Follows a shell script: which variables it has set when it starts the job. Nothing is run.

A branch whose condition cannot be told is followed both ways, and what the two ways differ in is not known. A loop over
known words is followed word by word, any other until nothing changes. Subshells and pipelines change nothing outside.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Iterator, Optional, Sequence

from envtune.host import Host
from envtune.messages import Message
from envtune.shell import commands
from envtune.shell.assignments import calculate, restore
from envtune.shell.conditions import chosen_branch, double_bracket
from envtune.shell.expansion import Shell, Value, fields_of, unknown
from envtune.shell.lexer import Broken
from envtune.shell.nodes import (
    AndOr,
    Arithmetic,
    Body,
    Case,
    Command,
    Function,
    Group,
    If,
    Loop,
    Pipeline,
    Simple,
    Test,
)
from envtune.shell.parser import statements
from envtune.shell.state import Launch, State, merge

STEPS = 20000  # commands followed in one script, loops and sourced files included
NESTING = 12  # scripts sourced by scripts, and functions that call functions
UNROLLED = 16  # words of a for loop followed one by one
Status = Optional[bool]  # whether a command succeeds; None: not known


@dataclass
class Frame:
    """A script or function that is being followed. `path` is where its lines are."""

    path: str
    script: str  # $0
    returns: list[State] = field(default_factory=list)
    hidden: dict[str, tuple[Optional[Value], bool]] = field(default_factory=dict)  # what `local` covers
    function: bool = False


@dataclass
class Run:
    """One script being followed on one host."""

    host: Host
    frames: list[Frame]
    launches: list[Launch] = field(default_factory=list)
    files: list[str] = field(default_factory=list)  # read, in order
    steps: int = 0
    line: int = 0

    @property
    def frame(self) -> Frame:
        """The innermost script or function."""
        return self.frames[-1]

    @property
    def place(self) -> str:
        """file:line of the command at hand."""
        return f"{self.frame.path}:{self.line}"

    def shell(self, state: State) -> Shell:
        """What expansion asks in this state."""

        def lookup(name: str) -> Optional[Value]:
            if name == "BASH_SOURCE":
                return self.frame.path
            if name == "PWD":
                return state.cwd if state.cwd is not None else unknown("$PWD", self.place)
            if name not in state.values and name in _OF_THE_SHELL:
                return unknown(f"${name}", self.place)
            return state.lookup(name)

        def assign(name: str, value: Value) -> None:
            state.set(name, value, self.place)

        def output(text: str) -> Value:
            return commands.output_of(self, state, text)

        return Shell(lookup, assign, output, state.arguments, self.frame.script, self.place)

    # ------------------------------------------------------------------ text and bodies

    def follow(self, text: str, state: State) -> None:
        """Follow a script's text; where it cannot be read on, nothing is known behind that line."""
        try:
            for statement in statements(text):
                if not state.alive:
                    return
                self.and_or(statement, state)
        except Broken as problem:
            place = f"{self.frame.path}:{problem.line}"
            reason = problem.reason
            if "\r\n" in text:  # for a shell the carriage return belongs to the word: `fi` is not `fi` then
                reason = Message("{reason} (the file has Windows line ends)", reason=reason)
            state.forget(Message("{place} cannot be followed: {reason}", place=place, reason=reason))
        except RecursionError:
            place = self.frame.path
            state.forget(Message("{place} is nested too deeply", place=place))

    def body(self, body: Body, state: State) -> Status:
        """Follow statements; the status of the last."""
        status: Status = True
        for statement in body:
            if not state.alive:
                break
            status = self.and_or(statement, state)
        return status

    def and_or(self, statement: AndOr, state: State) -> Status:
        """Follow one statement."""
        if statement.background:
            state, status = state.copy(), True
            self._chain(statement, state)
            return status
        return self._chain(statement, state)

    def _chain(self, statement: AndOr, state: State) -> Status:
        status = self.pipeline(statement.first, state)
        for operator, pipeline in statement.rest:
            if not state.alive:
                break
            if status is (operator == "||"):
                continue
            if status is not None:
                status = self.pipeline(pipeline, state)
                continue
            before, taken = state.copy(), state.copy()
            self.pipeline(pipeline, taken)
            state.become(merge([taken, state], before))
        return status

    def pipeline(self, pipeline: Pipeline, state: State) -> Status:
        """Follow commands joined by `|`: each in a subshell when there are several."""
        if len(pipeline.commands) > 1:
            for command in pipeline.commands:
                self.command(command, state.copy())
            return None
        status = self.command(pipeline.commands[0], state)
        return status if status is None or not pipeline.negated else not status

    def command(self, command: Command, state: State) -> Status:
        """Follow one command."""
        self.steps += 1
        if self.steps > STEPS:
            raise Broken(self.line, Message("the script does too much to follow"))
        self.line = getattr(command, "line", self.line)
        follow: Any = _FOLLOWERS[type(command)]
        status: Status = follow(self, command, state)
        return status

    # ------------------------------------------------------------------ blocks

    def _simple(self, command: Simple, state: State) -> Status:
        return commands.simple(self, command, state)

    def _group(self, group: Group, state: State) -> Status:
        return self.body(group.body, state.copy() if group.subshell else state)

    def _if(self, block: If, state: State) -> Status:
        before, outcomes = state.copy(), []
        current: Optional[State] = state.copy()
        for condition, body in block.branches:
            assert current is not None
            status = self.body(condition, current)
            if not current.alive:
                break
            if status is not False:
                taken = current if status else current.copy()
                self.body(body, taken)
                outcomes.append(taken)
                if status:
                    current = None
                    break
        if current is not None:
            self.body(block.other, current)
            outcomes.append(current)
        state.become(merge(outcomes, before))
        return None

    def _case(self, block: Case, state: State) -> Status:
        before, outcomes = state.copy(), []
        for patterns, body in block.branches:
            chosen = chosen_branch(block.word.text, [token.text for token in patterns], self.shell(state))
            if chosen is False:
                continue
            taken = state.copy()
            self.body(body, taken)
            outcomes.append(taken)
            if chosen:
                break
        else:
            outcomes.append(state.copy())
        state.become(merge(outcomes, before))
        return None

    def _loop(self, loop: Loop, state: State) -> Status:
        words = self._words(loop, state)
        if words is not None:
            for word in words:
                if state.alive:
                    state.set(loop.variable, word, self.place)
                    self.body(loop.body, state)
            return None
        before = state.copy()
        if loop.condition and self.body(loop.condition, state) is loop.until:
            return None  # never entered
        for _ in range(4):
            taken, started = state.copy(), state.copy()
            if loop.variable:
                taken.set(loop.variable, unknown(f"${loop.variable}", self.place), self.place)
            self.body(loop.body, taken)
            self.body(loop.condition, taken)
            state.become(merge([taken, state], before))
            if (state.values, state.exported) == (started.values, started.exported):
                break
        return None

    def _words(self, loop: Loop, state: State) -> Optional[list[Value]]:
        """The words of a for loop that can be followed one by one; None for every other loop."""
        if loop.words is None or not loop.variable or any(leaves_early(one) for one in loop.body):
            return None
        words = [one for token in loop.words for one in fields_of(token.text, self.shell(state))]
        known = all(isinstance(word, str) and not set(word) & set("*?[{") for word in words)
        return words if known and len(words) <= UNROLLED else None

    def _function(self, function: Function, state: State) -> Status:
        state.functions[function.name] = function
        return True

    def _test(self, test: Test, state: State) -> Status:
        return double_bracket(test.words, self.shell(state), self.host, state.cwd)

    def _arithmetic(self, command: Arithmetic, state: State) -> Status:
        calculate(self, command.text, state)
        return None

    # ------------------------------------------------------------------ functions and files

    def call(self, function: Function, arguments: Sequence[Value], state: State) -> Status:
        """Follow a function; its `local` variables are put back behind it."""
        frame = Frame(self.frame.path, self.frame.script, function=True)
        return self._enter(frame, state, arguments, lambda: self.command(function.body, state))

    def source(self, path: str, text: str, arguments: Optional[Sequence[Value]], state: State) -> Status:
        """Follow a sourced file in the same shell."""
        self.files.append(path)
        frame = Frame(path, self.frame.script)
        given = arguments or state.arguments
        return self._enter(frame, state, given, lambda: self.follow(text, state))

    def _enter(self, frame: Frame, state: State, arguments: Optional[Sequence[Value]], body: Any) -> Status:
        if len(self.frames) > NESTING:
            state.forget(Message("{place}: nested too deeply", place=self.place))
            return None
        outer, line, before = state.arguments, self.line, state.copy()
        state.arguments = arguments
        self.frames.append(frame)
        body()
        self.frames.pop()
        if frame.returns:
            state.become(merge([*frame.returns, state], before))
        state.arguments, self.line = outer, line
        for name, (value, exported) in frame.hidden.items():
            restore(state, name, value, exported)
        return None

    def script(self, path: str, text: str, arguments: Sequence[Value], state: State) -> None:
        """Follow a script that runs in a shell of its own: it gets what is exported and gives nothing back."""
        if len(self.frames) > NESTING:
            return
        child = State(state.environment(), set(state.exported), dict(state.places), state.rest, cwd=state.cwd)
        child.arguments = arguments
        self.files.append(path)
        line = self.line
        self.frames.append(Frame(path, path))
        self.follow(text, child)
        self.frames.pop()
        self.line = line


_FOLLOWERS = {
    Simple: Run._simple,
    Group: Run._group,
    If: Run._if,
    Loop: Run._loop,
    Case: Run._case,
    Function: Run._function,
    Test: Run._test,
    Arithmetic: Run._arithmetic,
}
# bash sets these itself, to values that only the running shell has
_OF_THE_SHELL = frozenset(
    (
        *("BASH", "BASH_VERSION", "BASHPID", "BASHOPTS", "BASH_VERSINFO", "SHELLOPTS", "SHLVL", "UID", "EUID", "PPID"),
        *("RANDOM", "SRANDOM", "SECONDS", "EPOCHSECONDS", "EPOCHREALTIME", "LINENO", "FUNCNAME", "PIPESTATUS", "IFS"),
        *("HOSTNAME", "HOSTTYPE", "MACHTYPE", "OSTYPE", "OPTIND", "GROUPS", "DIRSTACK"),
    )
)


def leaves_early(node: Any) -> bool:
    """Whether break or continue stands anywhere in a statement."""
    return any(word in ("break", "continue") for word in _first_words(node))


def _first_words(node: Any) -> Iterator[str]:
    if isinstance(node, Simple):
        if node.words:
            yield node.words[0].text
    elif isinstance(node, tuple):
        for one in node:
            yield from _first_words(one)
    elif hasattr(node, "__dataclass_fields__") and not isinstance(node, Test):
        for name in node.__dataclass_fields__:
            yield from _first_words(getattr(node, name))
