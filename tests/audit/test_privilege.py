"""What is denied: to a user it may be for want of a right, to root it is unknown like everything else."""

from __future__ import annotations

import pytest
from helpers.examples import example_context

from envtune.audit import examine
from envtune.catalog import load
from envtune.model import Outcome


@pytest.mark.parametrize(("user", "wanting"), [(1000, True), (0, False)])
def test_root_lacks_no_right_that_it_could_get(user: int, wanting: bool) -> None:
    """A script that its owner linked to a file of root's: "run as root" would be wrong, and the status 0, too."""
    denied = {"/job/train.sh": {"error": "EACCES"}}
    host = {"like": "npu-910b-8", "euid": user, "target": {"script": "/job/train.sh"}, "files": denied}
    check = next(check for check in load(()).checks if check.id == "ENV103")
    (finding,) = examine(check, example_context(host))
    assert (finding.outcome, finding.needs_privilege) == (Outcome.UNKNOWN, wanting), finding
