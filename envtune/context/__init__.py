"""The context of one run: the host, the facts about it, and the job that is judged."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Optional, Sequence, TypeVar

from envtune.context import registry
from envtune.errors import HostError, Verdict, failure_text
from envtune.host import Host
from envtune.job.target import Target
from envtune.model import Expectation, Fact

T = TypeVar("T")
NO_FACTS: Mapping[str, Fact] = {}
NO_EXPECTATIONS: Mapping[str, Sequence[Expectation]] = {}


class Facts:
    """What kind of host this is: a lazy mapping of fact names to `Fact`.

    A fact is a string with its source, or has no value but a reason why it is unknown. Facts are what `applies:` in a
    check is matched against, so a check that does not apply names the fact that excluded it. Each is read at most
    once, and only when something asks for it.
    """

    def __init__(self, context: Context, known: Mapping[str, Fact]) -> None:
        self._context = context
        self._known = dict(known)

    def __getitem__(self, name: str) -> Fact:
        """Return the fact; raises KeyError if there is no such fact."""
        if name not in self._known:
            self._known[name] = self._read(name)
        return self._known[name]

    def _read(self, name: str) -> Fact:
        if name not in self.names():
            raise KeyError(name)
        try:
            return registry.find_fact(name)(self._context)
        except HostError as error:
            return Fact(name, None, error.path, failure_text(error))
        except Verdict as verdict:
            return Fact(name, None, verdict.source, failure_text(verdict))
        except Exception as error:  # a bug, or a module that cannot be imported: affects this fact, not the report
            return Fact(name, None, name, failure_text(error))

    def give(self, fact: Fact) -> None:
        """Set a fact instead of reading it."""
        self._known[fact.name] = fact

    def value(self, name: str) -> Optional[str]:
        """Return the value, None if it is unknown."""
        return self[name].value

    def read(self) -> Mapping[str, Fact]:
        """Return the facts that have been read so far."""
        return self._known

    def known(self, name: str) -> Optional[Fact]:
        """Return the fact if it has already been read."""
        return self._known.get(name)

    def names(self) -> tuple[str, ...]:
        """Return the name of every fact, sorted."""
        return registry.fact_names()


class Context:
    """The context that probes and actions read from. `cached` shares work between checks."""

    def __init__(
        self,
        host: Host,
        target: Target,
        known: Mapping[str, Fact] = NO_FACTS,
        expectations: Mapping[str, Sequence[Expectation]] = NO_EXPECTATIONS,
    ) -> None:
        """`known` are facts to use instead of reading them, `expectations` those of the catalog by variable."""
        self.host, self.target, self.known, self.expectations = host, target, known, expectations
        self._memory: dict[Any, Any] = {}
        self.facts = Facts(self, known)

    def with_target(self, target: Target) -> Context:
        """Return the context of another job that reuses what was read for this one."""
        made = Context(self.host, target, self.known, self.expectations)
        made._memory = self._memory
        return made

    def cached(self, read: Callable[..., T], *arguments: Any) -> T:
        """Return `read(self, *arguments)`, computed at most once per run; an exception it raised is raised again."""
        key = (read, arguments)
        if key not in self._memory:
            try:
                self._memory[key] = (read(self, *arguments), None)
            except Exception as failure:
                self._memory[key] = (None, failure)
        value, error = self._memory[key]
        if error is not None:
            raise error.with_traceback(None)
        return value  # type: ignore[no-any-return]

    def give(self, key: tuple[Callable[..., T], tuple[Any, ...]], value: T) -> None:
        """Make `cached` return this for a function and its arguments."""
        self._memory[key] = (value, None)
