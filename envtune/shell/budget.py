"""The budget for following one script: commands, characters read, bytes of values created; one object counts all.

Lexing is linear in the text; every step that reads text again, creates a value or reads the machine is accounted here
first. A script that needs more is unknown as a whole: what it would do after that point may set anything.
"""

from __future__ import annotations

from envtune.messages import Message, Text
from envtune.shell.lexer import ShellSyntaxError

MAX_COMMANDS = 20_000  # executed, loops and sourced files included
MAX_WORK = 3_000_000  # characters read, list entries copied; a microsecond each at worst
MAX_BYTES = 32 << 20  # of values and fields created, including discarded ones
MAX_VALUE = 131_072  # bytes of one variable that Linux passes to a program (MAX_ARG_STRLEN)
PER_READ = 100  # work for one query of the machine, in addition to the length of its path
PER_FIELD = 64  # bytes of a string in addition to its characters


class BudgetExceeded(ShellSyntaxError):
    """The script exceeds the budget; `place` is the file:line at which following it stopped."""

    place = ""

    def __init__(self, reason: Text, line: int = 0) -> None:
        super().__init__(line, reason)


class Budget:
    """What is left of each allowance, in the units of the constants above; what is used up stays used up."""

    def __init__(self, commands: int = MAX_COMMANDS, work: int = MAX_WORK, size: int = MAX_BYTES) -> None:
        self.commands, self.work, self.bytes = commands, work, size

    def command(self) -> None:
        """Count one command; raises BudgetExceeded."""
        self.commands -= 1
        if self.commands < 0:
            raise BudgetExceeded(Message("the script has too many steps to analyze"))

    def look(self, characters: int) -> None:
        """Count characters that are read; raises BudgetExceeded."""
        self.work -= characters
        if self.work < 0:
            raise BudgetExceeded(Message("the script is too complex to analyze"))

    def make(self, characters: int, fields: int = 1) -> None:
        """Count values that are created, by their total number of characters; raises BudgetExceeded."""
        self.bytes -= characters + PER_FIELD * fields
        if self.bytes < 0:
            raise BudgetExceeded(Message("the script creates values that are too large to analyze"))
