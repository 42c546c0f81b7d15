"""Record what a source lists: file contents, existence, directory listings and commands."""

from typing import Any, Callable, Sequence, Tuple

from ...trust.programs import SYSTEM_DIRECTORIES
from ..glob import is_there
from ..python.errors import Unresolved


class Table:
    """The patterns of paths, and the commands, that one family of checks reads."""

    def __init__(
        self,
        files: Sequence[str] = (),  # the content is kept
        stats: Sequence[str] = (),  # kind, size, mode and owner are kept, and the text of a link
        listings: Sequence[str] = (),  # the names in the directory are kept
        commands: Sequence[Tuple[str, ...]] = (),
    ) -> None:
        self.files = files
        self.stats = stats
        self.listings = listings
        self.commands = commands


def quietly(function: Callable[..., Any], *arguments: Any) -> None:
    """Call `function`; if it fails, the recorder has kept the error."""
    try:
        function(*arguments)
    except (Unresolved, OSError):
        pass


def record_table(recorder: Any, table: Table) -> None:
    """Record everything that `table` names."""
    read_matches(recorder, table.files)
    stat_matches(recorder, table.stats)
    for path in table.listings:
        quietly(recorder.listdir, path)
    for argv in table.commands:
        record_command(recorder, argv)


def read_matches(recorder: Any, patterns: Sequence[str]) -> None:
    """Keep the content of what matches."""
    for pattern in patterns:
        for path in recorder.glob(pattern):
            quietly(recorder.read_bytes, path)


def stat_matches(recorder: Any, patterns: Sequence[str]) -> None:
    """Keep the existence of what matches, and of the targets of its links."""
    for pattern in patterns:
        for path in recorder.glob(pattern):
            quietly(recorder.stat, path)


def record_command(recorder: Any, argv: Sequence[str], timeout: float = 5.0) -> None:
    """Run `argv` if its program exists; else record that it is missing."""
    if any(is_there(recorder, folder + "/" + argv[0]) for folder in SYSTEM_DIRECTORIES):
        recorder.run(argv, timeout)
    elif recorder.machine.runs:
        recorder.commands[tuple(argv)] = {"argv": list(argv), "error": "missing"}
