"""Run one command that has a check, and usually a command that undoes it."""

import os
import re
from typing import List, Match, Optional, Set

from ..commands import check_holds, check_status, command_output, run_checked
from ..common import Record, failpoint
from ..files import digest
from ..problems import FailedError, RefusedError
from ..run_directory import RunDirectory
from ..validators import Members, is_argv, is_environment, is_list_of, is_path, is_pattern, is_seconds, is_text
from .base import Operation
from .written_files import WrittenFiles, kept_at

_TIMEOUT = 600.0  # seconds
_is_query = Members({"argv": is_argv, "pattern": is_pattern})


class CommandOperation(Operation):
    """`{op: run, argv, check: {argv, contains?}, undo?, given?, census?, already?, unchanged?, files?, env?, ...}`.

    `check` tells whether its effect is present: exit 0 and, with `contains`, that text in its output. `already: {argv,
    pattern}` detects the same effect caused by somebody else: then the command is not run, and an undo uses `check`
    alone. `unchanged` is a pattern for the command's output if it changed nothing: then there is nothing to undo.
    `files` are what the command writes; undo restores them byte by byte (written_files.py). `find: {argv, pattern}`
    inserts named groups of `pattern`, matched in the output of a command, into the undo command (`{handle}`), so that
    it names exactly the rule that was added; if the match, apart from the groups, has changed since, nothing is undone.
    Without `undo` it cannot be undone.

    `given: {argv, pattern, ignore?, digest}` is its precondition (the rules among which it places one by a number):
    what `matching` finds in the output of `argv` must have that digest, or nothing is begun.

    `census: {argv, pattern}` is an inventory (the installed packages), one item for every match of the pattern's group;
    the word `{new}` of the undo command becomes the items that the command added and that are still there.
    """

    members = Members(
        {"argv": is_argv, "check": Members({"argv": is_argv}, {"contains": is_text})},
        {
            "undo": Members({"argv": is_argv}, {"find": _is_query}),
            "given": Members({"argv": is_argv, "pattern": is_pattern, "digest": is_text}, {"ignore": is_pattern}),
            "census": _is_query,
            "already": _is_query,
            "unchanged": is_pattern,
            "files": is_list_of(is_path),
            "timeout": is_seconds,
            "env": is_environment,
        },
    )

    def __init__(self, wire: Record) -> None:
        super().__init__(wire)
        self.argv = wire["argv"]
        self.subject = " ".join(self.argv)
        self.check = wire["check"]
        self.undo = wire.get("undo")
        self.precondition = wire.get("given")
        self.inventory = wire.get("census")
        self.already = wire.get("already")
        self.files = WrittenFiles(wire["files"]) if "files" in wire else None
        self.timeout = wire.get("timeout", _TIMEOUT)
        self.env = wire.get("env")

    def observe(self) -> str:
        """Return `applied` or `not-applied`, according to the check, or `already`."""
        return "applied" if check_holds(self.check, self.env) or self._is_there_already() else "not-applied"

    def _is_there_already(self) -> bool:
        if self.already is None:
            return False
        return re.search(self.already["pattern"], command_output(self.already["argv"], self.env)) is not None

    def final_state(self) -> str:
        """Return `applied`."""
        return "applied"

    def require_precondition(self) -> None:
        """Raise RefusedError if the output of the command in `given` has changed since the plan was made."""
        if self.precondition is None:
            return
        argv, planned = self.precondition["argv"], self.precondition["digest"]
        output = command_output(argv, self.env)
        found = digest(matching(output, self.precondition["pattern"], self.precondition.get("ignore", "")))
        if found != planned:
            raise RefusedError("precondition-changed", command=" ".join(argv), found=found, planned=planned)

    def backup(self, directory: RunDirectory) -> Record:
        """Keep the check's result and, with `census`, the inventory before the command runs."""
        self.require_precondition()
        saved: Record = {"was": self.observe()}
        if self.inventory is not None:
            name = directory.save("\n".join(sorted(self._items())).encode("utf-8"))
            saved["census"] = os.path.join(directory.path, name)
        if self.files is not None or "unchanged" in self.wire or "find" in (self.undo or {}):
            saved.update(kept_at(directory))
        if self.files is not None:
            saved["files"] = self.files.backup(directory)
        return saved

    def apply(self, saved: Record, directory: RunDirectory) -> None:
        """Run the command and keep the items it added to the inventory; raises FailedError if it fails."""
        output = run_checked(self.argv, self.timeout, self.env, directory)
        failpoint("command-ended")
        if "unchanged" in self.wire and re.search(self.wire["unchanged"], output):
            directory.write_private(saved["notes"] + ".unchanged", lambda file: file.write(b""))
        if self.files is not None:
            self.files.note_written(saved, directory)
        self._note_found(saved, directory)
        if "census" in saved:
            added = "\n".join(sorted(self._items() - _read_items(saved["census"]))).encode("utf-8")
            directory.write_private(saved["census"] + ".new", lambda file: file.write(added))

    def _note_found(self, saved: Record, directory: RunDirectory) -> None:
        """Keep what the undo command will look for, in its state right after the command."""
        match = self._find() if "find" in (self.undo or {}) else None
        if match is not None:
            text = _without_groups(match).encode("utf-8", "surrogateescape")
            directory.write_private(saved["notes"] + ".found", lambda file: file.write(text))

    def _find(self) -> Optional[Match[str]]:
        query = (self.undo or {})["find"]
        return re.search(query["pattern"], command_output(query["argv"], self.env))

    def _items(self) -> Set[str]:
        assert self.inventory is not None
        return set(re.findall(self.inventory["pattern"], command_output(self.inventory["argv"], self.env)))

    def _added_items(self, saved: Record) -> List[str]:
        """Return what the command added and still exists; after a kill, everything that did not exist before it."""
        current = self._items()
        if os.path.exists(saved["census"] + ".new"):
            return sorted(current & _read_items(saved["census"] + ".new"))
        return sorted(current - _read_items(saved["census"]))

    def revert(self, saved: Record, directory: RunDirectory) -> None:
        """Run the undo command, unless the check held before or nothing is left of what the command added.

        Raises RefusedError if there is none, FailedError if it fails.
        """
        if saved["was"] == "applied" or self.is_reverted(saved):
            return
        if self.files is None or not self.files.are_unchanged(saved):
            self._run_undo(saved, directory)
            return
        self.files.begin_undo(saved, directory)
        if check_holds(self.check, self.env):  # not if the service that manages the files is stopped
            self._run_undo(saved, directory)
        self.files.restore(saved, directory)

    def _run_undo(self, saved: Record, directory: RunDirectory) -> None:
        if not self.undo:
            raise RefusedError("command-not-undoable", command=self.subject)
        argv = list(self.undo["argv"])
        if "find" in self.undo:
            argv = self._with_arguments(argv, saved)
        if "census" in saved:
            added = self._added_items(saved)
            argv = [word for part in argv for word in (added if part == "{new}" else [part])]
        run_checked(argv, self.timeout, self.env, directory)
        failpoint("undo-command-ended")

    def _with_arguments(self, argv: List[str], saved: Record) -> List[str]:
        """Return the undo command with the groups found now."""
        match, added = self._find(), _noted(str(saved.get("notes", "")) + ".found")
        if match is None or added not in (None, _without_groups(match)):
            looked_for = (self.undo or {})["find"]["pattern"] if added is None else added
            raise FailedError("undo-argument-not-found", command=" ".join(argv), pattern=looked_for.strip())
        for name, value in match.groupdict().items():
            argv = [part.replace("{%s}" % name, value or "") for part in argv]
        return argv

    def clean_up(self, saved: Record) -> None:
        """Remove what a killed undo left next to the command's files."""
        if self.files is not None:
            self.files.clean_up(saved)

    def is_reverted(self, saved: Record) -> bool:
        """Return whether no item the command added is left; without `census`, whether the check has its former result.

        Raises FailedError if that cannot be determined: the service does not run, and others wrote its files.
        """
        if "census" in saved:
            return not self._added_items(saved)
        if "notes" in saved and os.path.exists(saved["notes"] + ".unchanged"):
            return True
        if self.files is not None:
            return self._are_files_reverted(saved)
        if self.already is not None:
            return not check_holds(self.check, self.env)
        return super().is_reverted(saved)

    def _are_files_reverted(self, saved: Record) -> bool:
        assert self.files is not None
        if self.files.are_unchanged(saved) and not self.files.are_restored(saved):
            return False
        status = check_status(self.check, self.env)
        if status not in (0, 1) and not self.files.are_restored(saved):
            raise FailedError("command-failed", command=" ".join(self.check["argv"]), status=status, output="")
        return not check_holds(self.check, self.env)


def matching(text: str, pattern: str, ignore: str = "") -> bytes:
    """Return all matches of `pattern` in a text, one per line; matches of `ignore` are removed first."""
    text = re.sub(ignore, "", text) if ignore else text
    return "\n".join(match.group() for match in re.finditer(pattern, text)).encode("utf-8", "replace")


def _without_groups(match: Match[str]) -> str:
    """Return what a pattern matches, with group names in place of their content."""
    text, offset = match.group(), match.start()
    for name in sorted(match.groupdict(), key=match.start, reverse=True):
        start, end = match.span(name)
        if start >= 0:
            text = text[: start - offset] + "{%s}" % name + text[end - offset :]
    return text


def _noted(path: str) -> Optional[str]:
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return None


def _read_items(path: str) -> Set[str]:
    with open(path, "rb") as file:
        return {line for line in file.read().decode("utf-8").split("\n") if line}
