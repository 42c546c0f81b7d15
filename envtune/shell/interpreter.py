"""Execute a shell script abstractly: which variables it has set when it starts the job. Nothing is run.

A branch with an unknown condition is executed both ways, and what differs between them is unknown afterwards. A loop
over known words is executed word by word, any other loop until nothing changes. Subshells and pipelines change nothing
outside.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence

from envtune.errors import HostError
from envtune.messages import Message, Text
from envtune.shell.assignments import assign, command_fields, invalidate_calculated, split_assignments
from envtune.shell.budget import Budget, BudgetExceeded
from envtune.shell.conditions import double_bracket, matches_branch
from envtune.shell.documents import expanded
from envtune.shell.expansion import Shell, Value, fields_of, joined, unknown, unquoted, value_of
from envtune.shell.lexer import Document, ShellSyntaxError, Token
from envtune.shell.machine import CountedMachine
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
from envtune.shell.state import Launches, LeftOpen, State, Variable, merge, same_variables

MAX_NESTING = 12  # scripts sourced by scripts, and functions that call functions
MAX_UNROLLED = 16  # words of a for loop executed one by one
MAX_ROUNDS = 4  # of any other loop, unless its result settles earlier
Status = Optional[bool]  # whether a command succeeds; None: unknown
Builtin = Callable[["Interpreter", Sequence[Value], State], Status]
Starter = Callable[["Interpreter", Sequence[Value], State], None]
# bash sets these itself, to values that only the running shell has
_SET_BY_BASH = frozenset(
    (
        *("BASH", "BASH_VERSION", "BASHPID", "BASHOPTS", "BASH_VERSINFO", "SHELLOPTS", "SHLVL", "UID", "EUID", "PPID"),
        *("RANDOM", "SRANDOM", "SECONDS", "EPOCHSECONDS", "EPOCHREALTIME", "LINENO", "FUNCNAME", "PIPESTATUS", "IFS"),
        *("HOSTNAME", "HOSTTYPE", "MACHTYPE", "OSTYPE", "OPTIND", "GROUPS", "DIRSTACK"),
    )
)


@dataclass
class Frame:
    """A script or function that is being executed. `path` is the file that contains its lines."""

    path: str
    script: str  # $0
    returns: list[State] = field(default_factory=list)
    locals: dict[str, Variable] = field(default_factory=dict)  # their values outside
    is_function: bool = False
    offset: int = 0  # added to the line numbers of its text: for a here-document, which begins further down in the file
    is_line: bool = False  # it executes a one-line text, `eval` and the like: everything is on that line


@dataclass
class Interpreter:
    """One script executed against one machine.

    The commands are passed in: `builtins` by name, `start_program` for everything else.
    """

    machine: CountedMachine
    real_path: Callable[[str], str]  # a path with every symbolic link followed; raises HostError
    builtins: Mapping[str, Builtin]
    start_program: Starter
    frames: list[Frame]
    budget: Budget
    launches: Launches = field(default_factory=Launches)
    files: dict[str, int] = field(default_factory=dict)  # read, in order -> how often
    sourced: set[str] = field(default_factory=set)
    line: int = 0
    stdin: Optional[Token] = None  # the here-document or here-string that the present command reads

    @property
    def frame(self) -> Frame:
        """The innermost script or function."""
        return self.frames[-1]

    @property
    def place(self) -> str:
        """file:line of the current command."""
        return f"{self.frame.path}:{self.line}"

    def shell(self, state: State) -> Shell:
        """Return the interface for expansion in this state."""

        def lookup(name: str) -> Optional[Value]:
            if name == "BASH_SOURCE":
                return self.frame.path
            if name == "PWD":
                return state.cwd if state.cwd is not None else unknown("$PWD", self.place)
            if name in _SET_BY_BASH and not state.is_set(name):
                return unknown(f"${name}", self.place)
            value = state.lookup(name)
            return unknown(f"${name}", self.place) if isinstance(value, LeftOpen) else value

        def assign_default(name: str, value: Value) -> None:
            state.set(name, value, self.place)

        def output(text: str) -> Value:
            return self._output_of(text, state)

        return Shell(lookup, assign_default, output, state.arguments, self.frame.script, self.place, self.budget)

    # ------------------------------------------------------------------ text and bodies

    def execute(self, text: str, state: State) -> None:
        """Execute a script's text; after a line that cannot be parsed nothing is known.

        Raises BudgetExceeded, with the place at which execution stopped.
        """
        self.budget.look(len(text))
        try:
            for statement in statements(text):
                if not state.alive:
                    return
                self._statement(statement, state)
        except BudgetExceeded as error:
            line = self.line if self.frame.is_line or not error.line else error.line + self.frame.offset
            error.place = error.place or f"{self.frame.path}:{line}"
            raise
        except ShellSyntaxError as error:
            place, reason = self._place_of(error), error.reason
            if "\r\n" in text:  # for a shell the carriage return is part of the word: then `fi` is not `fi`
                reason = Message("{reason} (the file has Windows line endings)", reason=reason)
            self.invalidate(state, Message("{place} cannot be analyzed: {reason}", place=place, reason=reason))
        except RecursionError:
            self.invalidate(state, Message("{place} is nested too deeply", place=self.frame.path))

    def _place_of(self, error: ShellSyntaxError) -> str:
        return self.place if self.frame.is_line else f"{self.frame.path}:{error.line + self.frame.offset}"

    def execute_line(self, text: str, state: State) -> None:
        """Execute what the current line passes to `eval` or `bash -c`; raises BudgetExceeded."""
        frame, before = self.frame, self.frame.is_line
        frame.is_line = True
        try:
            self.execute(text, state)
        finally:
            frame.is_line = before

    def execute_input(self, child: State, state: State) -> None:
        """Execute in `child` what the present command reads from a here-document or here-string of this script.

        `state` is the state of the command: what the document refers to is expanded in it.
        """
        token = self.stdin
        if token is None or len(self.frames) > MAX_NESTING:
            return
        document = token.document
        value = value_of(token.text, self.shell(state)) if document is None else self._content(document, child, state)
        if isinstance(value, Text):
            self.launches.add_unread(self.place, value, state)
        elif document is None or self.frame.is_line:
            self.execute_line(value, child)
        else:
            line = self.line
            self.frames.append(Frame(self.frame.path, self.frame.script, offset=self.frame.offset + document.line - 1))
            try:
                self.execute(value, child)
            finally:
                self.frames.pop()
            self.line = line

    def _content(self, document: Document, child: State, state: State) -> Value:
        text = document.text or ""
        self.budget.look(len(text))
        if document.quoted:
            return text
        content = expanded(text, self.shell(state))
        if isinstance(content, Text):
            return content
        for name, value in content.values.items():
            child.set(name, value, self.place)
        return content.text

    def invalidate(self, state: State, reason: Text) -> None:
        """Make every variable unknown, because anything may have been set."""
        self.budget.look(len(state.variables))
        state.invalidate(reason)

    def _body(self, body: Body, state: State) -> Status:
        """Execute statements; return the status of the last."""
        status: Status = True
        for statement in body:
            if not state.alive:
                break
            status = self._statement(statement, state)
        return status

    def _statement(self, statement: AndOr, state: State) -> Status:
        if statement.background:
            self._and_or(statement, state.copy())
            return True
        return self._and_or(statement, state)

    def _and_or(self, statement: AndOr, state: State) -> Status:
        status = self._pipeline(statement.first, state)
        for operator, pipeline in statement.others:
            if not state.alive:
                break
            if status is (operator == "||"):
                continue
            if status is not None:
                status = self._pipeline(pipeline, state)
                continue
            before, taken = state.copy(), state.copy()
            self._pipeline(pipeline, taken)
            state.assign_from(merge([taken, state], before, self.budget))
        return status

    def _pipeline(self, pipeline: Pipeline, state: State) -> Status:
        """Execute commands joined by `|`: each in a subshell when there are several."""
        if len(pipeline.commands) > 1:
            for command in _with_input(pipeline.commands):
                self._command(command, state.copy())
            return None
        status = self._command(pipeline.commands[0], state)
        return status if status is None or not pipeline.negated else not status

    def _command(self, command: Command, state: State) -> Status:
        if not self.frame.is_line:
            self.line = getattr(command, "line", self.line - self.frame.offset) + self.frame.offset
        self.budget.command()
        handler: Any = _HANDLERS[type(command)]
        status: Status = handler(self, command, state)
        return status

    # ------------------------------------------------------------------ simple commands

    def _simple(self, command: Simple, state: State) -> Status:
        assignments, words = split_assignments(command.words)
        fields = command_fields(words, self.shell(state))
        if not fields:
            for token in assignments:
                assign(token.text, state, self.shell(state))
            return None if any("$(" in token.text or "`" in token.text for token in assignments) else True
        name = fields[0]
        function = state.functions.get(name) if isinstance(name, str) else None
        if function is not None:
            return self._call(function, fields[1:], state)
        if isinstance(name, str) and name in self.builtins:
            return self.builtins[name](self, fields[1:], state)
        before, self.stdin = self.stdin, command.stdin
        self.start_program(self, fields, self._with_prefix(assignments, state))
        self.stdin = before
        return None

    def _with_prefix(self, assignments: Sequence[Token], state: State) -> State:
        """Return the state that `A=b program` gives the program."""
        prefixed = state.copy()
        for token in assignments:
            name = assign(token.text, prefixed, self.shell(prefixed))
            if name is not None:
                prefixed.export(name)
        return prefixed

    def _output_of(self, text: str, state: State) -> Value:
        """Return what `$(...)` prints if that depends on nothing unknown: the script's own directory."""
        self.budget.look(len(text))
        inside, printed, nothing = state.copy(), list[Value](), unknown(f"$({text})", self.place)
        try:
            parsed = list(statements(text))
        except (ShellSyntaxError, RecursionError):
            return nothing
        for pipeline in _in_order(parsed):
            self.budget.command()
            command = pipeline.commands[0] if pipeline is not None else None
            if not isinstance(command, Simple) or any(set(unquoted(word.text)) & set("*?[{") for word in command.words):
                return nothing
            output = self._printed(command_fields(command.words, self.shell(inside)), inside)
            if isinstance(output, Text) or output is None:
                return output or nothing
            printed.append(output)
        output = joined(printed, self.shell(inside))
        return output.rstrip("\n") if isinstance(output, str) else output

    def _printed(self, fields: Sequence[Value], state: State) -> Optional[Value]:
        """Return the output of a command if it is known without running it, else None."""
        for value in fields:
            if isinstance(value, Text):
                return value
        words = [str(value) for value in fields if value != "--"]
        if words in (["pwd"], ["pwd", "-P"], ["pwd", "-L"]):
            return None if state.cwd is None else state.cwd + "\n"
        if words in (["arch"], ["uname", "-m"]):
            return self.machine.uname.get("machine") or None
        if words[:1] == ["echo"] and words[1:2] != ["-e"] and not any("\\" in word for word in words):
            return " ".join(words[1:] if words[1:2] != ["-n"] else words[2:]) + "\n"
        return self._printed_path(words[:-1], words[-1], state) if words else None

    def _printed_path(self, command: Sequence[str], path: str, state: State) -> Optional[str]:
        """Return what a command that takes one path prints; `cd` moves and prints nothing."""
        if command == ["cd"]:
            return "" if self.builtins["cd"](self, [path], state) is not False and state.cwd is not None else None
        if command == ["dirname"]:
            return (posixpath.dirname(path.rstrip("/") or "/") or ".") + "\n"
        if command == ["basename"]:
            return posixpath.basename(path.rstrip("/")) + "\n"
        if command not in (["readlink", "-f"], ["realpath"]):
            return None
        absolute = state.absolute(path)
        try:
            return None if absolute is None else self.real_path(absolute) + "\n"
        except HostError:
            return None

    # ------------------------------------------------------------------ blocks

    def _group(self, group: Group, state: State) -> Status:
        return self._body(group.body, state.copy() if group.subshell else state)

    def _if(self, block: If, state: State) -> Status:
        before, outcomes = state.copy(), []
        current: Optional[State] = state.copy()
        for condition, body in block.branches:
            assert current is not None
            status = self._body(condition, current)
            if not current.alive:
                break
            if status is not False:
                taken = current if status else current.copy()
                self._body(body, taken)
                outcomes.append(taken)
                if status:
                    current = None
                    break
        if current is not None:
            self._body(block.other, current)
            outcomes.append(current)
        state.assign_from(merge(outcomes, before, self.budget))
        return None

    def _case(self, block: Case, state: State) -> Status:
        before, outcomes = state.copy(), []
        value = value_of(block.word.text, self.shell(state))
        for patterns, body in block.branches:
            matches = matches_branch(value, [token.text for token in patterns], self.shell(state))
            if matches is False:
                continue
            taken = state.copy()
            self._body(body, taken)
            outcomes.append(taken)
            if matches:
                break
        else:
            outcomes.append(state.copy())
        state.assign_from(merge(outcomes, before, self.budget))
        return None

    def _loop(self, loop: Loop, state: State) -> Status:
        words = self._loop_words(loop, state) if loop.words is not None and loop.variable else None
        if words is not None:
            for word in words:
                if state.alive:
                    state.set(loop.variable, word, self.place)
                    self._body(loop.body, state)
            return None
        before = state.copy()
        if loop.condition and self._body(loop.condition, state) is loop.until:
            return None  # never entered
        for _ in range(MAX_ROUNDS):
            taken, started = state.copy(), state.copy()
            if loop.variable:
                taken.set(loop.variable, unknown(f"${loop.variable}", self.place), self.place)
            self._body(loop.body, taken)
            self._body(loop.condition, taken)
            state.assign_from(merge([taken, state], before, self.budget))
            if same_variables(state, started):
                break
        return None

    def _loop_words(self, loop: Loop, state: State) -> Optional[list[Value]]:
        """Return the words of a for loop that can be executed one by one; None for other loops."""
        if loop.leaves:
            return None
        words: list[Value] = []
        self.budget.look(len(loop.words or ()))
        for token in loop.words or ():
            if len(words) <= MAX_UNROLLED:
                words += fields_of(token.text, self.shell(state))
            elif "=" in token.text and "$" in token.text:
                value_of(token.text, self.shell(state))  # ${A:=b} assigns
        known = all(isinstance(word, str) and not set(word) & set("*?[{") for word in words[: MAX_UNROLLED + 1])
        return words if known and len(words) <= MAX_UNROLLED else None

    def _function(self, function: Function, state: State) -> Status:
        state.functions[function.name] = function
        return True

    def _test(self, test: Test, state: State) -> Status:
        return double_bracket(test.words, self.shell(state), self.machine, state.cwd)

    def _arithmetic(self, command: Arithmetic, state: State) -> Status:
        invalidate_calculated(command.text, state, self.place)
        return None

    # ------------------------------------------------------------------ functions and files

    def _call(self, function: Function, arguments: Sequence[Value], state: State) -> Status:
        """Execute a function; its `local` variables are restored afterwards."""
        frame = Frame(self.frame.path, self.frame.script, is_function=True, offset=self.frame.offset)
        return self._enter(frame, state, arguments, lambda: self._command(function.body, state))

    def source(self, path: str, text: str, arguments: Optional[Sequence[Value]], state: State) -> Status:
        """Execute a sourced file in the same shell."""
        self.sourced.add(path)
        self.files[path] = self.files.get(path, 0) + 1
        frame = Frame(path, self.frame.script)
        return self._enter(frame, state, arguments or state.arguments, lambda: self.execute(text, state))

    def _enter(self, frame: Frame, state: State, arguments: Optional[Sequence[Value]], body: Any) -> Status:
        if len(self.frames) > MAX_NESTING:
            self.invalidate(state, Message("{place}: nested too deeply", place=self.place))
            return None
        outer, line, before = state.arguments, self.line, state.copy()
        state.arguments = arguments
        self.frames.append(frame)
        try:
            body()
        finally:
            self.frames.pop()
        if frame.returns:
            state.assign_from(merge([*frame.returns, state], before, self.budget))
        state.arguments, self.line = outer, line
        for name, variable in frame.locals.items():
            state.restore(name, variable)
        return None

    def start_script(self, path: str, text: str, arguments: Sequence[Value], state: State) -> None:
        """Execute a script in a separate shell: it gets what is exported and returns nothing."""
        if len(self.frames) > MAX_NESTING:
            return
        self.budget.look(len(state.variables))
        child = state.child()
        child.arguments = arguments
        self.files[path] = self.files.get(path, 0) + 1
        line = self.line
        self.frames.append(Frame(path, path))
        try:
            self.execute(text, child)
        finally:
            self.frames.pop()
        self.line = line


_HANDLERS = {
    Simple: Interpreter._simple,
    Group: Interpreter._group,
    If: Interpreter._if,
    Loop: Interpreter._loop,
    Case: Interpreter._case,
    Function: Interpreter._function,
    Test: Interpreter._test,
    Arithmetic: Interpreter._arithmetic,
}


def _with_input(commands: Sequence[Command]) -> Iterator[Command]:
    """Yield the commands of a pipeline; the one after `cat <<END` reads the here-document."""
    stdin: Optional[Token] = None
    for command in commands:
        yield command._replace(stdin=stdin) if stdin is not None and isinstance(command, Simple) else command
        words = [word.text for word in command.words] if isinstance(command, Simple) else []
        stdin = command.stdin if isinstance(command, Simple) and words in (["cat"], ["cat", "-"]) else None


def _in_order(body: Sequence[AndOr]) -> Iterator[Optional[Pipeline]]:
    """Yield the commands of a substitution that run one after the other; None for anything else."""
    for statement in body:
        if statement.background or any(operator == "||" for operator, _ in statement.others):
            yield None
        for pipeline in (statement.first, *(pipeline for _, pipeline in statement.others)):
            yield pipeline if len(pipeline.commands) == 1 else None
