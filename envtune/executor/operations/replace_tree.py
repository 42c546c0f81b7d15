"""Replace directory trees by commands, after saving everything in them to an archive."""

import os
from typing import List

from ..commands import run_checked
from ..common import Record, failpoint
from ..directories import open_directory, parent_of
from ..files import digest, read_content
from ..problems import ExecutorError, FailedError, RefusedError
from ..run_directory import RunDirectory
from ..validators import Members, is_argv, is_environment, is_list_of, is_path, is_relative_path, is_seconds, is_text
from .archive import TreeArchive, write_archive
from .base import Operation, temporary_name
from .trees import file_digest, fsync_trees, new_work_directory, remove_entry, remove_tree, tree_digest, walk_tree
from .wheels import fetched, pin_wheels, require_covered, require_installed, wheel_path

_TIMEOUT_OF_A_STEP = 1800.0  # seconds


class ReplaceTreeOperation(Operation):
    """`{op: swap, root, touches, steps, verify, prepare?, holds?, wheels?, site?, timeout?, env?}`: replace trees.

    `touches` names everything below `root` that the commands may create, change or remove; the last part of a name may
    be a shell pattern (`Pillow-*`). All of it is kept in one archive first; if a step or a verification fails, it is
    restored. Undoing needs no network.

    `prepare` runs before and writes only below `{work}`, an empty directory of this run (also in `env`, `steps` and
    `wheels`). `holds` maps names below `root` to the digest they must have before anything is begun (`absent`, or
    `present` for any content). `wheels` are the paths or patterns of the wheels that the steps install into `site`
    (below `root`): nothing is replaced unless all their files are in `touches`, and afterwards each must exist with the
    bytes it has in the wheel. `{work}/requirements.txt` then names them with their hashes, for pip.
    """

    members = Members(
        {
            "root": is_path,
            "touches": is_list_of(is_relative_path),
            "steps": is_list_of(is_argv),
            "verify": is_list_of(is_argv),
        },
        {
            "prepare": is_list_of(is_argv),
            "holds": is_environment,
            "wheels": is_list_of(is_text),
            "site": is_relative_path,
            "timeout": is_seconds,
            "env": is_environment,
        },
    )

    def __init__(self, wire: Record) -> None:
        super().__init__(wire)
        self.root = self.subject = wire["root"]
        self.names: List[str] = wire["touches"]
        self.expected = wire.get("holds", {})
        self.prepare = wire.get("prepare", [])
        self.steps = wire["steps"]
        self.verify = wire["verify"]
        self.wheels = wire.get("wheels", [])
        self.site = wire.get("site", "")
        self.timeout = wire.get("timeout", _TIMEOUT_OF_A_STEP)
        self.env = wire.get("env", {})

    def observe(self) -> str:
        """Return one digest over everything `touches` names."""
        return tree_digest(self.root, self.names)

    def require_precondition(self) -> None:
        """Raise RefusedError if a name in `holds` does not have its digest, or root would run in a user's tree."""
        for parent in self._parents():
            try:
                with open_directory(parent) as directory:
                    owner = directory.owner
            except FileNotFoundError:
                continue
            if owner is not None:
                raise RefusedError("tree-of-another-user", path=parent, user=owner.uid)
        for name, planned in sorted(self.expected.items()):
            path = os.path.join(self.root, name)
            found = digest(read_content(path))
            if found != planned and not (planned == "present" and found != "absent"):
                raise RefusedError("not-as-planned", subject=path, found=found, planned=planned)

    def backup(self, directory: RunDirectory) -> Record:
        """Prepare, then keep everything `touches` names in one archive, with its checksum.

        Raises RefusedError if a wheel contains a file outside `touches`.
        """
        self.require_precondition()
        work = new_work_directory(os.path.join(directory.path, "work"))
        try:
            provenance = self._prepare(work, directory)
            require_covered(self._wheel_paths(work), self.site, self.names)
            self.require_precondition()  # preparing may take minutes
            was = self.observe()
            name = self.save_copy(directory)
        except BaseException:
            remove_tree(work)
            raise
        with directory.open(name) as file:
            checksum = file_digest(file).hex()
        temporary = os.path.join(self.root, temporary_name())
        archive = os.path.join(directory.path, name)
        saved = {"was": was, "original": name, "sha256": checksum, "temporary": temporary, "work": work}
        return dict(saved, archive=archive, **provenance)

    def _prepare(self, work: str, directory: RunDirectory) -> Record:
        """Run the preparation; return what goes into the journal: the wheels with their hashes, and their sources."""
        start = directory.output_size()
        self._run_all(self.prepare, work, directory)
        uses_index = any("--no-index" not in argv for argv in self.prepare)
        sources = fetched(directory.output_since(start), uses_index)
        return {"wheels": pin_wheels(self._wheel_paths(work), work), "sources": sources}

    def _parents(self) -> List[str]:
        """Return the directories that contain the trees."""
        return sorted({os.path.dirname(os.path.join(self.root, name)) for name in self.names})

    def save_copy(self, directory: RunDirectory) -> str:
        """Keep everything `touches` names in one archive; return its name."""
        return directory.save_from(lambda file: write_archive(file, self.root, self.names))

    def apply(self, saved: Record, directory: RunDirectory) -> None:
        """Run the steps, compare the files of the wheels, then verify; raises FailedError for the first that fails."""
        work = saved["work"]
        previous = os.umask(0o022)  # installed files are for all users, whatever root's umask is
        try:
            self._run_all(self.steps, work, directory)
            require_installed(self._wheel_paths(work), os.path.join(self.root, self.site))
            self._run_all(self.verify, work, directory)
        finally:
            os.umask(previous)
            remove_tree(work)
        fsync_trees(self.root, self.names)

    def _run_all(self, commands: List[List[str]], work: str, directory: RunDirectory) -> None:
        env = {name: value.replace("{work}", work) for name, value in self.env.items()}
        for argv in commands:
            run_checked([word.replace("{work}", work) for word in argv], self.timeout, env, directory)
            failpoint("tree-command-ended")

    def _wheel_paths(self, work: str) -> List[str]:
        return [wheel_path(pattern.replace("{work}", work)) for pattern in self.wheels]

    def is_applied(self, saved: Record) -> bool:
        """Return whether anything in the trees has changed."""
        return bool(self.observe() != saved["was"])  # `apply` has run the verification

    def changed_by_others(self, saved: Record, step: Record) -> str:
        """Return the digest of the trees if it is neither the original nor what the step left, else an empty string."""
        current = self.observe()
        return current if step["state"] == "done" and current not in (saved["was"], step["now"]) else ""

    def revert(self, saved: Record, directory: RunDirectory) -> None:
        """Restore the trees from the archive, name by name; raises FailedError if it is damaged."""
        with directory.open(saved["original"]) as file:
            if file_digest(file).hex() != saved["sha256"]:
                raise FailedError("archive-damaged", archive=saved["original"])
            file.seek(0)
            TreeArchive(file, self.root, self.names).restore(os.path.basename(saved["temporary"]))

    def is_reverted(self, saved: Record) -> bool:
        """Return whether the trees are restored: names and content, and everything else according to the archive."""
        import tarfile

        if not super().is_reverted(saved):
            return False
        try:
            with open(saved["archive"], "rb") as file:
                return TreeArchive(file, self.root, self.names).matches()
        except (KeyError, FileNotFoundError, tarfile.TarError, ValueError):
            return True  # a journal of envtune 0.1, or nothing more to compare

    def clean_up(self, saved: Record) -> None:
        """Remove what a killed run left; the archive still contains everything."""
        remove_tree(saved.get("work", ""))
        name = os.path.basename(saved["temporary"])
        for parent in {*self._parents(), self.root}:
            try:
                with parent_of(os.path.join(parent, name)) as directory:
                    for entry in walk_tree(directory.descriptor, name, name, name, bottom_up=True):
                        remove_entry(entry)  # a directory comes from envtune 0.1
            except (ExecutorError, OSError):
                continue
