"""Whether this system's C and C++ runtimes are new enough for the job's torch and torch_npu, from their ELF files.

Nothing is loaded. Sources: LSB, "Symbol Versioning"; ld.so(8) for the order in which libraries are searched
(LD_LIBRARY_PATH, then the system's directories); conda puts its libstdc++ into PREFIX/lib, which is in its Python's
search path.
"""

from __future__ import annotations

from typing import Annotated, Iterable, Iterator, Literal, Mapping, Optional, Sequence

from envtune.collector.sources.python import LIBC, LIBSTDCXX, RUNTIME_DIRECTORIES, RUNTIME_LIBRARIES
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, NotRecorded, Undetermined, host_error_text
from envtune.messages import N_, Message
from envtune.model import Evidence, Reading
from envtune.resources.python.distributions import environment, interpreter
from envtune.resources.torch.stack import release_numbers

Runtime = Literal["GLIBC", "GLIBCXX"]
FILES: Mapping[str, str] = {"GLIBC": LIBC, "GLIBCXX": LIBSTDCXX}


@probe("torch.runtime_versions")
def runtime_versions(
    context: Context, *, runtime: Annotated[Runtime, N_("Library: `GLIBC` (C) or `GLIBCXX` (C++).")]
) -> Iterable[Reading]:
    """Whether this system's C or C++ library is new enough for each library of torch and torch_npu."""
    needs = dict(_needs(context, runtime))
    if not needs:
        raise NotApplicable(
            Message("no library of torch names a {runtime} version", runtime=runtime), RUNTIME_LIBRARIES[0]
        )
    provided = _provided(context, runtime)
    for path, needed in needs.items():
        enough = {_numbers(version) >= _numbers(needed) for version in provided.values()}
        shown = ", ".join(f"{version} ({source})" for source, version in provided.items())
        evidence = Evidence(path, f"{path} needs {needed}; {shown}")
        subject = path.rpartition("/")[2]
        if len(enough) > 1:
            reason = Message("which of {libraries} the job loads is unknown", libraries=shown)
            yield Reading(subject, None, evidence, reason=reason)
            continue
        words = Message("it needs {needed}; this system has {provided}", needed=needed, provided=shown)
        yield Reading(subject, enough == {True}, evidence, words, Message("{needed} or newer", needed=needed))


def _needs(context: Context, runtime: str) -> Iterator[tuple[str, str]]:
    """Yield each library with the highest version it needs."""
    host = context.host
    for entry in environment(context).entries:
        for name in RUNTIME_LIBRARIES:
            path = f"{entry}/{name}"
            try:
                found = _word(host.runtime_versions(path), "needs", runtime)
            except (Missing, NotRecorded):
                continue
            except HostError as error:
                raise Undetermined(host_error_text(error), path) from None
            if found:
                yield path, found


def _provided(context: Context, runtime: str) -> Mapping[str, str]:
    """Return {file: highest version} of the runtimes that the job may load: one, with conda perhaps a second."""
    found: dict[str, str] = {}
    for folders in _search_order(context):
        for folder in folders:
            version = _of_file(context, f"{folder}/{FILES[runtime]}", runtime)
            if version:
                found[f"{folder}/{FILES[runtime]}"] = version
                break
    if not found:
        reason = Message("{name} was not found", name=FILES[runtime])
        raise Undetermined(reason, ", ".join(RUNTIME_DIRECTORIES))
    return found


def _search_order(context: Context) -> Iterator[Sequence[str]]:
    """Yield lists of directories of which the first with the file counts."""
    variables = context.target.environment.variables or {}
    named = [folder for folder in variables.get("LD_LIBRARY_PATH", "").split(":") if folder.startswith("/")]
    system = [folder.format(arch=context.host.uname["machine"]) for folder in RUNTIME_DIRECTORIES]
    yield [folder.rstrip("/") for folder in named] + system
    python = interpreter(context)
    if python.kind == "conda":
        yield [python.prefix.rstrip("/") + "/lib"]


def _of_file(context: Context, path: str, runtime: str) -> Optional[str]:
    try:
        return _word(context.host.runtime_versions(path), "provides", runtime)
    except Missing:
        return None
    except NotRecorded:
        try:
            context.host.stat(path)
        except HostError:
            return None
        raise
    except HostError:
        return None


def _word(words: str, kind: str, runtime: str) -> Optional[str]:
    return next((word.partition(":")[2] for word in words.split() if word.startswith(f"{kind}:{runtime}_")), None)


def _numbers(version: str) -> tuple[int, ...]:
    return release_numbers(version.rpartition("_")[2])
