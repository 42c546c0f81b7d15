"""What kind of host this is. A fact is a string with its source, or no value and the reason why it cannot be told.

Facts are what `applies:` in a check is matched against, so a check that does not apply names the fact that excluded it.
Each is gathered at most once and only when something asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional

from envtune.errors import HostError, Verdict
from envtune.model import Fact, Text, same

if TYPE_CHECKING:
    from envtune.resources import Scene

Gatherer = Callable[["Scene"], Fact]


class Facts:
    """Lazy mapping of fact name to `Fact`."""

    def __init__(self, gatherers: Mapping[str, Gatherer]) -> None:
        self._gatherers = gatherers
        self._known: dict[str, Fact] = {}
        self._scene: Optional[Scene] = None

    def attach(self, scene: Scene) -> None:
        """Name the scene the facts are gathered from."""
        self._scene = scene

    def __getitem__(self, name: str) -> Fact:
        """The fact; KeyError when there is no such fact."""
        if name not in self._known:
            gather = self._gatherers[name]
            assert self._scene is not None, "attach() comes first"
            try:
                self._known[name] = gather(self._scene)
            except HostError as error:
                self._known[name] = Fact(name, None, error.path, host_error_text(error))
            except Verdict as verdict:
                self._known[name] = Fact(name, None, verdict.source, verdict.reason)
        return self._known[name]

    def value(self, name: str) -> Optional[str]:
        """The value, None when it cannot be told."""
        return self[name].value

    def names(self) -> tuple[str, ...]:
        """Every fact there is, sorted."""
        return tuple(sorted(self._gatherers))


def host_error_text(error: HostError) -> Text:
    """What a host error means, in words a person can act on."""
    from envtune.errors import Denied, Missing, NotRecorded, TimedOut

    path = error.path
    if isinstance(error, Missing):
        return Text(f"{path} is not there", f"{path} 不存在")
    if isinstance(error, Denied):
        return Text(f"{path} may not be read by this user", f"当前用户无权读取 {path}")
    if isinstance(error, TimedOut):
        return Text(f"{path} did not answer ({error.detail})", f"{path} 没有响应（{error.detail}）")
    if isinstance(error, NotRecorded):
        return Text(f"{path} is not in the snapshot", f"快照中没有 {path}")
    return Text(f"{path} cannot be understood: {error.detail}", f"{path} 无法解析：{error.detail}")


def excluded(applies: Mapping[str, Any], facts: Facts) -> tuple[Optional[Fact], Optional[Text], bool]:
    """The first fact that keeps a check from applying: (fact, reason, told).

    (None, None, True) when the check applies; `told` is False when a fact it needs could not be told.
    """
    for name, wanted in applies.items():
        fact = facts[name]
        if fact.value is None:
            why = fact.reason or same("-")
            return fact, Text(f"cannot tell {name}: {why.en}", f"无法判断 {name}：{why.zh}"), False
        if not _meets(wanted, fact.value):
            words = _wanted_text(wanted)
            return (
                fact,
                Text(
                    f"{name} is {fact.value}; this check is for {words.en}",
                    f"{name} 为 {fact.value}；本检查适用于 {words.zh}",
                ),
                True,
            )
    return None, None, True


def _meets(wanted: Any, value: str) -> bool:
    if isinstance(wanted, Mapping):
        return not _meets(wanted["not"], value)
    if isinstance(wanted, (list, tuple)):
        return any(_meets(one, value) for one in wanted)
    return _scalar(wanted) == value


def _scalar(wanted: Any) -> str:
    return str(wanted).lower() if isinstance(wanted, bool) else str(wanted)


def _wanted_text(wanted: Any) -> Text:
    if isinstance(wanted, Mapping):
        inner = _wanted_text(wanted["not"])
        return Text(f"anything but {inner.en}", f"{inner.zh} 以外的值")
    if isinstance(wanted, (list, tuple)):
        return same(" | ".join(_scalar(one) for one in wanted))
    return same(_scalar(wanted))


def gatherers() -> dict[str, Gatherer]:
    """Every fact of the shipped resources: name -> gatherer. Importing the modules is left to the first use."""
    return {name: _lazy(name, module) for name, module in _FACTS.items()}


# fact -> the module of envtune.resources whose `fact_<name>(scene)` tells it
_FACTS: Mapping[str, str] = {
    "system": "platform",
    "arch": "platform",
    "kernel": "platform",
    "os": "platform",
    "os_version": "platform",
    "os_family": "platform",
    "container": "virtualization",
    "vm": "virtualization",
    "cpus": "platform",
    "user": "platform",
    "npu": "npu",
    "npu_count": "npu",
    "ascend": "npu",
    "cann": "cann",
    "cann_generation": "cann",
    "driver": "driver",
    "firmware": "driver",
    "python": "python_env",
    "torch": "python_env",
    "torch_npu": "python_env",
}


def _lazy(name: str, module: str) -> Gatherer:
    def gather(scene: Scene) -> Fact:
        import importlib

        function: Gatherer = getattr(importlib.import_module(f"envtune.resources.{module}"), f"fact_{name}")
        return function(scene)

    return gather
