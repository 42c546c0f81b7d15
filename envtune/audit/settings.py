"""What hosts are compared by besides their facts: variables and Python packages of the job, and the host's addresses.

They are read as facts with names that no check can refer to: `variable:MASTER_ADDR`, `package:numpy`, `addresses`. A
variable or package without such a fact is not set or not installed, unless `variables` or `packages` says why that is
unknown.
"""

from __future__ import annotations

from functools import partial
from typing import Callable, Iterable, Iterator

from envtune.context import Context
from envtune.context.worker import Worker, no_answer
from envtune.errors import NotApplicable, failure_text, host_error_text
from envtune.model import Fact
from envtune.resources.environment.reference import documented
from envtune.resources.python.distributions import environment

VARIABLE, PACKAGE = "variable:", "package:"
VARIABLES, PACKAGES, ADDRESSES = "variables", "packages", "addresses"
DEADLINE = 20.0  # seconds, as for a fact
# Read by launchers and libraries on every node of a job, in addition to those in the table of variables.
_FURTHER = frozenset(
    (
        "NNODES",
        "GLOO_SOCKET_IFNAME",
        "TP_SOCKET_IFNAME",
        "OMP_NUM_THREADS",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "PYTHONPATH",
    )
)
# Different on every node, or in every process of a node.
_OWN = frozenset(("RANK", "LOCAL_RANK", "NODE_RANK", "RANK_ID", "DEVICE_ID", "ASCEND_DEVICE_ID"))
_FACTS = frozenset(("torch", "torch-npu"))  # already facts


def read_settings(context: Context) -> tuple[Fact, ...]:
    """Return the settings of the job and the addresses of its host; what cannot be read is unknown."""
    worker = Worker()
    facts: list[Fact] = []
    for name, read in ((VARIABLES, _variables), (PACKAGES, _packages), (ADDRESSES, _addresses)):
        found = worker.call(partial(_read, read, name, context), DEADLINE)
        facts += (Fact(name, None, "", no_answer(DEADLINE)),) if found is None else found
    worker.end()
    return tuple(facts)


def _read(read: Callable[[Context], Iterable[Fact]], name: str, context: Context) -> tuple[Fact, ...]:
    try:
        return tuple(read(context))
    except NotApplicable:  # no Python
        return ()
    except Exception as error:  # a failure here must not stop the comparison
        return (Fact(name, None, "", failure_text(error)),)


def _variables(context: Context) -> Iterator[Fact]:
    found = context.target.environment
    known = found.variables or {}
    names = (documented() | _FURTHER) - _OWN
    for name in sorted(names.intersection({*known, *found.unknown})):
        reason = None if name in known else found.unknown.get(name)
        yield Fact(VARIABLE + name, known.get(name), found.place(name), reason)
    reason = found.unknown_by_default if found.variables is not None else found.why_unknown("")
    if reason is not None:
        yield Fact(VARIABLES, None, found.description, reason)


def _packages(context: Context) -> Iterator[Fact]:
    found = environment(context)
    for name, rows in sorted(found.found.items()):
        if name not in _FACTS:
            yield Fact(PACKAGE + name, rows[0].version, rows[0].metadata)
    for entry, error in list(found.closed.items())[:1]:
        yield Fact(PACKAGES, None, entry, host_error_text(error))


def _addresses(context: Context) -> Iterator[Fact]:
    yield Fact(ADDRESSES, " ".join(address for row in context.host.interfaces() for address in row.addresses), "")
