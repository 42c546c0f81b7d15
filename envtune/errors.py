"""Everything envtune raises on purpose.

    EnvtuneError
    +-- CatalogError        a YAML file is wrong: every complaint with file:line:column (exit 2)
    +-- SnapshotError       a snapshot is malformed or hostile, with the member's name (exit 2)
    +-- UsageError          an option names something that does not exist (exit 2)
    +-- HostError           reading the host failed; probes let these pass, the engine turns them into outcomes
    |   +-- Missing         the path or command is not there
    |   +-- Denied          the right to read it is missing
    |   +-- TimedOut        it did not answer within its deadline
    |   +-- Unreadable      it is there and makes no sense (not text, not a regular file, I/O error)
    |   +-- NotRecorded     the snapshot does not say whether it is there
    +-- PlanError           a plan file is malformed or asks for what envtune never does (exit 2)
    +-- Skipped             an action has nothing to propose, and why
    +-- Verdict             a probe's own statement about its check
        +-- NotApplicable   the check does not concern this host, and which fact says so
        +-- Undetermined    the probe could not tell, and why

`Missing`, `Denied` and the other host errors are also `OSError`s, so that code shared with the stdlib-only collector
handles a live kernel and a recorded host with the same `except OSError`.
"""

from __future__ import annotations

from envtune.model import Text


class EnvtuneError(Exception):
    """Root of the tree. `zh` is the message in Chinese, where there is one."""

    zh = ""

    def to(self, lang: str) -> str:
        """The message in `lang`."""
        return (self.zh if lang == "zh" else "") or str(self)


class CatalogError(EnvtuneError):
    """One or more catalogue files are wrong; `complaints` holds one `file:line:column: message` each."""

    def __init__(self, complaints: tuple[str, ...], zh: tuple[str, ...] = ()) -> None:
        super().__init__("\n".join(complaints))
        self.complaints = complaints
        self.zh = "\n".join(zh)


class SnapshotError(EnvtuneError):
    """A snapshot cannot be trusted or understood; `where` names the member and the place in it."""

    def __init__(self, where: str, en: str, zh: str = "") -> None:
        super().__init__(f"{where}: {en}" if where else en)
        self.where, self.words = where, (en, zh or en)
        self.zh = f"{where}：{self.words[1]}" if where else self.words[1]

    def below(self, place: str) -> SnapshotError:
        """The same error, said of a member of `place`."""
        return SnapshotError(f"{place}: {self.where}" if self.where else place, *self.words)


class UsageError(EnvtuneError):
    """The command line names something that does not exist."""

    def __init__(self, en: str, zh: str = "") -> None:
        super().__init__(en)
        self.zh = zh


class PlanError(EnvtuneError):
    """A plan cannot be trusted, understood or carried out here; `member` says which part of it."""

    def __init__(self, member: str, en: str, zh: str = "") -> None:
        super().__init__(f"{member}: {en}" if member else en)
        self.zh = f"{member}：{zh}" if member and zh else zh
        self.member = member


class HostError(EnvtuneError, OSError):
    """Reading `path` (a path or a command line) from the host failed."""

    def __init__(self, path: str, detail: str = "") -> None:
        super().__init__(f"{path}: {detail}" if detail else path)
        self.path = path
        self.detail = detail


class Missing(HostError, FileNotFoundError):
    """Not there."""


class Denied(HostError, PermissionError):
    """There, but this user may not read it."""


class TimedOut(HostError):
    """No answer within the deadline."""


class Unreadable(HostError):
    """There, and not what it should be."""


class NotRecorded(HostError):
    """The snapshot is silent about it."""


class Skipped(EnvtuneError):
    """An action cannot or must not repair this finding; the reason is shown in the plan."""

    def __init__(self, reason: Text) -> None:
        super().__init__(reason.en)
        self.reason = reason


class Verdict(EnvtuneError):
    """A statement of a probe about its whole check; `source` is the path or command it rests on."""

    def __init__(self, reason: Text, source: str = "", text: str = "") -> None:
        super().__init__(reason.en)
        self.reason = reason
        self.source = source
        self.text = text


class NotApplicable(Verdict):
    """The check does not concern this host; the reason names the fact."""


class Undetermined(Verdict):
    """The probe cannot tell; `right` is True when the only reason is a right this user lacks."""

    def __init__(self, reason: Text, source: str = "", text: str = "", *, right: bool = False) -> None:
        super().__init__(reason, source, text)
        self.right = right


def host_error_text(error: HostError) -> Text:
    """What a host error means, in words a person can act on."""
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
