"""The TBE packages te, topi and hccl of the target Python, compared with the active CANN by content, not by version.

The wheels have been called te-0.4.0 and topi-0.4.0 over many CANN releases, so an equal version says nothing, and
`pip install --upgrade` of an equal version does nothing. Compared are the (path, hash) pairs of the two RECORDs.
Where a tree has wheels: fwkacllib/lib64 (CANN 20.x-5.0.2), {arch}-linux/lib64 (5.0.4-6.3.RC2), lib64. From CANN 7.0 on
nothing is to be installed: the tree's python/site-packages is on PYTHONPATH.
Sources: porting guide 003:3038-3048; README of Ascend/pytorch by branch.
"""

from __future__ import annotations

from posixpath import basename, dirname
from typing import Iterable, NamedTuple, Optional

from envtune.collector.sources.cann import TE_PACKAGES, TE_TREE_PLACES, TE_WHEEL_PLACES
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, NotRecorded, Undetermined, host_error_text
from envtune.host import Host, exists, is_dir
from envtune.messages import Bilingual, Literal, Message, Text
from envtune.model import Evidence, Reading
from envtune.resources.cann.installs import active_install
from envtune.resources.cann.tree import Install, install_root
from envtune.resources.python import distributions as python_env


class Reference(NamedTuple):
    """What a package should be: a wheel of the CANN, or its dist-info in the tree's own site-packages."""

    path: str  # of the wheel or RECORD
    digest: str


@probe("cann.te_content", formerly="te.content")
def content(context: Context) -> Iterable[Reading]:
    """One reading per package: whether what the target imports is what the active CANN ships."""
    install = active_install(context)
    environment = python_env.environment(context)
    readings = []
    for name in TE_PACKAGES:
        try:
            reading = _content(context, install, name)
        except HostError as error:
            reading = Reading(name, None, Evidence(error.path, str(error)), reason=host_error_text(error))
        if reading is not None and reading.value is False:
            reading = reading._replace(commands=(_command(context, install, name),))
        if reading is not None:
            readings.append(reading)
    if not readings:
        raise NotApplicable(
            Message(
                "CANN {version} ships no te or topi wheel and {path} has none",
                version=install.version or "?",
                path=environment.python.path,
            ),
            install.real,
        )
    return readings


def _content(context: Context, install: Install, name: str) -> Optional[Reading]:
    host = context.host
    wheels = wheel_paths(host, install, name)
    copies = [row for row in python_env.every(context, name) if install_root(host, row.metadata) is None]
    if not wheels and not copies:
        return _from_tree(context, install, name)
    if not copies:
        return _not_installed(context, install, name, wheels[0])
    copy = copies[0]
    references = wheels or [f"{row}/RECORD" for row in tree_records(host, install, name)]
    if not references:
        return _left_behind(context, install, name, copy)
    return _compared(host, install, name, copy, references)


def _command(context: Context, install: Install, name: str) -> str:
    """What mends it: the wheel of this CANN, or, where it ships none, taking away what pip installed."""
    from shlex import quote

    pip = f"{quote(python_env.environment(context).python.path)} -m pip"
    wheel = newest_wheel(context.host, install, name)
    return f"{pip} install --force-reinstall --no-deps {quote(wheel)}" if wheel else f"{pip} uninstall {name}"


def newest_wheel(host: Host, install: Install, name: str) -> Optional[str]:
    """The newest wheel of one package in the tree, None where it ships none."""
    return max(wheel_paths(host, install, name), key=basename, default=None)


def wheel_paths(host: Host, install: Install, name: str) -> list[str]:
    """The wheels of one package in the three places CANN keeps them."""
    found: dict[str, str] = {}
    for pattern in install.places(*(f"{place}/{name}-*.whl" for place in TE_WHEEL_PLACES)):
        for path in _glob(host, pattern):
            found.setdefault(basename(path), path)
    return list(found.values())


def tree_records(host: Host, install: Install, name: str) -> list[str]:
    """The dist-info directories of one package in the tree's own site-packages."""
    patterns = install.places(*(f"{place}/{name}-*.dist-info" for place in TE_TREE_PLACES))
    return [path for pattern in patterns for path in _glob(host, pattern)]


def tree_package(host: Host, install: Install, name: str) -> Optional[str]:
    """The package directory in the tree's own site-packages, None when it is not there."""
    for pattern in install.places(*(f"{place}/{name}" for place in TE_TREE_PLACES)):
        for path in _glob(host, pattern) if "*" in pattern else (pattern,):
            if is_dir(host, path):
                return path
    return None


def _from_tree(context: Context, install: Install, name: str) -> Optional[Reading]:
    """Nothing to install and nothing installed: what is imported from the tree itself is right by its place."""
    place = python_env.locate(context, name)
    if place is None or install_root(context.host, place) != install.real:
        return None
    shown = Message("imported from the tree: {place}", place=place)
    return Reading(name, True, Evidence(place), shown, Message("{name} of {real}", name=name, real=install.real))


def _not_installed(context: Context, install: Install, name: str, wheel: str) -> Optional[Reading]:
    """A wheel is shipped and not installed: what the tree's own site-packages offer on PYTHONPATH will do as well."""
    place = python_env.locate(context, name)
    if place is not None and install_root(context.host, place) == install.real:
        shown = Message("imported from the tree: {place}", place=place)
        return Reading(name, True, Evidence(place), shown, _expected(wheel))
    if name == "hccl":
        return None  # torch does not import it
    untold = context.target.environment.why_unknown("PYTHONPATH")
    if untold is not None:
        return Reading(name, None, Evidence(wheel), None, _expected(wheel), reason=untold)
    shown = Message("not installed") if place is None else Message("imported from {place}", place=place)
    python = python_env.environment(context).python
    return Reading(name, False, Evidence(wheel, f"{name} is not in {', '.join(python.sites)}"), shown, _expected(wheel))


def _compared(host: Host, install: Install, name: str, copy: python_env.Distribution, references: list[str]) -> Reading:
    record, wanted = f"{copy.metadata}/RECORD", {path: host.record_digest(path) for path in references}
    expected = _expected(" | ".join(references))
    try:
        if not copy.metadata.endswith(".dist-info"):
            raise Missing(record, "installed without a RECORD")
        digest = host.record_digest(record)
    except NotRecorded:
        raise
    except HostError as error:
        why = Bilingual(
            f"{name} {copy.version} in {copy.entry} cannot be compared by content: {error.detail or 'no RECORD'}",
            f"{copy.entry} 中的 {name} {copy.version} 无法按内容比对：{error.detail or '没有 RECORD'}",
        )
        return Reading(name, None, Evidence(record, str(error)), None, expected, reason=why)
    text = "\n".join([f"{record}: {digest}", *(f"{path}: {one}" for path, one in wanted.items())])
    evidence = Evidence(f"{record}, {references[0]}", text)
    if digest in wanted.values():
        shown = Message("{version}, the same content", version=copy.version)
        return Reading(name, True, evidence, shown, expected)
    shown = Message(
        "{version} in {entry}, other content than CANN {version_2} ships",
        version=copy.version,
        entry=copy.entry,
        version_2=install.version or "?",
    )
    return Reading(name, False, evidence, shown, expected)


def _left_behind(context: Context, install: Install, name: str, copy: python_env.Distribution) -> Optional[Reading]:
    """A copy that pip left behind beside a tree that ships no wheel: nothing should be installed at all.

    That it takes the place of the tree's own wherever PYTHONPATH does not name the tree first rests on Python's import
    order, not on an observed failure; the text says which of the two is imported now.
    """
    own = tree_package(context.host, install, name)
    if name == "hccl":
        return None  # torch does not import it
    place = python_env.locate(context, name)
    evidence = Evidence(copy.metadata, f"import {name}: {place}")
    expected = Message("{name} from the tree ({own}), nothing installed by pip", name=name, own=own or install.real)
    left = Message(
        "{name} {version} of an older CANN left in {entry}", name=name, version=copy.version, entry=copy.entry
    )
    now = Message("it is the one that is imported")
    if place is not None and install_root(context.host, place) == install.real:
        now = Message("imported wherever PYTHONPATH does not name the tree first, as it does now")
    elif context.target.environment.why_unknown("PYTHONPATH") is not None:
        now = Message("imported unless PYTHONPATH names the tree")
    return Reading(name, False, evidence, Message("{left}: {now}", left=left, now=now), expected)


def _expected(wheel: str) -> Text:
    return Message("the content of {wheel}", wheel=wheel)


@probe("cann.te_origin", formerly="te.origin")
def origin(context: Context) -> Iterable[Reading]:
    """Whether te, topi and tvm come from one place: the tree of the active CANN, or the site-packages that holds te.

    Source: porting guide 003:3044 (te, cce and tvm are needed together). A tvm of PyPI (apache-tvm) is another one.
    """
    install = active_install(context)
    host = context.host
    shipped = wheel_paths(host, install, "te") or tree_package(host, install, "te")
    place = python_env.locate(context, "te")
    if place is None and not shipped:
        raise NotApplicable(
            Message("CANN {version} ships no te here", version=install.version or "?"),
            install.real,
        )
    expected = Message("te, topi and tvm from one CANN")
    untold = context.target.environment.why_unknown("PYTHONPATH")
    if untold is not None:
        raise Undetermined(untold, context.target.environment.place("PYTHONPATH"))
    if place is None:
        evidence = Evidence(", ".join(python_env.environment(context).entries), "import te: not found")
        shown = Message("not importable")
        return [Reading("te", False, evidence, shown, expected)]
    home = install_root(host, place) or dirname(place)
    readings = [_placed(context, "te", place, home, install, expected)]
    for name in ("topi", "tvm"):
        other = python_env.locate(context, name)
        if other is not None:
            readings.append(_placed(context, name, other, home, install, expected))
    return readings


def _placed(context: Context, name: str, place: str, home: str, install: Install, expected: Text) -> Reading:
    root = install_root(context.host, place)
    evidence = Evidence(place, f"import {name}: {place}")
    foreign = _foreign(context, place) if name == "tvm" and root is None else None
    if foreign is not None:
        shown = Message(
            "{place} belongs to {name} {version} of PyPI, not to CANN",
            place=place,
            name=foreign.name,
            version=foreign.version,
        )
        return Reading(name, False, evidence, shown, expected)
    if root is not None and root != install.real:
        shown = Message("{place}, another CANN than the job's {real}", place=place, real=install.real)
        return Reading(name, False, evidence, shown, expected)
    if (root or dirname(place)) != home:
        shown = Message("{place}, while te comes from {home}", place=place, home=home)
        return Reading(name, False, evidence, shown, expected)
    return Reading(name, True, evidence, Literal(place), expected)


def _foreign(context: Context, place: str) -> Optional[python_env.Distribution]:
    """The PyPI distribution that brings a top-level tvm."""
    for name in ("apache-tvm", "tvm", "mlc-ai-nightly"):
        for row in python_env.every(context, name):
            if row.entry == dirname(place):
                return row
    return None


def _glob(host: Host, pattern: str) -> tuple[str, ...]:
    if "*" not in pattern:
        return (pattern,) if exists(host, pattern) else ()
    try:
        return host.glob(pattern)
    except NotRecorded:
        return ()
