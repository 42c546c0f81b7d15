"""Setting kernel parameters: the running kernel's, and a file of our own for the next boot.

Others' files are never edited. Where one of them has the later word, ours gets a name behind it, or the change is left
out and the file is named. Lists are merged with what is there.
"""

from __future__ import annotations

from typing import Callable, Iterable, NamedTuple, Optional, Sequence

from envtune import intervals as regions
from envtune.context import Context
from envtune.context.registry import action
from envtune.errors import HostError, Missing, Skipped, Undetermined
from envtune.host import Host
from envtune.intervals import Intervals
from envtune.messages import Bilingual, Message, Text
from envtune.model import Change, Finding
from envtune.resources.cpu.boot import tuned_option, tuned_profiles
from envtune.resources.files.change import content, file_operation, mounted_read_only, shown
from envtune.resources.network import ports
from envtune.resources.sysctl import files as sysctl_files
from envtune.resources.sysctl.files import Line, key_path, lines

# The first is ours; the others are for hosts on which somebody's later file sets the same key.
OWN_FILES = ("95-envtune.conf", "99-zz-envtune.conf", "zz-envtune.conf")
HEADER = "# Written by envtune (see `envtune history`); one line per key.\n"


class Wanted(NamedTuple):
    """What a key shall hold. `merge` makes it of what is there (empty text: nothing); `holds` says it is so already."""

    merge: Callable[[Sequence[str]], str]
    holds: Callable[[str], bool]
    cures: tuple[str, ...]


@action("sysctl.set")
def set_key(
    context: Context, findings: Sequence[Finding], *, key: str, value: str = "", add: str = ""
) -> Iterable[Change]:
    """Set `key` to `value`, or add to its list the ports that `add` names (`job_ports`); now, and for the next boot."""
    wanted = _SOURCES[add](context, findings) if add else _plain(value, findings)
    path = f"/proc/sys/{key_path(key)}"
    try:
        live = " ".join(context.host.read(path).split())
    except Missing:
        raise Skipped(Message("this kernel has no {key}", key=key)) from None
    changes = list(_live(context, key, path, live, wanted))
    try:
        changes += _boot(context, key, live, wanted)
    except Skipped as skipped:
        why = skipped.reason
        note = Message("until the next boot only: {why}", why=why)
        if not changes:
            raise
        changes = [change._replace(note=note) for change in changes]
    if not changes:
        raise Skipped(Message("{key} is set already, now and for the next boot", key=key))
    return changes


# ---------------------------------------------------------------------- what is wanted


def _plain(value: str, findings: Sequence[Finding]) -> Wanted:
    words = " ".join(value.split())
    if not words:
        raise Skipped(Message("sysctl.set was given no value"))
    return Wanted(lambda there: words, lambda there: there == words, _ids(findings))


def _ids(findings: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(finding.id for finding in findings))


def _job_ports(context: Context, findings: Sequence[Finding]) -> Wanted:
    """The ports of the job that the kernel may give away: HCCL's range, and MASTER_PORT."""
    wanted: Intervals = ()
    cures: list[str] = []
    reasons: list[Text] = []
    for check in _ids(findings):
        readings = list(ports.hccl(context) if check == "NET005" else ports.master_port(context))
        if any(reading.value == "exposed" for reading in readings):
            found = ports.hccl_ports(context).ports if check == "NET005" else _master_port(context)
            wanted = regions.union((*wanted, *found))
            cures.append(check)
        reasons += [r.shown for r in readings if r.value in ("taken", "impossible") and r.shown is not None]
    if not cures:
        reasons += [f.check.remedy for f in findings[:1] if f.check.remedy is not None]
        en, zh = "; ".join(r.en for r in reasons), "；".join(r.zh for r in reasons)
        raise Skipped(Bilingual(f"reserving ports does not help: {en}", f"预留端口无法解决：{zh}"))

    def merge(there: Sequence[str]) -> str:
        kept = [pair for text in there for pair in ports.port_list(text)]
        return regions.port_text(regions.union((*kept, *wanted))).replace(" ", "")

    def holds(text: str) -> bool:
        return not regions.difference(wanted, ports.port_list(text))

    return Wanted(merge, holds, tuple(cures))


def _master_port(context: Context) -> Intervals:
    port = int(context.target.variables()["MASTER_PORT"])
    return ((port, port),)


_SOURCES: dict[str, Callable[[Context, Sequence[Finding]], Wanted]] = {"job_ports": _job_ports}


def _merged(wanted: Wanted, there: Iterable[Optional[str]], key: str) -> str:
    try:
        return wanted.merge([text for text in there if text])
    except ValueError as error:
        words = f"{key} holds what is no list of ports: {error}"
        raise Skipped(Bilingual(words, f"{key} 的内容不是端口列表：{error}")) from None


def _holds(wanted: Wanted, text: str) -> bool:
    try:
        return wanted.holds(text)
    except ValueError:
        return False


# ---------------------------------------------------------------------- the running kernel


def _live(context: Context, key: str, path: str, live: str, wanted: Wanted) -> Iterable[Change]:
    if _holds(wanted, live):
        return
    after = _merged(wanted, [live], key)
    locked = mounted_read_only(context.host, path)
    if locked is not None and context.facts.value("container") == "true":
        setting = f"{key}={after}"
        raise Skipped(
            Message(
                "{locked}; for a container with a network of its own: docker run --sysctl {setting}",
                locked=locked,
                setting=setting,
            )
        )
    yield Change(
        finding=wanted.cures[0],
        subject=key,
        playbook="",
        action="sysctl.set",
        target=key,
        before=live,
        after=after,
        view="live",
        operations=(file_operation(context.host, path, after + "\n"),),
        rivals=(*([] if locked is None else [locked]), *_tuned(context.host, key)),
        cures=wanted.cures[1:],
    )


def _tuned(host: Host, key: str) -> tuple[Text, ...]:
    """That the active tuned profile sets the key, too."""
    try:
        for name in reversed(tuned_profiles(host) or []):
            found = tuned_option(host, name, "sysctl", key)
            if found is not None:
                words = f"tuned ({name}) sets {key}={found[0]} when it starts ({found[1]})"
                return (Bilingual(words, f"tuned（{name}）启动时设置 {key}={found[0]}（{found[1]}）"),)
    except (HostError, Undetermined):
        pass
    return ()


# ---------------------------------------------------------------------- the next boot


def _boot(context: Context, key: str, live: str, wanted: Wanted) -> Iterable[Change]:
    host, path = context.host, key_path(key)
    if context.facts.value("container") == "true":
        return  # nothing reads sysctl.d when a container starts
    every = sysctl_files.settings(host)
    now = sysctl_files.winner(every, path)
    if now is not None and now.value is not None and _holds(wanted, now.value):
        return
    others = [line for line in every if line.key == path and line.value is not None and line.name not in OWN_FILES]
    name = _winning_name(others)
    if name is None:
        last = others[-1]
        words = f"{last.place} sets {key} and no file of ours comes behind it; change it there"
        raise Skipped(Bilingual(words, f"{last.place} 设置了 {key}，且本工具的文件无法排在其后；请在该处修改"))
    after = _merged(wanted, [now.value if now is not None else None, live], key)
    target = f"/etc/sysctl.d/{name}"
    yield Change(
        finding=wanted.cures[0],
        subject=key,
        playbook="",
        action="sysctl.set",
        target=target,
        before=shown(content(host, target)),
        after=with_key(shown(content(host, target)), key, after),
        view="boot",
        operations=tuple(_operations(host, key, target, after)),
        rivals=(*_files(others, key, target), *map(_elsewhere, sysctl_files.elsewhere(host, path)), *_tuned(host, key)),
        cures=wanted.cures[1:],
    )


def _winning_name(others: Sequence[Line]) -> Optional[str]:
    """The first of our names that is read behind everybody else's; None when there is none."""
    last = max((line.name for line in others), default="")
    return next((name for name in OWN_FILES if name > last), None)


def _operations(host: Host, key: str, target: str, value: str) -> Iterable[dict[str, object]]:
    yield file_operation(host, target, with_key(shown(content(host, target)), key, value))
    for name in OWN_FILES:  # an earlier choice of ours, which has no effect any more
        path, text = f"/etc/sysctl.d/{name}", shown(content(host, f"/etc/sysctl.d/{name}"))
        if path != target and any(line.key == key_path(key) for line in lines(text, path)):
            yield file_operation(host, path, with_key(text, key, None))


def with_key(text: str, key: str, value: Optional[str]) -> str:
    """The file with one line for the key (None: with no line for it); every other line stays."""
    setting = "" if value is None else f"{key} = {value}"
    kept: list[str] = []
    for row in text.splitlines() if text else HEADER.splitlines():
        if any(line.key == key_path(key) for line in lines(row, "")):
            if not setting:
                continue
            row, setting = setting, ""
        kept.append(row)
    if setting:
        kept.append(setting)
    return "".join(row + "\n" for row in kept)


def _files(others: Sequence[Line], key: str, target: str) -> list[Text]:
    return [
        Message(
            "{place} sets {key} = {value}; {target} is read after it",
            place=line.place,
            key=key,
            value=line.value,
            target=target,
        )
        for line in others
    ]


def _elsewhere(line: Line) -> Text:
    en = "`sysctl --system` reads it last, the boot does not" if line.path == sysctl_files.MAIN else "ufw sets it"
    zh = "`sysctl --system` 最后读取它，而系统启动时不读取" if line.path == sysctl_files.MAIN else "由 ufw 设置"
    return Bilingual(f"{line.place} holds {line.value} ({en})", f"{line.place} 为 {line.value}（{zh}）")
