"""The whole snapshot: everything the sources record, as one mapping, as an archive, and as a file."""

import errno
import os
import re
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from .files import clean_name
from .machine import Machine
from .owners import open_folder
from .recorder import Recorder
from .redact import redact_argv, redact_value
from .sources.build import BUILD, record_build
from .sources.cann import CANN, record_cann
from .sources.config import CONFIG, record_config
from .sources.containers import CONTAINERS, record_containers
from .sources.cpu import CPU, record_cpu
from .sources.job import JOB, record_job
from .sources.logs import LOGS, record_logs
from .sources.network import NETWORK, record_network
from .sources.npu import NPU, record_npu
from .sources.python import record_python
from .sources.system import SYSTEM, record_system
from .sources.tables import quietly, record_table

SCHEMA = "envtune.snapshot/1"
RECORDS = (
    record_cpu, record_system, record_npu, record_cann, record_network, record_python, record_containers,
    record_build, record_logs, record_config,
)  # fmt: skip
COLLECTOR = "1"  # version of the tables in sources/, kept in the manifest


def take(
    target: Mapping[str, Any],
    machine: Optional[Any] = None,
    environ: Optional[Mapping[str, str]] = None,
    more: Optional[Callable[[Any], None]] = None,
) -> Dict[str, Any]:
    """Return the whole snapshot as one mapping (docs/snapshot.md). `target`: python, pid, script, env_file.

    `more` may read more through the recorder.
    """
    import time

    machine = Machine() if machine is None else machine
    recorder = Recorder(machine, target, environ)
    identity = recorder.identity
    record_job(recorder)
    if more is not None:
        more(recorder)
    for table in (SYSTEM, CPU, NETWORK, NPU, CANN, JOB, BUILD, LOGS, CONFIG, CONTAINERS):
        record_table(recorder, table)
    for record in RECORDS:
        quietly(record, recorder)
    snapshot: Dict[str, Any] = {
        "schema": SCHEMA,
        "host": identity["uname"]["nodename"],
        "taken": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(identity["now"])),
        "collector": COLLECTOR,
        "environ": {clean_name(k): clean_name(redact_value(k, v)) for k, v in recorder.environ.items()},
        "target": {key: value for key, value in target.items() if value is not None},
        "covered": recorder.covered,
        "files": kept_files(recorder.files),
    }
    snapshot.update(identity)
    if recorder.commands:
        snapshot["commands"] = [dict(row) for row in recorder.commands.values()]
    snapshot.update(machine.tables())
    if isinstance(snapshot.get("processes"), list):
        listed = recorder.commands.get(("npu-smi", "info"), {}).get("stdout", "")
        snapshot["processes"] = kept_processes(snapshot["processes"], target.get("pid"), listed)
    return snapshot


def kept_files(files: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the entries that add information: a directory implied by its content needs no entry."""
    parents = {os.path.dirname(path) for path, entry in files.items() if entry is not None}
    only_there = {"dir": None}
    return {path: files[path] for path in sorted(files) if files[path] != only_there or path not in parents}


# Programs whose arguments and start time are kept; of other processes checks need only existence and name.
JOB_PROCESS = re.compile(
    r"(?i)python|msprof|aoe|mpirun|orted|torchrun|deepspeed|accelerate|hccl|npu|ascend|davinci|\bray"
)

WORD_LIMIT = 4096  # characters of a word that are searched for a program's name
TABLE_LIMIT = 4 * 1024 * 1024  # characters of all processes together


def kept_processes(rows: Sequence[Mapping[str, Any]], named: Optional[int], listed: str) -> List[Dict[str, Any]]:
    """Return every process except kernel threads; with arguments, without secrets, for those that may belong to a job.

    `listed` is the output of npu-smi: a number in it may be the pid of a process whose descriptors cannot be read.
    """
    named_pids = set(re.findall(r"[0-9]+", listed)) | {str(named)}
    kept = []
    room = TABLE_LIMIT
    for row in sorted(rows, key=lambda row: int(row["pid"])):
        argv = row.get("argv") or ()
        if 2 in (row["pid"], row.get("ppid")) and not argv:
            continue
        entry = {key: row[key] for key in ("pid", "ppid", "name", "user") if key in row}
        words = [str(row.get("name", ""))] + [word[:WORD_LIMIT] for word in argv[:2]]
        if row.get("devices") or str(row["pid"]) in named_pids or any(JOB_PROCESS.search(word) for word in words):
            room -= sum(map(len, argv))
            entry.update(row)
            entry["argv"] = redact_argv(argv) if room > 0 else []
        elif row.get("opaque"):
            entry["opaque"] = True
        kept.append(entry)
    return kept


MEMBERS = ("files", "commands", "processes", "listeners", "interfaces", "disks")


def pack(snapshot: Mapping[str, Any]) -> bytes:
    """Return the snapshot as a tar.gz: manifest.json and one JSON file per table. Equal input gives equal bytes."""
    import gzip
    import io
    import json
    import tarfile

    members = [("manifest", {key: value for key, value in snapshot.items() if key not in MEMBERS})]
    members += [(name, snapshot[name]) for name in MEMBERS if name in snapshot]
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, table in members:
            text = json.dumps(table, separators=(",", ":"), sort_keys=True, ensure_ascii=True).encode("ascii")
            member = tarfile.TarInfo(name + ".json")
            member.size, member.mode, member.mtime = len(text), 0o600, int(snapshot["now"])
            archive.addfile(member, io.BytesIO(text))
    packed = io.BytesIO()
    with gzip.GzipFile("", "wb", 9, packed, int(snapshot["now"])) as stream:
        stream.write(plain.getvalue())
    return packed.getvalue()


def write_new(path: str, data: bytes, replace: bool = False) -> None:
    """Write `data` to `path` atomically, readable by its owner only; raises OSError, FileExistsError if it exists."""
    folder, name = open_folder(os.path.dirname(path)), os.path.basename(path)
    try:
        _write_below(folder, name, data, replace)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None
    finally:
        os.close(folder)


def _write_below(folder: int, name: str, data: bytes, replace: bool) -> None:
    temporary = "%s.%d.tmp" % (name, os.getpid())
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        else:
            _place_new(temporary, name, folder)
    finally:
        try:
            os.unlink(temporary, dir_fd=folder)
        except FileNotFoundError:
            pass


def _place_new(temporary: str, name: str, folder: int) -> None:
    """Give the file its name, unless something has that name already."""
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        if _is_there(name, folder):  # a file system without hard links
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name) from None
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def _is_there(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
