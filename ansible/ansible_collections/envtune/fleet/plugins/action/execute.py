# Copyright: envtune contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Send envtune's executor with one host's request to `python3 -` on that host, and keep its output.

`folder` is what `envtune fleet fix` prepared: `program`, `command`, `requests/HOST`. What a host printed goes to
`output/HOST`; `begun/HOST` is created before anything is sent. Nothing is sent to a host once `stop` exists, or when
the envtune process that created the folder and holds the lock on `lock` has ended. With --check nothing is sent at all.
"""

from __future__ import annotations

import fcntl
import json
import os

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

LINEAR = ("linear", "ansible.builtin.linear", "ansible.legacy.linear")
LIMIT = 256 * 1024  # characters of a host's output that are kept


class ActionModule(ActionBase):
    """The action `envtune.fleet.execute`."""

    TRANSFERS_FILES = False
    _VALID_ARGS = frozenset(("folder",))

    def run(self, tmp=None, task_vars=None):
        """Send the request of a host, and keep the answer."""
        result = super().run(tmp, task_vars)
        folder, host = self._task.args["folder"], task_vars["inventory_hostname"]
        self._require_linear()
        if self._play_context.check_mode:
            return dict(result, changed=True, diff=self._differences(folder, host))
        self._require_controller(folder)
        with open(os.path.join(folder, "program"), "rb") as file:
            program = file.read()
        with open(os.path.join(folder, "requests", host), "rb") as file:
            program = program.replace(b"@REQUEST@", file.read(), 1)
        with open(os.path.join(folder, "command"), encoding="utf-8") as file:
            command = file.read()
        self._keep(folder, "begun", host, "")
        try:
            done = self._low_level_execute_command(command, in_data=program, sudoable=False)
        except AnsibleConnectionFailure as error:
            self._keep(folder, "output", host, json.dumps(["", str(error)[-4096:], 255]))
            raise
        output = done.get("stdout", "")[:LIMIT]
        self._keep(folder, "output", host, json.dumps([output, done.get("stderr", "")[-4096:], done.get("rc")]))
        result.update(changed=True, failed="@@ENVTUNE/1 " not in output, rc=done.get("rc"))
        return result

    def _require_linear(self):
        """max_fail_percentage is honored by the linear strategy only; all others ignore it."""
        parent = self._task._parent
        strategy = parent._play.strategy
        if strategy not in LINEAR:
            raise AnsibleActionFail(f"strategy {strategy!r}: a staged fix needs linear, others do not stop")

    @staticmethod
    def _require_controller(folder):
        if os.path.exists(os.path.join(folder, "stop")):
            raise AnsibleActionFail("stopped: nothing was sent to this host")
        with open(os.path.join(folder, "lock"), "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return
        raise AnsibleActionFail("the envtune that began this has ended: nothing was sent to this host")

    @staticmethod
    def _keep(folder, kind, host, text):
        """Write a file atomically and sync it: it is also read after a crash."""
        place = os.path.join(folder, kind, host)
        with open(place + ".new", "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.rename(place + ".new", place)

    @staticmethod
    def _differences(folder, host):
        """Return the files that would be written, as --diff shows them."""
        with open(os.path.join(folder, "shown", host), encoding="utf-8") as file:
            return [
                {"before_header": row[0], "after_header": row[0], "before": row[1], "after": row[2]}
                for row in json.load(file)
            ]
