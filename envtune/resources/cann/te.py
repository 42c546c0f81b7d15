"""The TBE packages te, topi and hccl of the target Python, compared with the active CANN by content, not by version.

The wheels have been named te-0.4.0 and topi-0.4.0 for many CANN releases, so an equal version says nothing, and
`pip install --upgrade` of an equal version does nothing. Compared are the (path, hash) pairs of the two RECORDs.
Where a tree has wheels: fwkacllib/lib64 (CANN 20.x-5.0.2), {arch}-linux/lib64 (5.0.4-6.3.RC2), lib64. From CANN 7.0 on
there is nothing to install: the tree's python/site-packages is on PYTHONPATH.
Sources: porting guide 003:3038-3048; README of Ascend/pytorch by branch.
"""

from __future__ import annotations

from posixpath import basename, dirname
from typing import Iterable, Optional

from envtune.collector.sources.cann import TE_PACKAGES, TE_TREE_PLACES, TE_WHEEL_PLACES
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, NotRecorded, Undetermined, host_error_text
from envtune.host import Host, exists, is_dir
from envtune.messages import Literal, Message, Text, alternatives, enumerated
from envtune.model import Evidence, Reading
from envtune.resources.cann.installs import active_install
from envtune.resources.cann.tree import Install, install_root
from envtune.resources.python import distributions

UNUSED = "left over, not imported"


@probe("cann.te_content", formerly="te.content")
def content(context: Context) -> Iterable[Reading]:
    """Whether the te, topi and hccl that the job's Python imports are those of the active CANN."""
    install = active_install(context)
    python = distributions.environment(context).python
    readings = []
    for name in TE_PACKAGES:
        try:
            reading = _package_content(context, install, name)
        except HostError as error:
            reading = Reading(name, None, Evidence(error.path, str(error)), reason=host_error_text(error))
        if reading is not None:
            readings.append(reading)
    if not readings:
        cann = install.version or "?"
        reason = Message("CANN {cann} ships no te or topi wheel and {python} has none", cann=cann, python=python.path)
        raise NotApplicable(reason, install.real)
    return readings


def _package_content(context: Context, install: Install, name: str) -> Optional[Reading]:
    host = context.host
    wheels = wheel_paths(host, install, name)
    copy = installed_copy(context, name)
    if copy is None:
        return _not_installed(context, install, name, wheels[0]) if wheels else _from_tree(context, install, name)
    references = wheels or [f"{directory}/RECORD" for directory in tree_metadata(host, install, name)]
    if not references:
        return _left_over(context, install, name, copy)
    return _compared(host, install, name, copy, references)


def installed_copy(context: Context, name: str) -> Optional[distributions.Distribution]:
    """Return the copy of a package that pip installed outside every CANN tree, None if there is none."""
    rows = distributions.every(context, name)
    return next((row for row in rows if install_root(context.host, row.metadata) is None), None)


def newest_wheel(host: Host, install: Install, name: str) -> Optional[str]:
    """Return the newest wheel of one package in the tree, None if it ships none."""
    return max(wheel_paths(host, install, name), key=basename, default=None)


def wheel_paths(host: Host, install: Install, name: str) -> list[str]:
    """Return the wheels of one package in the directories in which CANN keeps them."""
    wheels: dict[str, str] = {}
    for pattern in install.places(*(f"{place}/{name}-*.whl" for place in TE_WHEEL_PLACES)):
        for path in _glob(host, pattern):
            wheels.setdefault(basename(path), path)
    return list(wheels.values())


def tree_metadata(host: Host, install: Install, name: str) -> list[str]:
    """Return the dist-info directories of one package in the tree's own site-packages."""
    patterns = install.places(*(f"{place}/{name}-*.dist-info" for place in TE_TREE_PLACES))
    return [path for pattern in patterns for path in _glob(host, pattern)]


def tree_package(host: Host, install: Install, name: str) -> Optional[str]:
    """Return the package directory in the tree's own site-packages, None if it does not exist."""
    for pattern in install.places(*(f"{place}/{name}" for place in TE_TREE_PLACES)):
        for path in _glob(host, pattern) if "*" in pattern else (pattern,):
            if is_dir(host, path):
                return path
    return None


def _from_tree(context: Context, install: Install, name: str) -> Optional[Reading]:
    """Judge a package that is neither shipped as a wheel nor installed: importing it from the tree itself is right."""
    path = distributions.locate(context, name)
    if path is None or install_root(context.host, path) != install.real:
        return None
    shown = Message("imported from the tree: {path}", path=path)
    return Reading(name, True, Evidence(path), shown, Message("{name} of {tree}", name=name, tree=install.real))


def _not_installed(context: Context, install: Install, name: str, wheel: str) -> Optional[Reading]:
    """Judge a package whose wheel is not installed: the tree's own site-packages on PYTHONPATH serve as well."""
    path = distributions.locate(context, name)
    expected = Message("the content of {wheel}", wheel=wheel)
    if path is not None and install_root(context.host, path) == install.real:
        shown = Message("imported from the tree: {path}", path=path)
        return Reading(name, True, Evidence(path), shown, expected)
    if name == "hccl":
        return None  # torch does not import it
    why_unknown = context.target.environment.why_unknown("PYTHONPATH")
    if why_unknown is not None:
        return Reading(name, None, Evidence(wheel), None, expected, reason=why_unknown)
    shown = Message("not installed") if path is None else Message("imported from {path}", path=path)
    python = distributions.environment(context).python
    return Reading(name, False, Evidence(wheel, f"{name} is not in {', '.join(python.sites)}"), shown, expected)


def _compared(
    host: Host, install: Install, name: str, copy: distributions.Distribution, references: list[str]
) -> Reading:
    record, digests = f"{copy.metadata}/RECORD", {path: host.record_digest(path) for path in references}
    expected = Message("the content of {wheel}", wheel=alternatives(references))
    try:
        if not copy.metadata.endswith(".dist-info"):
            raise Missing(record, "installed without a RECORD")
        digest = host.record_digest(record)
    except NotRecorded:
        raise
    except HostError as error:
        reason = Message(
            "{name} {version} in {entry} cannot be compared by content: {why}",
            name=name,
            version=copy.version,
            entry=copy.entry,
            why=error.detail or Message("no RECORD"),
        )
        return Reading(name, None, Evidence(record, str(error)), None, expected, reason=reason)
    text = "\n".join([f"{record}: {digest}", *(f"{path}: {shipped}" for path, shipped in digests.items())])
    evidence = Evidence(enumerated((record, references[0])), text)
    if digest in digests.values():
        shown = Message("{version}, the same content", version=copy.version)
        return Reading(name, True, evidence, shown, expected)
    shown = Message(
        "{version} with other content than CANN {cann} ships ({entry})",
        version=copy.version,
        entry=copy.entry,
        cann=install.version or "?",
    )
    return Reading(name, False, evidence, shown, expected)


def _left_over(context: Context, install: Install, name: str, copy: distributions.Distribution) -> Optional[Reading]:
    """Judge a copy that pip left although the tree ships no wheel: nothing should be installed at all.

    That it shadows the tree's package unless PYTHONPATH names the tree first follows from Python's import order, not
    from an observed failure; the text says which of the two is imported now.
    """
    if name == "hccl":
        return None  # torch does not import it
    path = distributions.locate(context, name)
    evidence = Evidence(copy.metadata, f"import {name}: {path}")
    package = tree_package(context.host, install, name) or install.real
    expected = Message("{name} from the tree ({path}), nothing installed by pip", name=name, path=package)
    value: object = False
    effect = Message("this one is imported")
    if path is not None and install_root(context.host, path) == install.real:
        value, effect = UNUSED, Message("not imported now")
    elif context.target.environment.why_unknown("PYTHONPATH") is not None:
        effect = Message("imported unless PYTHONPATH names the install tree")
    shown = Message(
        "{name} {version} of an older CANN, {effect} ({entry})",
        name=name,
        version=copy.version,
        effect=effect,
        entry=copy.entry,
    )
    return Reading(name, value, evidence, shown, expected)


@probe("cann.te_origin", formerly="te.origin")
def origin(context: Context) -> Iterable[Reading]:
    """Whether te, topi and tvm come from one CANN install or one site-packages directory.

    Source: porting guide 003:3044 (te, cce and tvm are needed together). The tvm of PyPI (apache-tvm) is a different
    one.
    """
    install = active_install(context)
    host = context.host
    shipped = wheel_paths(host, install, "te") or tree_package(host, install, "te")
    path = distributions.locate(context, "te")
    if path is None and not shipped:
        raise NotApplicable(Message("CANN {version} ships no te here", version=install.version or "?"), install.real)
    expected = Message("te, topi and tvm from one CANN")
    why_unknown = context.target.environment.why_unknown("PYTHONPATH")
    if why_unknown is not None:
        raise Undetermined(why_unknown, context.target.environment.place("PYTHONPATH"))
    if path is None:
        evidence = Evidence(enumerated(distributions.environment(context).entries), "import te: not found")
        shown = Message("not importable")
        return [Reading("te", False, evidence, shown, expected)]
    te_home = install_root(host, path) or dirname(path)
    readings = [_origin_reading(context, "te", path, te_home, install, expected)]
    for name in ("topi", "tvm"):
        other = distributions.locate(context, name)
        if other is not None:
            readings.append(_origin_reading(context, name, other, te_home, install, expected))
    return readings


def _origin_reading(context: Context, name: str, path: str, te_home: str, install: Install, expected: Text) -> Reading:
    root = install_root(context.host, path)
    evidence = Evidence(path, f"import {name}: {path}")
    pypi = _pypi_tvm(context, path) if name == "tvm" and root is None else None
    shown: Text = Literal(path)
    if pypi is not None:
        shown = Message(
            "{path} belongs to {name} {version} of PyPI, not to CANN", path=path, name=pypi.name, version=pypi.version
        )
    elif root is not None and root != install.real:
        shown = Message("{path}, another CANN than the job's {tree}", path=path, tree=install.real)
    elif (root or dirname(path)) != te_home:
        shown = Message("{path}, while te comes from {te_home}", path=path, te_home=te_home)
    else:
        return Reading(name, True, evidence, shown, expected)
    return Reading(name, False, evidence, shown, expected)


def _pypi_tvm(context: Context, path: str) -> Optional[distributions.Distribution]:
    """Return the PyPI distribution that installs a top-level tvm."""
    rows = (row for name in ("apache-tvm", "tvm", "mlc-ai-nightly") for row in distributions.every(context, name))
    return next((row for row in rows if row.entry == dirname(path)), None)


def _glob(host: Host, pattern: str) -> tuple[str, ...]:
    if "*" not in pattern:
        return (pattern,) if exists(host, pattern) else ()
    try:
        return host.glob(pattern)
    except NotRecorded:
        return ()
