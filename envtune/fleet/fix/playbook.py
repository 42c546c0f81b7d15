"""Start `ansible-playbook` on one of the collection's playbooks, with our own settings instead of the site's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from envtune import version
from envtune.errors import UsageError, system_error_text
from envtune.fleet.fix.folder import RunFolder
from envtune.fleet.ssh import HOST_KEY_OPTIONS, Ssh
from envtune.messages import Message
from envtune.records import NamedTuple
from envtune.trust.programs import resolve_program
from envtune.trust.start import start_program

PROGRAM = "ansible-playbook"
COLLECTION = "ansible_collections/envtune/fleet"
POLL = 0.1  # seconds
ENDING = 20.0  # seconds for Ansible to end after a second Ctrl-C
_FROM_CALLER = ("SSH_AUTH_SOCK", "KRB5CCNAME", "SLURM_CONF")  # for ssh authentication and for finding Slurm


class Ansible(NamedTuple):
    """The program, and the folder where it looks for collections."""

    program: str
    collections: Path


def find_ansible() -> Ansible:
    """Return Ansible, as installed with this Python or on the system; raises UsageError."""
    for folder in (
        Path(version.__file__).with_name("_data") / "ansible",
        Path(version.__file__).parents[1] / "ansible",
    ):
        if (folder / COLLECTION).is_dir():
            break
    else:
        raise UsageError(Message("{verb} needs an installed envtune: pip install {package}", **_WORDS))
    own = Path(sys.executable).with_name(PROGRAM)
    for name in (str(own), PROGRAM):
        try:
            return Ansible(resolve_program(name), folder)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UsageError(Message("{path}: {reason}", path=name, reason=system_error_text(error))) from None
    raise UsageError(Message("{verb} needs {library}: pip install {package}", library="ansible-core", **_WORDS))


_WORDS = {"verb": "envtune fleet fix", "package": "'envtune[fleet-fix]'"}


def play(
    ansible: Ansible,
    playbook: str,
    folder: RunFolder,
    hosts: Sequence[str],
    ssh: Ssh,
    variables: Mapping[str, Any],
    options: Sequence[str] = (),
    on_wait: Callable[[], None] = lambda: None,
) -> bool:
    """Run a playbook for these hosts; return whether it was interrupted.

    After Ctrl-C hosts that are begun finish, and no further one is begun; a second one ends Ansible: what is in
    progress on a host continues there, and is journaled.
    """
    names = {host: ({"ansible_user": ssh.user} if ssh.user else {}) for host in hosts}
    folder.write("inventory.yml", json.dumps({"stage": {"hosts": names}}).encode("utf-8"))
    folder.write("vars.yml", json.dumps({"folder": str(folder.path), **variables}).encode("utf-8"))
    folder.write("ansible.cfg", b"")
    path = ansible.collections / COLLECTION / "playbooks" / playbook
    words = [
        ansible.program,
        "-i",
        f"{folder.path}/inventory.yml",
        "-e",
        f"@{folder.path}/vars.yml",
        *options,
        str(path),
    ]
    with open(folder.path / "ansible.log", "ab") as log:
        marks = _environment(ansible, folder, ssh)
        process = start_program(words, marks=marks, stdout=log, stderr=subprocess.STDOUT)
        return _wait(process, folder, on_wait)


def _wait(process: Any, folder: RunFolder, on_wait: Callable[[], None]) -> bool:
    interrupted = False
    try:
        while process.poll() is None:
            try:
                on_wait()
                time.sleep(POLL)
            except KeyboardInterrupt:
                if interrupted:
                    raise
                interrupted = True
                folder.stop()
    except BaseException:
        folder.stop()
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(ENDING)
        raise
    return interrupted


def _environment(ansible: Ansible, folder: RunFolder, ssh: Ssh) -> dict[str, str]:
    """Return Ansible's settings; a site's file could choose another strategy, or accept changed keys."""
    found = {name: os.environ[name] for name in _FROM_CALLER if name in os.environ}
    settings = {
        "CONFIG": f"{folder.path}/ansible.cfg",
        "COLLECTIONS_PATH": str(ansible.collections),
        "HOME": f"{folder.path}/ansible",
        "LOCAL_TEMP": f"{folder.path}/ansible/tmp",
        "FORKS": str(ssh.fanout),
        "TIMEOUT": str(ssh.connect_timeout),
        "HOST_KEY_CHECKING": "True",
        "SSH_EXECUTABLE": ssh.path,
        # no connection is kept open for later tasks: a stage has one task per host
        "SSH_ARGS": " ".join((ssh.options, *HOST_KEY_OPTIONS, "-oControlMaster=no", "-oControlPath=none")).strip(),
        "RETRY_FILES_ENABLED": "False",
        "NOCOLOR": "True",
        "NOCOWS": "True",
        "DEPRECATION_WARNINGS": "False",
        "LOCALHOST_WARNING": "False",
    }
    found.update({f"ANSIBLE_{name}": value for name, value in settings.items()})
    return {**found, "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
