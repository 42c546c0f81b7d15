"""The reading end: reads files, runs commands, tables processes and sockets. Judges nothing, writes nothing.

Standard library only, Python 3.6 syntax, imports nothing of envtune: `python3 collector.py > host.tar.gz` (or the same
text on standard input of `python3 -`) writes a snapshot (`envtune.snapshot/1`, docs/snapshot.md) of a host on which
nothing is installed. `LocalHost` uses the same functions for a live audit, so that the two cannot drift apart.
It is one module above the usual size because it travels as one file.
"""

import collections
import errno
import fnmatch
import os
import re
import stat as stat_module
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
FILE_LIMIT = 4 * 1024 * 1024  # bytes of one file; version files, rule sets and /proc texts are far below
HEAD_SIZE = 64  # bytes; an ELF header
OUTPUT_LIMIT = 4 * 1024 * 1024  # bytes of one command's output
# Variables that would change what a system command does; the rest is the caller's own environment.
HARMFUL_VARIABLES = ("LD_PRELOAD", "LD_AUDIT", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "BASH_ENV", "ENV")


# ---------------------------------------------------------------------------------------------------- files


def read_bytes(path: str, limit: int = FILE_LIMIT) -> bytes:
    """The content of a regular file, at most `limit` bytes. Never blocks on a FIFO or device; raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if not stat_module.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        chunks: List[bytes] = []
        left = limit + 1
        while left > 0:
            chunk = os.read(descriptor, min(left, 1 << 16))
            if not chunk:
                return b"".join(chunks)
            chunks.append(chunk)
            left -= len(chunk)
        raise OSError(errno.EFBIG, "larger than %d bytes" % limit, path)
    finally:
        os.close(descriptor)


def read_head(path: str) -> bytes:
    """The first HEAD_SIZE bytes of a regular file, however large it is. Never blocks on a FIFO; raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if not stat_module.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        return os.read(descriptor, HEAD_SIZE)
    finally:
        os.close(descriptor)


def kind_of(mode: int) -> str:
    """The word for the file type bits of `mode`."""
    for test, word in (
        (stat_module.S_ISREG, "file"),
        (stat_module.S_ISDIR, "dir"),
        (stat_module.S_ISLNK, "link"),
        (stat_module.S_ISCHR, "char"),
        (stat_module.S_ISBLK, "block"),
        (stat_module.S_ISFIFO, "fifo"),
    ):
        if test(mode):
            return word
    return "socket"


def record_digest(record: str) -> str:
    """One digest over the content that a RECORD lists: the sorted (path, hash) pairs without metadata and bytecode.

    Two wheels of the same version with other content differ here; the same content installed by another pip does not.
    """
    import csv
    import hashlib

    pairs = []
    for row in csv.reader(record.splitlines()):
        if len(row) < 2 or not row[1] or ".dist-info/" in row[0] or row[0].endswith(".pyc") or row[0].startswith(".."):
            continue
        pairs.append("%s,%s" % (row[0], row[1]))
    if not pairs:
        raise OSError(errno.EINVAL, "the RECORD lists no hashed file")
    return "sha256:" + hashlib.sha256("\n".join(sorted(pairs)).encode("utf-8")).hexdigest()


def wheel_record(data: Any) -> str:
    """The RECORD text inside a wheel (a path or a file object); raises OSError when it is not a wheel."""
    import zipfile

    try:
        with zipfile.ZipFile(data) as archive:
            names = [n for n in archive.namelist() if n.endswith(".dist-info/RECORD") and n.count("/") == 1]
            if len(names) != 1:
                raise OSError(errno.EINVAL, "no single RECORD in the wheel")
            if archive.getinfo(names[0]).file_size > FILE_LIMIT:
                raise OSError(errno.EFBIG, "RECORD larger than %d bytes" % FILE_LIMIT)
            return archive.read(names[0]).decode("utf-8")
    except (zipfile.BadZipFile, UnicodeDecodeError, ValueError, EOFError, NotImplementedError, RuntimeError) as error:
        raise OSError(errno.EINVAL, "not a readable wheel: %s" % error)


def wheel_top_level(data: bytes) -> List[str]:
    """The packages and modules at the top of a wheel; raises OSError when it is not one."""
    import io
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = [name.split("/")[0] for name in archive.namelist()]
    except (zipfile.BadZipFile, ValueError, EOFError) as error:
        raise OSError(errno.EINVAL, "not a readable wheel: %s" % error)
    return sorted({name for name in names if not name.endswith((".dist-info", ".data"))})


# ---------------------------------------------------------------------------------------------------- mounts

# File systems whose answer comes from another machine or process, which may be gone; then a read hangs for ever.
REMOTE = re.compile(
    r"(nfs[0-9]*|cifs|smb[0-9]*|smbfs|fuse|fuseblk|fuse\..*|ceph|lustre|gpfs|9p|glusterfs|beegfs|afs|panfs|wekafs|pvfs2"
    r"|ocfs2|gfs2|virtiofs|dpc|ncpfs)$"
)
TOUCH_SECONDS = 2.0


class Mounts:
    """Keeps reads away from mounts that do not answer: each is first touched by a child with a deadline, once.

    A child that hangs is left behind (it cannot be killed in state D) and everything below its mount is ETIMEDOUT.
    """

    def __init__(self) -> None:
        self._remote: Optional[Dict[str, str]] = None
        self._hung: Dict[str, bool] = {}
        self._links: Dict[str, str] = {}

    def remote(self) -> Dict[str, str]:
        """{mount point: file system type} of those that may hang."""
        if self._remote is None:
            try:
                self._remote = remote_mounts(read_bytes("/proc/self/mountinfo", 1 << 26).decode("utf-8", "replace"))
            except OSError:
                self._remote = {}
        return self._remote

    def enter(self, path: str) -> None:
        """Before `path`, which holds no link, is touched: ETIMEDOUT when it is a mount that does not answer."""
        kind = self.remote().get(path)
        if kind is None:
            return
        if path not in self._hung:
            # `stat -f` asks the server, not the attribute cache; its loader must not search a mount that hangs
            row = run_command(("stat", "-f", "--", path), TOUCH_SECONDS, without=("LD_LIBRARY_PATH",))
            self._hung[path] = row.get("error") == "timeout"
        if self._hung[path]:
            raise OSError(errno.ETIMEDOUT, "the %s file system at %s does not answer" % (kind, path), path)

    def guard(self, path: str) -> None:
        """Before `path` is read: `enter` for every directory on the way to it, links included."""
        if not self.remote():
            return
        done, hops = "/", 40
        self.enter(done)
        parts = [p for p in path.split("/") if p not in ("", ".")]
        while parts and hops:
            part = parts.pop(0)
            if part == "..":
                done = os.path.dirname(done)
                continue
            step = os.path.join(done, part)
            self.enter(step)
            target = self._link(step)
            if not target:
                done = step
                continue
            hops -= 1
            done = "/" if target.startswith("/") else done
            parts = [p for p in target.split("/") if p not in ("", ".")] + parts

    def _link(self, path: str) -> str:
        if path not in self._links:
            try:
                self._links[path] = os.readlink(path)
            except OSError:
                self._links[path] = ""
        return self._links[path]


def remote_mounts(mountinfo: str) -> Dict[str, str]:
    """{mount point: type} of the mounts in a mountinfo text that may hang; the last one on a point counts."""
    found: Dict[str, str] = {}
    for line in mountinfo.splitlines():
        head, _, tail = line.partition(" - ")
        fields, kinds = head.split(), tail.split()
        if len(fields) < 5 or not kinds:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m.group(1), 8)), fields[4])
        found.pop(point, None)
        if REMOTE.match(kinds[0]):
            found[point] = kinds[0]
    return found


# ---------------------------------------------------------------------------------------------------- commands


def command_environment() -> Dict[str, str]:
    """The environment of every command: the C locale, system directories first, nothing that hijacks a loader."""
    env = {k: v for k, v in os.environ.items() if k not in HARMFUL_VARIABLES}
    env["LC_ALL"] = "C"
    env["PATH"] = SYSTEM_PATH
    return env


def run_command(
    argv: Sequence[str], timeout: float = 5.0, limit: int = OUTPUT_LIMIT, without: Sequence[str] = ()
) -> Dict[str, Any]:
    """Run `argv` in a process group of its own: {argv, rc, stdout, stderr} or {argv, error: missing|denied|timeout}.

    At the deadline the whole group is killed; a child that does not die of SIGKILL (state D) is left behind, not waited
    for. `without` names variables that are kept from it.
    """
    import subprocess

    argv = list(argv)
    try:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={k: v for k, v in command_environment().items() if k not in without},
            start_new_session=True,
            cwd="/",
        )
    except PermissionError:
        return {"argv": argv, "error": "denied"}
    except OSError:
        return {"argv": argv, "error": "missing"}
    out, complete = _drain(child, timeout, limit)
    if not complete:
        _kill_group(child)
        return {"argv": argv, "error": "timeout", "seconds": timeout}
    return {"argv": argv, "rc": child.returncode, "stdout": out[0], "stderr": out[1]}


def _drain(child: Any, timeout: float, limit: int) -> Tuple[Tuple[str, str], bool]:
    """Read both pipes until the child has ended, at most `timeout` seconds; text of both, and whether it ended."""
    import selectors
    import time

    end = time.monotonic() + timeout
    texts: Dict[Any, bytearray] = {child.stdout: bytearray(), child.stderr: bytearray()}
    with selectors.DefaultSelector() as selector:
        for pipe in texts:
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            left = end - time.monotonic()
            if left <= 0:
                break
            # Wake up now and then: a grandchild may keep the pipe open after the command itself has ended.
            ready = selector.select(min(left, 0.1))
            for key, _ in ready:
                chunk = os.read(key.fd, 1 << 16)
                if not chunk:
                    selector.unregister(key.fileobj)
                elif len(texts[key.fileobj]) < limit:
                    texts[key.fileobj] += chunk[: limit - len(texts[key.fileobj])]
            if not ready and child.poll() is not None:
                break
    while child.poll() is None and time.monotonic() < end:
        time.sleep(0.002)
    for pipe in texts:
        pipe.close()
    out = tuple(bytes(t).decode("utf-8", "replace") for t in texts.values())
    return (out[0], out[1]), child.returncode is not None


def _kill_group(child: Any) -> None:
    import signal
    import time

    try:
        os.killpg(child.pid, signal.SIGKILL)
    except OSError:
        pass
    end = time.monotonic() + 0.2
    while child.poll() is None and time.monotonic() < end:
        time.sleep(0.005)
    if child.returncode is None:
        child.returncode = -9  # state D: forget it, so that Popen's destructor does not complain


# ---------------------------------------------------------------------------------------------------- processes


def process_table(with_devices: bool = False) -> List[Dict[str, Any]]:
    """Every process of /proc that this user may list. `with_devices` also looks for open /dev/davinci* nodes."""
    boot = _boot_time()
    ticks = os.sysconf("SC_CLK_TCK")
    users: Dict[int, str] = {}
    table = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            row = _process(int(name), boot, ticks, users, with_devices)
            if row is not None:
                table.append(row)
    return table


def _boot_time() -> float:
    for line in read_bytes("/proc/stat").decode("ascii", "replace").splitlines():
        if line.startswith("btime "):
            return float(line.split()[1])
    raise OSError(errno.EINVAL, "no btime in /proc/stat")


def _process(pid: int, boot: float, ticks: int, users: Dict[int, str], with_devices: bool) -> Optional[Dict[str, Any]]:
    folder = "/proc/%d" % pid
    try:
        status = read_bytes(folder + "/stat").decode("utf-8", "replace")
        uid = os.stat(folder).st_uid
        argv = read_bytes(folder + "/cmdline").split(b"\0")
    except OSError:
        return None  # it ended while we looked
    head, _, tail = status.rpartition(")")
    fields = tail.split()
    row = {
        "pid": pid,
        "ppid": int(fields[1]),
        "name": head.partition("(")[2],
        "state": fields[0],
        "started": boot + int(fields[19]) / ticks,
        "user": _user(uid, users),
        "argv": [a.decode("utf-8", "replace") for a in argv if a],
    }
    if with_devices:
        try:
            row["devices"] = open_devices(pid)
        except OSError:
            row["opaque"] = True
    return row


def _user(uid: int, known: Dict[int, str]) -> str:
    if uid not in known:
        import pwd

        try:
            known[uid] = pwd.getpwuid(uid).pw_name
        except KeyError:
            known[uid] = str(uid)
    return known[uid]


def open_devices(pid: int) -> List[str]:
    """The /dev/davinci* nodes that process `pid` holds open; raises OSError where its descriptors may not be read."""
    found = set()
    folder = "/proc/%d/fd" % pid
    for number in os.listdir(folder):
        try:
            target = os.readlink(folder + "/" + number)
        except OSError:
            continue
        if target.startswith("/dev/davinci"):
            found.add(target)
    return sorted(found)


# ---------------------------------------------------------------------------------------------------- network


def listening_sockets() -> List[Dict[str, Any]]:
    """Listening TCP sockets of this network namespace: {address, port, inode}."""
    found = []
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = read_bytes(path, 64 * 1024 * 1024).decode("ascii", "replace").splitlines()[1:]
        except OSError:
            if path.endswith("6"):
                continue  # IPv6 is off
            raise
        for line in lines:
            fields = line.split()
            if fields[3] == "0A":
                address, _, port = fields[1].partition(":")
                found.append({"address": _address(address), "port": int(port, 16), "inode": int(fields[9])})
    return found


def _address(text: str) -> str:
    """The kernel's hexadecimal address (native-endian 32-bit words) as text."""
    import socket
    import struct

    words = [int(text[i : i + 8], 16) for i in range(0, len(text), 8)]
    packed = struct.pack("=%dI" % len(words), *words)
    return socket.inet_ntop(socket.AF_INET if len(words) == 1 else socket.AF_INET6, packed)


def socket_owners(inodes: Sequence[int]) -> Dict[int, Tuple[int, str]]:
    """{inode: (pid, process name)} for those of `inodes` whose owner this user may read."""
    wanted = {"socket:[%d]" % i: i for i in inodes}
    found: Dict[int, Tuple[int, str]] = {}
    for name in os.listdir("/proc") if wanted else ():
        if not name.isdigit():
            continue
        try:
            for number in os.listdir("/proc/%s/fd" % name):
                inode = wanted.get(os.readlink("/proc/%s/fd/%s" % (name, number)))
                if inode is not None and inode not in found:
                    comm = read_bytes("/proc/%s/comm" % name).decode("utf-8", "replace").strip()
                    found[inode] = (int(name), comm)
        except OSError:
            continue
    return found


def network_interfaces() -> List[Dict[str, Any]]:
    """[{name, addresses, up}] from the kernel by rtnetlink, which needs no right and no command."""
    import socket
    import struct

    names = dict(socket.if_nameindex())
    found: Dict[str, Dict[str, Any]] = {n: {"name": n, "addresses": [], "up": _is_up(n)} for n in names.values()}
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as link:
        link.settimeout(2.0)
        link.send(struct.pack("=LHHLL", 24, 22, 0x301, 1, 0) + struct.pack("=BBBBi", 0, 0, 0, 0, 0) + b"\0" * 0)
        while True:
            data = link.recv(1 << 16)
            while data:
                length, kind = struct.unpack_from("=LH", data)
                if kind == 3 or length < 16:  # NLMSG_DONE
                    return [found[n] for n in sorted(found)]
                if kind == 20:  # RTM_NEWADDR
                    family, _, _, _, index = struct.unpack_from("=BBBBi", data, 16)
                    address = _netlink_address(data[24:length], family)
                    if address and index in names:
                        found[names[index]]["addresses"].append(address)
                data = data[(length + 3) & ~3 :]


def _netlink_address(data: bytes, family: int) -> str:
    """IFA_LOCAL where there is one (point to point), else IFA_ADDRESS."""
    import socket
    import struct

    best = ""
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if length < 4:
            break
        if kind == 2 or (kind == 1 and not best):
            best = socket.inet_ntop(family, data[4:length])
        data = data[(length + 3) & ~3 :]
    return best


def _is_up(name: str) -> bool:
    try:
        return bool(int(read_bytes("/sys/class/net/%s/flags" % name), 16) & 1)
    except (OSError, ValueError):
        return True  # no /sys here; what has an address is used


def disk_space(path: str) -> Dict[str, Any]:
    """{path, total, free} in bytes of the file system that holds `path`; free is what an ordinary user may use."""
    values = os.statvfs(path)
    return {"path": path, "total": values.f_frsize * values.f_blocks, "free": values.f_frsize * values.f_bavail}


# ---------------------------------------------------------------------------------------------------- python target
# Which Python the job uses, told by reading. `host` is anything that has read(path), read_bytes(path),
# stat(path, follow) with .kind and .size, readlink(path) and listdir(path), and raises OSErrors: the live machine, a
# recorded one, or the recorder, so that a recording holds exactly what the audit reads.
# Sources: CPython's site.py and Modules/getpath (3.6 to 3.13), Debian's and Fedora's patched site.py, pyenv-exec(1).

SCRIPT_LIMIT = 65536  # bytes; a wrapper script is far smaller, and most interpreters are larger
PYTHON_NAME = r"(?:python|pypy)[0-9.]*[a-z]*$"
SHELLS = ("sh", "bash", "dash", "ash", "ksh", "zsh")
# Where a second Python usually lives on these hosts: source builds as the porting guide makes them, conda.
USUAL_PYTHONS = ("/opt/conda", "/opt/miniconda3", "/usr/local/miniconda3", "/usr/local/anaconda3", "/root/miniconda3")


class Unresolved(Exception):
    """Reading does not tell which interpreter it is: a code, the path it ended at, and a detail."""

    def __init__(self, code: str, path: str, detail: str = "") -> None:
        Exception.__init__(self, "%s: %s %s" % (code, path, detail))
        self.code = code
        self.path = path
        self.detail = detail


def find_interpreter(
    host: Any, variables: Mapping[str, str], cwd: str, named: str = "", pid: Optional[int] = None
) -> Dict[str, Any]:
    """The job's Python: {path, real, version, kind, prefix, sites, chosen}; raises Unresolved or OSError.

    `chosen` is the word for why: named, pid, VIRTUAL_ENV, CONDA_PREFIX or PATH.
    """
    if named:
        path, chosen = named_interpreter(host, variables, cwd, named), "named"
    elif pid is not None:
        path, chosen = process_interpreter(host, variables, pid), "pid"
    else:
        path, chosen = _default_interpreter(host, variables, cwd)
    found = describe_interpreter(host, variables, cwd, path)
    found["chosen"] = chosen
    return found


def describe_interpreter(host: Any, variables: Mapping[str, str], cwd: str, path: str) -> Dict[str, Any]:
    """{path, real, version, kind, prefix, sites} of the interpreter behind `path`."""
    start, real = interpreter_behind(host, variables, cwd, path)
    settings, prefix = venv_settings(host, start)
    if settings is None:
        home = variables.get("PYTHONHOME", "").split(":")[0]
        folders = ([home + "/bin"] if home else []) + [os.path.dirname(real)]
        prefix, version = _installation(host, folders, os.path.basename(real))
        sites = _user_site(variables, version) + _installation_sites(host, prefix, version)
        kind = "conda" if _kind(host, prefix + "/conda-meta") == "dir" else "system"
    else:
        kind = "venv"
        version = _venv_version(host, settings, prefix, real)
        sites = _libraries(host, prefix, version)
        if settings.get("include-system-site-packages", "").lower() == "true":
            folders = [settings.get("home", ""), os.path.dirname(real)]  # home may be a virtual environment itself
            base, _ = _installation(host, folders, "python" + version)
            sites += _user_site(variables, version) + _installation_sites(host, base, version)
    return {
        "path": path,
        "real": real,
        "version": version,
        "kind": kind,
        "prefix": prefix,
        "sites": _present(host, sites),
    }


def named_interpreter(host: Any, variables: Mapping[str, str], cwd: str, named: str) -> str:
    """The path that `--python` means: a file, a virtual environment's directory, or a name on PATH."""
    if named.startswith("~/"):
        named = variables.get("HOME", "~") + named[1:]
    if "/" not in named and _kind(host, os.path.join(cwd, named)) != "dir":
        path = on_path(host, variables, cwd, named)
        if path is None:
            raise Unresolved("not-on-path", named)
        return path
    path = os.path.normpath(os.path.join(cwd, named))
    kind = _kind(host, path)
    if kind is None:
        raise Unresolved("missing", path)
    if kind == "dir":
        inside = _environment_python(host, path)
        if inside is None:
            raise Unresolved("no-python-in", path)
        return inside
    return path


def process_interpreter(host: Any, variables: Mapping[str, str], pid: int) -> str:
    """The path a running process was started by; its `exe` alone would lose the virtual environment."""
    folder = "/proc/%d" % pid
    try:
        first = host.read_bytes(folder + "/cmdline").split(b"\0")[0].decode("utf-8", "replace")
    except FileNotFoundError:
        raise Unresolved("no-process", folder)
    if _link(host, folder + "/ns/mnt") not in (None, _link(host, "/proc/self/ns/mnt")):
        raise Unresolved("other-namespace", folder + "/ns/mnt")
    exe = str(host.readlink(folder + "/exe"))
    if exe.endswith(" (deleted)"):
        exe = exe[: -len(" (deleted)")]
    if not re.match(PYTHON_NAME, os.path.basename(exe)):
        raise Unresolved("not-python", folder + "/exe", exe)
    for candidate in _started_by(host, variables, folder, first):
        try:
            if _kind(host, candidate) == "file" and real_path(host, candidate) == exe:
                return candidate
        except OSError:
            continue
    return exe


def _started_by(host: Any, variables: Mapping[str, str], folder: str, first: str) -> Iterator[str]:
    """The paths that argv[0] may stand for."""
    cwd = _link(host, folder + "/cwd") or "/"
    if "/" in first:
        yield os.path.normpath(os.path.join(cwd, first))
    elif first:
        path = on_path(host, variables, cwd, first)
        if path is not None:
            yield path
        for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
            if variables.get(name):
                yield os.path.join(variables[name], "bin", first)


def _default_interpreter(host: Any, variables: Mapping[str, str], cwd: str) -> Tuple[str, str]:
    ours = []
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        folder = variables.get(name, "").rstrip("/")
        path = _environment_python(host, folder) if folder.startswith("/") else None
        if path is None:
            continue
        if not _only_envtune(host, folder):
            return path, name
        ours.append(folder + "/bin")
    for program in ("python3", "python"):
        path = on_path(host, variables, cwd, program, ours)
        if path is not None:
            return path, "PATH"
    raise Unresolved("not-on-path", "python3")


def _only_envtune(host: Any, folder: str) -> bool:
    """Whether a virtual environment was made for envtune: it holds envtune and no torch."""
    names: List[str] = []
    for lib in _names(host, folder + "/lib"):
        if lib.startswith("python"):
            names += _names(host, "%s/lib/%s/site-packages" % (folder, lib))
    ours = any(re.match(r"(__editable__\.)?envtune\b", n) for n in names)
    return ours and not any(n == "torch" or n.startswith("torch-") for n in names)


def _environment_python(host: Any, folder: str) -> Optional[str]:
    for name in ("bin/python3", "bin/python", "bin/python2"):
        if _kind(host, folder + "/" + name) == "file":
            return folder + "/" + name
    return None


def search_path(variables: Mapping[str, str], cwd: str) -> List[str]:
    """The directories of PATH, absolute, each once."""
    found: List[str] = []
    for folder in variables.get("PATH", "/usr/local/bin:/usr/bin:/bin").split(":"):
        folder = os.path.normpath(os.path.join(cwd, folder))
        if folder not in found:
            found.append(folder)
    return found


def on_path(host: Any, variables: Mapping[str, str], cwd: str, name: str, without: Sequence[str] = ()) -> Optional[str]:
    """The first file called `name` on PATH, as a shell finds it; None when there is none."""
    for folder in search_path(variables, cwd):
        if folder not in without and _kind(host, folder + "/" + name) == "file":
            return folder + "/" + name
    return None


def interpreter_behind(host: Any, variables: Mapping[str, str], cwd: str, path: str) -> Tuple[str, str]:
    """(the path the interpreter is started by, the interpreter), through links, pyenv shims and wrapper scripts."""
    for _ in range(10):
        try:
            real = real_path(host, path)
            text = _script(host, real)
        except FileNotFoundError:
            raise Unresolved("missing", path)
        if text is None:
            return path, real
        if re.search(r"\bpyenv[\"']?\s+exec\b", text):
            path = _pyenv_target(host, variables, cwd, path, text)
        else:
            path = _wrapper_target(host, variables, cwd, path, text)
    raise Unresolved("circle", path)


def _script(host: Any, path: str) -> Optional[str]:
    """The text of a script, None for a binary; Unresolved for anything else."""
    found = host.stat(path)
    if found.kind != "file":
        raise Unresolved("not-a-file", path)
    if found.size > SCRIPT_LIMIT:
        return None
    plain = re.match(PYTHON_NAME, os.path.basename(path))
    try:
        data = host.read_bytes(path)
    except PermissionError:
        raise
    except OSError:
        if plain:  # a recording keeps the text of scripts, and of programs only that they are there
            return None
        raise
    if data.startswith(b"\x7fELF") or (plain and not data):
        return None
    if not data.startswith(b"#!"):
        raise Unresolved("not-an-interpreter", path)
    return str(data.decode("utf-8", "replace"))


def _pyenv_target(host: Any, variables: Mapping[str, str], cwd: str, path: str, text: str) -> str:
    """The program a pyenv shim starts: by $PYENV_VERSION, .python-version of the directories upwards, or `version`."""
    export = re.search(r"^export PYENV_ROOT=[\"']?([^\"'\n]+)", text, re.M)
    root = export.group(1) if export else variables.get("PYENV_ROOT") or variables.get("HOME", "/root") + "/.pyenv"
    program = os.path.basename(path)
    versions, source = _pyenv_versions(host, variables, cwd, root)
    for version in versions:
        if version == "system":
            shims = [os.path.dirname(path), root + "/shims"]
            found = on_path(host, variables, cwd, program, shims)
            if found is not None:
                return found
            continue
        for name in (version, version.replace("python-", "", 1)):
            if _kind(host, "%s/versions/%s/bin/%s" % (root, name, program)) == "file":
                return "%s/versions/%s/bin/%s" % (root, name, program)
        newest = _newest(_names(host, root + "/versions"), version)
        if newest and _kind(host, "%s/versions/%s/bin/%s" % (root, newest, program)) == "file":
            return "%s/versions/%s/bin/%s" % (root, newest, program)
    raise Unresolved("pyenv", path, "%s (%s)" % (":".join(versions), source))


def _pyenv_versions(host: Any, variables: Mapping[str, str], cwd: str, root: str) -> Tuple[List[str], str]:
    if variables.get("PYENV_VERSION"):
        return variables["PYENV_VERSION"].split(":"), "PYENV_VERSION"
    folder = variables.get("PYENV_DIR") or cwd
    files = []
    while True:
        files.append(os.path.join(folder, ".python-version"))
        if folder in ("/", ""):
            break
        folder = os.path.dirname(folder)
    for path in files + [root + "/version"]:
        try:
            text = host.read(path)
        except FileNotFoundError:
            continue
        words = [line.split()[0] for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
        if words:
            return words, path
    return ["system"], root + "/version"


def _newest(names: Sequence[str], stem: str) -> Optional[str]:
    """The newest release `stem` stands for: 3.7 is the highest 3.7.N that is installed."""
    fitting = [n for n in names if n.startswith(stem + ".") and re.match(r"[0-9.]+$", n)]
    return max(fitting, key=lambda n: [int(part or 0) for part in n.split(".")]) if fitting else None


def _wrapper_target(host: Any, variables: Mapping[str, str], cwd: str, path: str, text: str) -> str:
    """The program a wrapper script starts, where its text names exactly one."""
    lines = text.splitlines()
    if not any(os.path.basename(word) in SHELLS for word in lines[0][2:].split()):
        raise Unresolved("wrapper", path, lines[0])
    known = dict(variables)
    known["0"] = path
    own: Dict[str, str] = {}
    found: List[str] = []
    for line in [part.strip() for part in lines[1:]]:
        if not line or line.startswith("#"):
            continue
        assignment = re.match(r"(?:export\s+|readonly\s+)?([A-Za-z_]\w*)=(\S.*|)$", line)
        if assignment:
            name, value = assignment.group(1), _expanded(assignment.group(2), known).strip("\"'")
            if own.setdefault(name, value) == value:
                known[name] = value
            else:
                known.pop(name, None)  # set twice: which value holds depends on what the script meets
            continue
        for name in re.findall(r"\b([A-Za-z_]\w*)=", line):
            own[name] = ""
            known.pop(name, None)
        # Every way out counts: `if ...; then exec A "$@"; fi` and a last line `B "$@"` are two programs.
        started = re.split(r"(?:^|[;&|({]|\b(?:then|else|do)\b)\s*exec\s+(?![0-9]*[<>])", line)[1:]
        passed_on = re.search(r"\$(@|\{1\+|\*)", line) and not re.match(r"(set|for|while|case|shift|local)\b", line)
        if not started and passed_on:
            started = [line]
        found += [_program(part, known) for part in started]
    if len(set(found)) != 1 or not found[0]:
        raise Unresolved("wrapper", path, "; ".join(found))
    if "/" in found[0]:
        return os.path.normpath(os.path.join(cwd, found[0]))
    target = on_path(host, known, cwd, found[0], [os.path.dirname(path)])
    if target is None:
        raise Unresolved("not-on-path", path, found[0])
    return target


def _expanded(text: str, known: Mapping[str, str]) -> str:
    """`text` with the shell variables that are known filled in, and the usual spellings of the script's directory."""
    here = os.path.dirname(known["0"])
    text = text.replace("BASH_SOURCE[0]", "0").replace("BASH_SOURCE", "0").replace("${0%/*}", here)
    text = re.sub(
        r"\$\(\s*(?:dirname|readlink -f|realpath)\s+(?:--\s+)?\"?\$\{?0\}?\"?\s*\)",
        lambda m: here if "dirname" in m.group() else known["0"],
        text,
    )
    text = re.sub(r"\$\(\s*cd\s+\"?([^\"$)&;]*?)\"?\s*(?:&&|;)\s*pwd(?:\s+-P)?\s*\)", r"\1", text)
    text = re.sub(r"\$\{?([A-Za-z_]\w*|0)\}?", lambda m: known[m.group(1)] if m.group(1) in known else m.group(), text)
    return text


def _program(line: str, known: Mapping[str, str]) -> str:
    """The interpreter among the words of a command line, else its first word; "" when a variable hides it."""
    import shlex

    try:
        words = shlex.split(_expanded(line.strip(), known), comments=True)
    except ValueError:
        return ""
    for word in words:
        if re.match(PYTHON_NAME, os.path.basename(word)) and "$" not in word and "=" not in word:
            return word
    words = [word for word in words if word not in ("-a", "-c", "-l", "--")]
    return "" if not words or "$" in words[0] or "`" in words[0] else words[0]


def venv_settings(host: Any, path: str) -> Tuple[Optional[Dict[str, str]], str]:
    """The keys of the pyvenv.cfg that belongs to an interpreter path and its directory; (None, "") without one.

    CPython looks beside the path it was started by and one level up, without following links. A virtualenv older than
    20 has no such file; it is known by lib/pythonX.Y/orig-prefix.txt.
    """
    folder = os.path.dirname(path)
    for place in (folder, os.path.dirname(folder)):
        try:
            text = host.read(place + "/pyvenv.cfg")
        except FileNotFoundError:
            continue
        settings = {}
        for line in text.splitlines():
            key, mark, value = line.partition("=")
            if mark:
                settings[key.strip().lower()] = value.strip()
        return settings, place
    prefix = os.path.dirname(folder)
    for lib in _names(host, prefix + "/lib"):
        if lib.startswith("python") and _kind(host, "%s/lib/%s/orig-prefix.txt" % (prefix, lib)) == "file":
            base = host.read("%s/lib/%s/orig-prefix.txt" % (prefix, lib)).strip()
            closed = _kind(host, "%s/lib/%s/no-global-site-packages.txt" % (prefix, lib)) == "file"
            shared = "false" if closed else "true"
            return {"home": base + "/bin", "version": lib[6:], "include-system-site-packages": shared}, prefix
    return None, ""


def _venv_version(host: Any, settings: Mapping[str, str], prefix: str, real: str) -> str:
    for key in ("version", "version_info"):
        found = re.match(r"([0-9]+\.[0-9]+)", settings.get(key, ""))
        if found:
            return found.group(1)
    return _version_by_name(os.path.basename(real)) or _only_version(host, prefix, real)


def _version_by_name(name: str) -> str:
    found = re.search(r"(?:python|pypy)([0-9]+\.[0-9]+)", name)
    return found.group(1) if found else ""


def _only_version(host: Any, prefix: str, real: str) -> str:
    """The X.Y of the one lib/pythonX.Y below `prefix`."""
    found = set()
    for lib in ("lib", "lib64"):
        for name in _names(host, "%s/%s" % (prefix, lib)):
            if re.match(r"python[0-9]+\.[0-9]+$", name):
                found.add(name[6:])
    if len(found) != 1:
        raise Unresolved("version", real, ", ".join(sorted(found)))
    return found.pop()


def _installation(host: Any, folders: Sequence[str], name: str) -> Tuple[str, str]:
    """(prefix, version) of the Python that belongs to the first of `folders`: the nearest directory with its library.

    CPython looks for lib/pythonX.Y/os.py from there upwards. Where no folder has it above, the directory alone counts,
    since a recording need not hold os.py.
    """
    version = _version_by_name(name)
    if not version:
        prefix = os.path.dirname(folders[0])
        return prefix, _only_version(host, prefix, folders[-1] + "/" + name)
    for landmark in ("/os.py", ""):
        for place in [parent for folder in folders for parent in _parents(folder)]:
            for lib in ("lib", "lib64"):
                if _holds(host, "%s/%s/python%s%s" % (place.rstrip("/"), lib, version, landmark)):
                    return place, version
    raise Unresolved("no-library", folders[-1] + "/" + name, "lib/python" + version)


def _parents(folder: str) -> Iterator[str]:
    """The directory and those above it."""
    while folder.startswith("/"):
        yield folder
        if folder == "/":
            return
        folder = os.path.dirname(folder)


def _holds(host: Any, path: str) -> bool:
    """Whether something is there; what a recording does not say is taken as absent, the next landmark decides."""
    try:
        host.stat(path)
    except PermissionError:
        raise
    except OSError:
        return False
    return True


def _libraries(host: Any, prefix: str, version: str) -> List[str]:
    return ["%s/%s/python%s/site-packages" % (prefix.rstrip("/"), lib, version) for lib in ("lib64", "lib")]


def _user_site(variables: Mapping[str, str], version: str) -> List[str]:
    base = variables.get("PYTHONUSERBASE") or (variables["HOME"] + "/.local" if variables.get("HOME") else "")
    if not base or variables.get("PYTHONNOUSERSITE"):
        return []
    return ["%s/lib/python%s/site-packages" % (base, version)]


def _installation_sites(host: Any, prefix: str, version: str) -> List[str]:
    """The site directories of an installation, in import order, with what Debian and Fedora changed for /usr."""
    if prefix != "/usr":
        return _libraries(host, prefix, version)
    debian = [
        "/usr/local/lib/python%s/dist-packages" % version,
        "/usr/lib/python%s/dist-packages" % (version if version.startswith("2") else "3"),
    ]
    if not version.startswith("2"):
        debian.append("/usr/lib/python%s/dist-packages" % version)
    if any(_kind(host, path) == "dir" for path in debian):
        return debian
    sites = _libraries(host, "/usr", version)
    if _kind(host, "/usr/local/bin/python" + version) is None:  # otherwise /usr/local is another Python's
        sites = _libraries(host, "/usr/local", version) + sites
    return sites


def _present(host: Any, paths: Sequence[str]) -> List[str]:
    """Those that are there (or may not be looked at), each directory once though lib64 be a link to lib."""
    found: Dict[str, str] = {}
    for path in paths:
        try:
            host.stat(path)
            real = real_path(host, path)
            if real not in found or "/lib64/" in found[real]:
                found[real] = path
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            found.setdefault(path, path)
    return list(found.values())


def real_path(host: Any, path: str) -> str:
    """`path` with every link followed; FileNotFoundError for a dangling one, Unresolved for a circle."""
    done, limit = "/", 40
    parts = [p for p in path.split("/") if p not in ("", ".")]
    while parts:
        part = parts.pop(0)
        if part == "..":
            done = os.path.dirname(done)
            continue
        step = os.path.join(done, part)
        if host.stat(step, follow=False).kind != "link":
            done = step
            continue
        limit -= 1
        if limit < 0:
            raise Unresolved("circle", path)
        target = host.readlink(step)
        if target.startswith("/"):
            done = "/"
        parts = [p for p in target.split("/") if p not in ("", ".")] + parts
    return done


def _kind(host: Any, path: str) -> Optional[str]:
    """file, dir, ... of what is at `path`, None when nothing is; a circle of links is nothing that can be started."""
    try:
        return str(host.stat(path).kind)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _link(host: Any, path: str) -> Optional[str]:
    try:
        return str(host.readlink(path))
    except OSError:
        return None


def _names(host: Any, folder: str) -> List[str]:
    """The names in a directory, none when it is not there."""
    try:
        return list(host.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []


def import_path(
    host: Any, variables: Mapping[str, str], cwd: str, sites: Sequence[str]
) -> Tuple[List[str], List[Tuple[str, str]]]:
    """(the directories and archives that are searched for modules, in order; the .pth files that could not be read).

    PYTHONPATH, then each site directory followed by what its .pth files add. `import` lines are code and not run.
    """
    found: Dict[str, None] = {}
    damaged: List[Tuple[str, str]] = []
    for part in variables.get("PYTHONPATH", "").split(":"):
        if part:
            found[os.path.normpath(os.path.join(cwd, part))] = None
    for site in sites:
        found[site] = None
        try:
            names = host.listdir(site)
        except OSError:
            continue  # whoever lists it again meets the same error and reports it
        for name in sorted(names):
            if not name.endswith(".pth") or name.startswith("."):
                continue
            try:
                text = host.read_bytes(site + "/" + name).decode("utf-8", "replace")
            except OSError as error:
                damaged.append((site + "/" + name, str(error)))
                continue
            for line in text.splitlines():
                if line.strip() and not line.startswith("#") and not re.match(r"import[ \t]", line):
                    folder = os.path.normpath(os.path.join(site, line.rstrip()))
                    if "\0" not in folder and _kind(host, folder) is not None:
                        found[folder] = None
    return list(found), damaged


def distribution_of(name: str) -> Optional[Tuple[str, str]]:
    """(normalised name, version) that a metadata file or directory is called after; None when it is no such thing.

    The version is "" where only the content tells it (`foo.egg-info`, `foo.egg-link`). Names as in PEP 503.
    """
    if not name.endswith((".dist-info", ".egg-info", ".egg", ".egg-link")):
        return None
    stem, _, suffix = name.rpartition(".")
    if suffix == "dist-info":
        title, _, version = stem.rpartition("-")
    else:
        title, _, rest = stem.partition("-")
        version = re.split(r"-py[0-9]", rest)[0]
    return normal_name(title or stem), version if title else ""


def normal_name(name: str) -> str:
    """A distribution's name as PEP 503 compares it: lower case, runs of `-`, `_` and `.` as one `-`."""
    plain = name.lower().replace("_", "-").replace(".", "-")
    return re.sub("--+", "-", plain) if "--" in plain else plain


def script_interpreter(host: Any, variables: Mapping[str, str], cwd: str, path: str) -> Optional[str]:
    """The Python that a script such as pip is started by, None when the script is not a Python one."""
    for _ in range(10):
        text = _script(host, real_path(host, path))
        if text is None:
            return None
        first = text.split("\n", 1)[0][2:].split()
        if first and os.path.basename(first[0]) == "env":
            first = [word for word in first[1:] if not word.startswith("-")]
            if first and re.match(PYTHON_NAME, first[0]):
                return on_path(host, variables, cwd, first[0])
        if first and re.match(PYTHON_NAME, os.path.basename(first[0])):
            return first[0]
        long_form = re.search(r"^'''exec' \"?(/[^\"\n]+?)\"? \"\$0\" \"\$@\"", text, re.M)
        if long_form:  # what pip writes when the path is too long for a #! line
            return long_form.group(1)
        if re.search(r"\bpyenv[\"']?\s+exec\b", text):
            path = _pyenv_target(host, variables, cwd, path, text)
        else:
            path = _wrapper_target(host, variables, cwd, path, text)
    raise Unresolved("circle", path)


def pip_commands(host: Any, variables: Mapping[str, str], cwd: str, version: str) -> List[Tuple[str, str]]:
    """(command, path) of pip, pip3 and pipX.Y, as they are found on PATH."""
    names = ["pip", "pip" + version.split(".")[0], "pip" + version]
    found = [(name, on_path(host, variables, cwd, name)) for name in names]
    return [(name, path) for name, path in found if path is not None]


def other_interpreters(host: Any, variables: Mapping[str, str], cwd: str) -> List[str]:
    """Paths of interpreters that are usual on training hosts, for the question which of them holds torch."""
    found: Dict[str, None] = {}
    for name in ("python3", "python") + tuple("python3.%d" % minor for minor in range(6, 15)):
        for folder in search_path(variables, cwd):
            if _kind(host, folder + "/" + name) == "file":
                found[folder + "/" + name] = None
    roots = list(USUAL_PYTHONS)
    roots += ["/usr/local/" + n for n in _names(host, "/usr/local") if n.startswith("python")]
    if variables.get("HOME"):
        roots += [variables["HOME"] + "/" + name for name in ("miniconda3", "anaconda3")]
    for root in roots:
        path = _environment_python(host, root)
        if path is not None:
            found[path] = None
    return list(found)


def holds_torch(host: Any, sites: Sequence[str]) -> bool:
    """Whether one of the site directories holds an installed torch."""
    return any(_kind(host, site + "/torch/__init__.py") == "file" for site in sites)


# What the Python and image checks read beyond the import path.
TELLING_PILLOW_FILES = r"^PIL/(_version\.py|Image\.py|ImageFile\.py|_imaging[^/]*\.so)$"
TOLD_DISTRIBUTIONS = (
    "torch", "torch-npu", "torchvision", "apex", "pillow", "pillow-simd", "opencv-python", "opencv-python-headless",
    "opencv-contrib-python", "opencv-contrib-python-headless", "te", "topi", "hccl", "numpy", "mmcv", "mmcv-full",
    "mmdet", "envtune",
)  # fmt: skip
LOCATED_MODULES = ("torch", "torch_npu", "torchvision", "apex", "PIL", "cv2", "te", "topi", "tvm", "hccl", "mmcv",
                   "mmdet", "pip")  # fmt: skip
TOLD_FILES = (
    "PIL/__init__.py", "PIL/_version.py", "PIL/version.py", "cv2/version.py", "torch/version.py",
    "torch_npu/version.py", "torchvision/version.py", "torchvision/transforms/functional.py", "apex/amp/frontend.py",
    "apex/optimizers/__init__.py", "torch_npu/optim/__init__.py",
)  # fmt: skip
HOOKED_FILE = "torch/nn/modules/module.py"  # 40 KB, read only where mmcv or mmdet meets an old torch
TOLD_PLACES = (
    "torch/__init__.py", "torch/npu/__init__.py", "torch/npu/amp/__init__.py", "torch/utils/dumper.py",
    "torch/contrib/npu/optimized_lib/__init__.py", "torch_npu/npu/amp/__init__.py", "torch_npu/contrib/__init__.py",
    "apex/optimizers/npu_fused_sgd.py", "apex/amp/__init__.py", "te/__init__.py", "topi/__init__.py",
    "hccl/__init__.py", "cv2/__init__.py", "torchvision/__init__.py", "mmcv/__init__.py", "mmdet/__init__.py",
    "apex/__init__.py", "torch_npu/__init__.py", "PIL/Image.py", "PIL/ImageFile.py",
)  # fmt: skip
LISTED_PLACES = ("torch", "PIL")
# Packages for building pillow-simd, per requirement those any one of which meets it, the first to be installed; the
# porting guide's lists, 003:1436 and 1440.
PILLOW_BUILD_DEBIAN = (
    ("libtiff5-dev", "libtiff-dev"),
    ("libjpeg8-dev", "libjpeg62-turbo-dev", "libjpeg-turbo8-dev"),
    ("libopenjp2-7-dev",),
    ("zlib1g-dev",),
    ("libfreetype6-dev", "libfreetype-dev"),
    ("liblcms2-dev",),
    ("libwebp-dev",),
    ("tcl8.6-dev",),
    ("tk8.6-dev",),
    ("python3-tk",),
    ("libharfbuzz-dev",),
    ("libfribidi-dev",),
    ("libxcb1-dev",),
)
PILLOW_BUILD_RHEL = (
    "libtiff-devel", "libjpeg-devel", "openjpeg2-devel", "zlib-devel", "freetype-devel", "lcms2-devel", "libwebp-devel",
    "tcl-devel", "tk-devel", "harfbuzz-devel", "fribidi-devel", "libraqm-devel", "libimagequant-devel", "libxcb-devel",
)  # fmt: skip
PILLOW_BUILD_QUERY = ("rpm", "-q", "--whatprovides") + PILLOW_BUILD_RHEL  # names of packages that were renamed count
DPKG_STATUS = "/var/lib/dpkg/status"
BUILD_HEADERS = ("jpeglib.h", "zlib.h")


def module_head(text: str) -> str:
    """The lines of a module before its first function or class: its imports."""
    found = re.search(r"^(def|class|async def|@)\b|^@", text, re.M)
    return text[: found.start()] if found else text


def python_includes(real: str, version: str) -> List[str]:
    """The directories that may hold the Python.h of an interpreter."""
    root = os.path.dirname(os.path.dirname(real)).rstrip("/")
    return ["%s/include/python%s%s" % (root, version, flag) for flag in ("", "m", "mu")]


def header_folders(prefix: str, machine: str) -> List[str]:
    """Where a C compiler looks for the headers of libraries."""
    return ["/usr/include", "/usr/include/%s-linux-gnu" % machine, "/usr/local/include", prefix + "/include"]


def record_python(
    host: Any, variables: Mapping[str, str], cwd: str, machine: str, named: str = "", pid: Optional[int] = None
) -> None:
    """Read through `host` everything the Python and image checks will ask for; nothing is returned.

    `host` is the recorder: it keeps what it is asked and what came back, errors included. Files that are read for one
    line should be kept as `python_excerpt` gives them.
    """
    try:
        found = find_interpreter(host, variables, cwd, named, pid)
    except (Unresolved, OSError):
        return
    _quietly(_record_environment, host, variables, cwd, found, machine)
    _quietly(_record_commands, host, variables, cwd, found["version"])
    _quietly(host.read_bytes, DPKG_STATUS)
    record_command(host, PILLOW_BUILD_QUERY)
    for path in other_interpreters(host, variables, cwd):
        _quietly(_record_other, host, variables, cwd, path)


def _quietly(function: Callable[..., Any], *arguments: Any) -> None:
    try:
        function(*arguments)
    except (Unresolved, OSError):
        pass


def _record_other(host: Any, variables: Mapping[str, str], cwd: str, path: str) -> None:
    holds_torch(host, describe_interpreter(host, variables, cwd, path)["sites"])


def _record_commands(host: Any, variables: Mapping[str, str], cwd: str, version: str) -> None:
    for _, path in pip_commands(host, variables, cwd, version):
        interpreter = script_interpreter(host, variables, cwd, path)
        if interpreter is not None:
            _quietly(_record_other, host, variables, cwd, interpreter)


def _record_environment(
    host: Any, variables: Mapping[str, str], cwd: str, found: Mapping[str, Any], machine: str
) -> None:
    entries, _ = import_path(host, variables, cwd, found["sites"])
    for folder in [cwd] + entries:
        for name in ("torch", "torch/__init__.py", "torch.py"):
            _quietly(host.stat, os.path.join(folder, name))
        _quietly(host.listdir, os.path.join(folder, "torch"))
    for entry in entries:
        _quietly(_record_entry, host, entry)
    headers = [f + "/" + h for h in BUILD_HEADERS for f in header_folders(found["prefix"], machine)]
    for path in headers + [f + "/Python.h" for f in python_includes(found["real"], found["version"])]:
        _quietly(host.stat, path)
    _record_rights(host, found)


def _record_rights(host: Any, found: Mapping[str, Any]) -> None:
    """What says who may install into this Python, and what starts it."""
    prefix, version = found["prefix"].rstrip("/"), found["version"]
    for lib in ("lib", "lib64"):
        _quietly(host.stat, "%s/%s/python%s/EXTERNALLY-MANAGED" % (prefix, lib, version))
    for name in ("python", "python3", "python" + version):
        _quietly(host.stat, "%s/bin/%s" % (prefix, name))
    if found["kind"] == "conda":
        _quietly(host.listdir, prefix + "/conda-meta")


def _record_entry(host: Any, entry: str) -> None:
    names = host.listdir(entry)
    here = set(names)
    for name in names:
        told = distribution_of(name)
        if told is not None and told[0] in TOLD_DISTRIBUTIONS:
            for part in ("/METADATA", "/PKG-INFO", ""):
                _quietly(host.read_bytes, entry + "/" + name + part)
            if told[0] in ("pillow", "pillow-simd"):
                _quietly(host.read_bytes, entry + "/" + name + "/RECORD")
            if told[0] in CANN_PACKAGES and name.endswith(".dist-info"):
                _quietly(host.record_digest, entry + "/" + name + "/RECORD")
        if re.match(r"__editable___.*_finder\.py$", name):
            _quietly(host.read_bytes, entry + "/" + name)
    for name in LOCATED_MODULES:
        if name in here:
            _quietly(host.stat, entry + "/" + name)
            if not _is_there(host, entry + "/" + name + "/__init__.py", True):
                _quietly(host.listdir, entry + "/" + name)  # what uninstalling left, or a namespace package
    for path in TOLD_FILES:
        if path.split("/")[0] in here:
            _quietly(host.read_bytes, entry + "/" + path)
    if here & {"mmcv", "mmdet"} and "torch" in here:
        _quietly(host.read_bytes, entry + "/" + HOOKED_FILE)
    for path in TOLD_PLACES:
        if path.split("/")[0] in here:
            _quietly(host.stat, entry + "/" + path)
    if "PIL" in here:
        for name in host.listdir(entry + "/PIL"):
            if re.match(TELLING_PILLOW_FILES, "PIL/" + name):
                _quietly(host.stat, entry + "/PIL/" + name)


def python_excerpt(path: str, data: bytes) -> bytes:
    """What a recording keeps of a file: all of it, or the part that the checks read of a long one."""
    name = os.path.basename(path)
    if data.startswith(b"\x7fELF"):
        return data[:4]
    if name in ("METADATA", "PKG-INFO"):
        head = data.replace(b"\r\n", b"\n").split(b"\n\n", 1)[0]
        return b"".join(line + b"\n" for line in head.split(b"\n") if re.match(rb"(?i)(name|version)\s*:", line))
    if name == "RECORD" and re.search(r"/pillow[^/]*\.dist-info/RECORD$", path, re.I):
        kept = [line for line in data.splitlines() if re.match(_TELLING_ROWS, line.split(b",")[0])]
        return b"".join(line + b"\n" for line in kept)
    if path.endswith("torchvision/transforms/functional.py"):
        return module_head(data.decode("utf-8", "replace")).encode("utf-8")
    if path == DPKG_STATUS:
        return dpkg_excerpt(data.decode("utf-8", "replace")).encode("utf-8")
    return data


_TELLING_ROWS = TELLING_PILLOW_FILES.encode("ascii")


def dpkg_excerpt(text: str) -> str:
    """The package and status lines of dpkg's status file for the packages that checks ask about."""
    wanted = {name for any_of in PILLOW_BUILD_DEBIAN for name in any_of}
    kept = []
    for stanza in re.split(r"\n[ \t]*\n", text):
        lines = [line for line in stanza.split("\n") if line.startswith(("Package:", "Status:"))]
        if any(line.partition(":")[2].strip() in wanted for line in lines if line.startswith("Package:")):
            kept.append("\n".join(lines) + "\n")
    return "\n".join(kept)


# ---------------------------------------------------------------------------------------------------- what is recorded
# A new check adds the paths and commands it reads here, one line each; tests/test_collector_coverage.py says which ones
# are missing. `*`, `?` and `[...]` do not cross a slash; a final `**` is everything below (FILES and STATS).

FILES = (  # the content is kept
    "/.dockerenv",
    "/etc/Ascend/*",
    "/etc/ascend_install.info",
    "/etc/centos-release",
    "/etc/cpupower-service.conf",
    "/etc/default/cpufrequtils",
    "/etc/default/cpupower",
    "/etc/default/cpupower-service",
    "/etc/envtune/attestations.json",
    "/etc/euleros-release",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/kylin-release",
    "/etc/openEuler-release",
    "/etc/os-release",
    "/etc/redhat-release",
    "/etc/sysconfig/cpupower",
    "/etc/sysctl.conf",
    "/etc/systemd/system/envtune-governor.service",
    "/etc/system-release",
    "/etc/ufw/sysctl.conf",
    "/etc/sysctl.d/*.conf",
    "/proc/1/cgroup",
    "/proc/cmdline",
    "/proc/cpuinfo",
    "/proc/device-tree/compatible",
    "/proc/device-tree/hypervisor/compatible",
    "/proc/meminfo",
    "/proc/modules",
    "/proc/net/ip_tables_names",
    "/proc/net/ip6_tables_names",
    "/proc/self/cgroup",
    "/proc/self/mountinfo",
    "/proc/self/status",
    "/proc/sys/net/ipv4/ip_local_port_range",
    "/proc/sys/net/ipv4/ip_local_reserved_ports",
    "/proc/version",
    "/run/.containerenv",
    "/run/sysctl.d/*.conf",
    "/run/systemd/container",
    "/sys/block/nvme*/size",
    "/sys/bus/pci/devices/*/class",
    "/sys/bus/pci/devices/*/device",
    "/sys/bus/pci/devices/*/vendor",
    "/sys/class/dmi/id/chassis_vendor",
    "/sys/class/dmi/id/product_name",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/devices/system/cpu/intel_pstate/*",
    "/sys/devices/system/cpu/online",
    "/sys/hypervisor/type",
    "/usr/lib/os-release",
    "/usr/lib/sysctl.d/*.conf",
    "/run/sysctl.d/*.conf",
    "/usr/lib/sysctl.d/*.conf",
    "/usr/local/Ascend/driver/version.info",
    "/usr/local/Ascend/firmware/version.info",
    "/usr/local/lib/sysctl.d/*.conf",
)
STATS = (  # only that it is there: kind, size, mode, owner; the text of a link
    "/dev/davinci*",
    "/dev/devmm_svm",
    "/dev/hisi_hdc",
    "/etc/rc[2-5].d/S*cpufrequtils",
    "/etc/systemd/system",
    "/etc/systemd/system/*.wants/cpupower.service",
    "/etc/systemd/system/*.wants/envtune-governor.service",
    "/etc/systemd/system/*.wants/ondemand.service",
    "/etc/systemd/system/*.wants/power-profiles-daemon.service",
    "/etc/systemd/system/*.wants/tuned.service",
    "/proc/net/dev",
    "/proc/net/netfilter",
    "/proc/self/ns/cgroup",
    "/proc/self/ns/mnt",
    "/proc/self/ns/pid",
    "/tmp",
    "/opt/*gcc*/lib64/libstdc++.so.6",
    "/usr/lib/linux-tools/*/cpupower",
    "/usr/local/*gcc*/lib64/libstdc++.so.6",
    "/usr/local/Ascend/*",
    "/usr/local/hdf5",
    "/var/log/npu/slog",
)
LISTINGS = (  # the names in the directory
    "/etc/sysctl.d",
    "/lib/sysctl.d",
    "/run/sysctl.d",
    "/sys/block",
    "/usr/lib/sysctl.d",
    "/usr/local",
    "/usr/local/Ascend",
    "/usr/local/lib/sysctl.d",
)
RECORDS = ()  # type: Tuple[str, ...]  # wheels and RECORD files of which only the digest is kept
# argv, and the paths of which one must be there for the command to be worth running; without any, the program itself.
COMMANDS = (
    (("nft", "-j", "list", "ruleset"), ()),
    (("nft", "list", "ruleset"), ()),  # tells dormant tables, which the JSON of nft 1.0.6 does not
    (("iptables-save",), ()),
    (("iptables-legacy-save",), ()),
    (("ip6tables-save",), ()),
    (("ip6tables-legacy-save",), ()),  # firewall-cmd and ufw are not asked: what they set ends in these listings
)  # type: Tuple[Tuple[Tuple[str, ...], Tuple[str, ...]], ...]


PROGRAMS = ("env", "apt-get", "dnf", "yum", "zypper", "cpupower")  # whose presence a check asks for
TUNED_PROFILES = ("/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned")


def record_system(recorder: Any) -> None:
    """Package managers and cpupower, tuned's active profile with what it includes, the CPU quota of our group."""
    for folder in SYSTEM_PATH.split(":"):
        for name in PROGRAMS:
            _quietly(recorder.stat, folder + "/" + name)
    _quietly(_record_tuned, recorder)
    for process in {"self", str(recorder.target.get("pid") or "self")}:
        _quietly(recorder.read_bytes, "/proc/%s/status" % process)
        _quietly(_record_quota, recorder, process)


def _record_tuned(recorder: Any) -> None:
    names = recorder.read("/etc/tuned/active_profile").split()
    for name in names:  # grows while the includes are found
        for folder in TUNED_PROFILES:
            try:
                text = recorder.read("%s/%s/tuned.conf" % (folder, name))
            except OSError:
                continue
            for found in re.findall(r"(?m)^\s*include\s*=\s*(.*)$", text):
                names += [n for n in found.replace(",", " ").split() if n not in names and "/" not in n]
            break


def _record_quota(recorder: Any, process: str) -> None:
    for line in recorder.read("/proc/%s/cgroup" % process).splitlines():
        controllers, _, path = line.partition(":")[2].partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        files = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if controllers else ("cpu.max",)
        folder = "/sys/fs/cgroup/cpu" if controllers else "/sys/fs/cgroup"
        while True:
            for name in files:
                _quietly(recorder.read_bytes, "%s%s/%s" % (folder, path.rstrip("/"), name))
            if path in ("", "/"):
                break
            path = path.rpartition("/")[0]


def record_network(recorder: Any) -> None:
    """Where the host's own name and MASTER_ADDR lead, the peers that HCCL_WHITELIST_FILE lists, built-in filters."""
    _quietly(recorder.read_bytes, "/lib/modules/%s/modules.builtin" % recorder.uname["release"])
    record_command(recorder, ("getent", "hosts", recorder.uname["nodename"]), (), 3.0)
    master = recorder.variables.get("MASTER_ADDR", "").strip()
    if re.match(r"[A-Za-z0-9_][A-Za-z0-9_.-]*$", master) and not re.match(r"[0-9.]+$", master):
        record_command(recorder, ("getent", "ahosts", master), (), 3.0)
    listed = recorder.variables.get("HCCL_WHITELIST_FILE", "")
    if listed.startswith("/"):
        _quietly(recorder.read_bytes, os.path.normpath(listed))


def record_npu(recorder: Any) -> None:
    """npu-smi, which takes seconds on a full server, and what tells a service from a process that lost its parent."""
    recorder.glob("/sys/bus/pci/devices/*/physfn")
    record_command(recorder, ("npu-smi", "info"), (), 20.0)
    if not recorder.machine.runs or not recorder.glob("/dev/davinci[0-9]*"):
        return
    text = recorder.commands.get(("npu-smi", "info"), {}).get("stdout", "")
    listed = set(re.findall(r"(?m)^\|\s*\d+(?:\s+\d+)?\s*\|\s*(\d+)\s*\|", text))
    processes = recorder.machine.processes()
    for row in processes if isinstance(processes, list) else ():
        if row.get("devices") or str(row["pid"]) in listed:
            _quietly(recorder.read_bytes, "/proc/%d/cgroup" % row["pid"])
            _quietly(recorder.read_bytes, "/proc/%d/stat" % row["pid"])
            _quietly(recorder.read_bytes, "/proc/%d/environ" % row["pid"])


# Where CANN is installed below a base such as /usr/local/Ascend, and what the checks read of an install.
CANN_ROOTS = ("ascend-toolkit/*", "nnae/*", "cann", "cann-*", "latest")
CANN_FILES = (
    "version.cfg",
    "ascend_*_install.info",
    "*-linux*/ascend_*_install.info",
    "share/info/*/version.info",
    "compiler/version.info",
    "fwkacllib/version.info",
    "opp/version.info",
    "opp_kernel/version.info",
    "runtime/version.info",
    "toolkit/version.info",
)
CANN_STATS = (
    "*",
    "*-linux*/lib64",
    "bin/setenv.bash",
    "fwkacllib/lib64",
    "share/info",
    "python/site-packages/te",
    "*-linux*/python/site-packages/te",
    "compiler/python/site-packages/te",
    "python/site-packages/topi",
    "*-linux*/python/site-packages/topi",
    "compiler/python/site-packages/topi",
    "python/site-packages/hccl",
    "*-linux*/python/site-packages/hccl",
    "compiler/python/site-packages/hccl",
)
CANN_LIBRARIES = (
    "fwkacllib/lib64/libhccl.so",
    "lib64/libhccl.so",
    "hccl/lib64/libhccl.so",
    "*-linux*/lib64/libhccl.so",
    "*-linux*/fwkacllib/lib64/libhccl.so",
)
CANN_AICPU = ("opp/op_impl/built-in/aicpu", "opp/built-in/op_impl/aicpu", "ops/op_impl/built-in/aicpu", "opp/aicpu",
              "aicpu_kernels")  # fmt: skip
CANN_AICPU_ARCHIVES = ("opp/Ascend*/aicpu", "Ascend*/aicpu")
CANN_AICPU_DEPTH = ("", "aicpu_kernel/", "aicpu_kernel/lib/", "aicpu_kernel/lib/*/", "*/")
CANN_WHEELS = ("fwkacllib/lib64", "*-linux*/lib64", "*-linux*/fwkacllib/lib64", "lib64", "compiler/lib64")
CANN_SITES = ("python/site-packages", "*-linux*/python/site-packages", "compiler/python/site-packages")
CANN_PACKAGES = ("te", "topi", "hccl")
LOADER_DIRECTORIES = ("/lib64", "/usr/lib64", "/lib", "/usr/lib", "/lib/*-linux-gnu", "/usr/lib/*-linux-gnu")
PATH_VARIABLES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH", "ASCEND_AICPU_PATH", "TOOLCHAIN_HOME",
                  "LD_LIBRARY_PATH", "PYTHONPATH", "PATH")  # fmt: skip


def record_cann(recorder: Any) -> None:
    """The CANN installs, driver and firmware in their own places, the loader's directories, what variables point to."""
    entries = [e for name in PATH_VARIABLES for e in recorder.variables.get(name, "").split(":") if e[:1] == "/"]
    for entry in dict.fromkeys(entries):
        _quietly(recorder.stat, entry)
    for kind in ("Driver", "Firmware"):
        base = _noted_path(recorder, "/etc/ascend_install.info", kind + "_Install_Path_Param")
        if base:
            _quietly(recorder.stat, base + "/driver")
            _quietly(recorder.read_bytes, "%s/%s/version.info" % (base, kind.lower()))
    _quietly(recorder.stat, "/usr/local/Ascend/driver")
    roots = [base + "/" + root for base in cann_bases(recorder, entries) for root in CANN_ROOTS]
    for root in roots + _unusual_roots(recorder, entries):
        _record_install(recorder, root)
    _record_loader(recorder, entries)


def cann_bases(recorder: Any, entries: Sequence[str]) -> List[str]:
    """The directories that installs lie in: the default, the user's own, what installer and variables name."""
    homes = [recorder.variables.get("HOME", ""), recorder.environ.get("HOME", "")]
    bases = ["/usr/local/Ascend"] + [home.rstrip("/") + "/Ascend" for home in homes if home.startswith("/")]
    for path in ["/etc"] + [home.rstrip("/") for home in homes if home.startswith("/")]:
        try:
            text = recorder.read(path + "/Ascend/ascend_cann_install.info")
        except OSError:
            continue
        for line in text.splitlines():
            key, _, value = line.partition("=")
            if "path" in key.lower() and value.strip().startswith("/"):
                bases.append(re.sub(r"/(ascend-toolkit|nnae)(/latest)?$", "", value.strip().rstrip("/")))
    for entry in entries:
        found = re.match(r"(.*?)/(?:(?:ascend-toolkit|nnae)/[^/]+|cann-[^/]+|cann)(?:/|$)", entry)
        if found and found.group(1):
            bases.append(found.group(1))
    for base in dict.fromkeys(bases):
        for folder in (base, base + "/ascend-toolkit", base + "/nnae"):
            _quietly(recorder.listdir, folder)
    return list(dict.fromkeys(bases))


def _unusual_roots(recorder: Any, entries: Sequence[str]) -> List[str]:
    """Installs that are no version directory: /usr/local/Ascend itself before CANN 20.1, and copies elsewhere."""
    found = []
    for entry in ["/usr/local/Ascend/opp"] + list(entries):
        folder = entry
        for _ in range(6):
            folder = os.path.dirname(folder)
            if folder != "/" and _is_there(recorder, folder + "/fwkacllib/lib64", True):
                found.append(folder)
    return list(dict.fromkeys(found))


def _record_install(recorder: Any, root: str) -> None:
    if not recorder.glob(root):
        return
    for place in CANN_FILES:
        for path in recorder.glob(root + "/" + place):
            _quietly(recorder.read_bytes, path)
    for place in CANN_STATS:
        for path in recorder.glob(root + "/" + place):
            _quietly(recorder.stat, path)
    for place in CANN_LIBRARIES:
        for path in recorder.glob(root + "/" + place):
            _quietly(recorder.head, path)
    for place in CANN_AICPU:
        recorder.glob(root + "/" + place)
        for depth in CANN_AICPU_DEPTH:
            recorder.glob("%s/%s/%slibpt_kernels.so" % (root, place, depth))
    for place in CANN_AICPU_ARCHIVES:
        recorder.glob(root + "/" + place)
        recorder.glob("%s/%s/*aicpu*kernels.tar.gz" % (root, place))
    for name in CANN_PACKAGES:
        for place in CANN_WHEELS:
            for path in recorder.glob("%s/%s/%s-*.whl" % (root, place, name)):
                _quietly(recorder.record_digest, path)
        for place in CANN_SITES:
            for path in recorder.glob("%s/%s/%s-*.dist-info" % (root, place, name)):
                _quietly(recorder.record_digest, path + "/RECORD")


def _record_loader(recorder: Any, entries: Sequence[str]) -> None:
    """ld.so.conf with what it includes, and libhccl.so in every directory that is searched."""
    folders = list(entries) + _conf_lines(recorder, "/etc/ld.so.conf", 4)
    for folder in dict.fromkeys(folders):
        _quietly(recorder.head, folder + "/libhccl.so")
    for pattern in LOADER_DIRECTORIES:
        for path in recorder.glob(pattern + "/libhccl.so"):
            _quietly(recorder.head, path)


def _conf_lines(recorder: Any, path: str, depth: int) -> List[str]:
    try:
        lines = recorder.read(path).splitlines()
    except OSError:
        return []
    folders = []  # type: List[str]
    for line in lines:
        line = line.partition("#")[0].strip()
        included = re.match(r"include\s+(.+)", line)
        if included and depth:
            for pattern in included.group(1).split():
                for file in recorder.glob(os.path.join(os.path.dirname(path), pattern)):
                    folders += _conf_lines(recorder, file, depth - 1)
        elif line.startswith("/"):
            folders += [part.partition("=")[0].rstrip("/") for part in re.split(r"[:,\s]+", line) if part[:1] == "/"]
    return folders


def _noted_path(recorder: Any, path: str, key: str) -> str:
    """The absolute path an installer noted under `key`; empty without one."""
    try:
        text = recorder.read(path)
    except OSError:
        return ""
    for line in text.splitlines():
        name, _, value = line.partition("=")
        if name.strip().lower() == key.lower() and value.strip().startswith("/"):
            return str(value.strip().rstrip("/"))
    return ""


def record_job(recorder: Any) -> None:
    """The environment the job gets: --pid, --script, --env-file. Sets `recorder.variables` as far as reading tells."""
    pid, script, env_file = (recorder.target.get(key) for key in ("pid", "script", "env_file"))
    for path in (env_file, script):
        if path:
            _quietly(_follow_script, recorder, path, 0)
    if pid is not None:
        _record_process(recorder, pid)
    whitelist = recorder.variables.get("HCCL_WHITELIST_FILE", "")
    if whitelist.startswith("/"):
        _quietly(recorder.read_bytes, whitelist)


def _record_process(recorder: Any, pid: int) -> None:
    folder = "/proc/%d/" % pid
    for name in ("cmdline", "limits", "status", "cgroup", "stat", "comm"):
        _quietly(recorder.read_bytes, folder + name)
    for name in ("exe", "cwd", "root", "ns/mnt", "ns/net", "ns/pid"):
        _quietly(recorder.readlink, folder + name)
    try:
        rows = recorder.read_bytes(folder + "environ").decode("utf-8", "surrogateescape").split("\0")
    except OSError:
        return
    recorder.variables = dict(row.split("=", 1) for row in rows if "=" in row)


def _follow_script(recorder: Any, path: str, depth: int) -> None:
    """Record a script and every file that it sources by a path that reading tells; note what it exports."""
    path = os.path.normpath(os.path.join(recorder.cwd, path))
    recorder.followed = followed = getattr(recorder, "followed", []) + [path]
    if followed.count(path) > 3:  # scripts that source each other in a circle
        return
    text = recorder.read_bytes(path).decode("utf-8", "replace")
    variables = dict(recorder.variables)
    variables["0"] = path
    for line in re.sub(r"\\\n", " ", text).splitlines():
        assignment = re.match(r"\s*(?:export\s+|readonly\s+|declare\s+-x\s+)?([A-Za-z_]\w*)=([^;&|]*)", line)
        if assignment:
            name, value = assignment.group(1), _expanded(assignment.group(2).strip(), variables)
            if "$" not in value and "`" not in value:
                variables[name] = recorder.variables[name] = value
        for sourced in re.findall(
            r"(?:^|[;&|{(]|\bthen\b|\bdo\b)\s*(?:source|\.)\s+(\"[^\"]+\"|'[^']+'|[^\s;&|)]+)", line
        ):
            target = _expanded(sourced, variables).strip("\"'")
            if depth < 8 and "$" not in target and target:
                for folder in dict.fromkeys((recorder.cwd, os.path.dirname(path))):
                    _quietly(_follow_script, recorder, os.path.join(folder, target), depth + 1)
        for other in re.findall(r"(?:^|[;&|{(])\s*(?:exec\s+|nohup\s+)?(?:bash|sh)\s+([^-\s;&|)][^\s;&|)]*)", line):
            target = _expanded(other, variables).strip("\"'")
            if depth < 8 and "$" not in target:
                for folder in dict.fromkeys((recorder.cwd, os.path.dirname(path))):
                    _quietly(_follow_script, recorder, os.path.join(folder, target), depth + 1)


# ---------------------------------------------------------------------------------------------------- recorder

SCHEMA = "envtune.snapshot/1"
COLLECTOR = "1"  # version of this file's tables, kept in the manifest
RECORD_LIMIT = 1024 * 1024  # bytes of one recorded file; beyond it only the size is kept
Stat = collections.namedtuple("Stat", "kind mode uid gid size mtime")
# Trees of the kernel: links inside them lead to other names of the same thing, so they are passed through unrecorded.
KERNEL_TREES = ("/proc/", "/sys/")


def status(found: os.stat_result) -> Stat:
    """The parts of a stat result that are kept."""
    mode = stat_module.S_IMODE(found.st_mode)
    return Stat(kind_of(found.st_mode), mode, found.st_uid, found.st_gid, found.st_size, found.st_mtime)


class Machine:
    """This machine, or the tree below `root` in its place (an image, a test); then no command is run and no table read.

    Paths that are passed in hold no links (`Recorder` resolves them), so nothing outside `root` is reached.
    """

    def __init__(self, root: str = "") -> None:
        self.root = root.rstrip("/")
        self.runs = not self.root  # whether commands are run and tables read
        self.mounts = Mounts()
        self._tables: Dict[str, Any] = {}

    def lstat(self, path: str) -> Stat:
        self.mounts.enter(self.root + path)
        return status(os.lstat(self.root + path))

    def stat(self, path: str) -> Stat:
        """What is behind a link of a kernel tree."""
        return status(os.stat(self.root + path))

    def read_bytes(self, path: str, limit: int = FILE_LIMIT) -> bytes:
        return read_bytes(self.root + path, limit)

    def read_head(self, path: str) -> bytes:
        return read_head(self.root + path)

    def readlink(self, path: str) -> str:
        return os.readlink(self.root + path)

    def listdir(self, path: str) -> List[str]:
        return os.listdir(self.root + path)

    def run(self, argv: Sequence[str], timeout: float = 5.0) -> Optional[Dict[str, Any]]:
        """A row of `run_command`; None where commands are not run."""
        return run_command(argv, timeout) if self.runs else None

    def record_digest(self, path: str) -> str:
        if path.endswith(".whl"):
            return record_digest(wheel_record(self.root + path))
        return record_digest(self.read_bytes(path).decode("utf-8", "replace"))

    def identity(self) -> Dict[str, Any]:
        """uname, euid, cwd and the time, in the form of the manifest."""
        import time

        names = os.uname()
        try:
            cwd = os.getcwd()
        except OSError:
            cwd = "/"  # the working directory was deleted
        return {
            "uname": {key: getattr(names, key) for key in ("sysname", "nodename", "release", "machine")},
            "euid": os.geteuid(),
            "cwd": clean(cwd),
            "now": round(time.time(), 3),
        }

    def processes(self) -> Any:
        """The process table, read once."""
        if "processes" not in self._tables:
            devices = glob_paths(Recorder(self, {}), "/dev/davinci[0-9]*")
            self._tables["processes"] = _table(lambda: process_table(bool(devices)))
        return self._tables["processes"]

    def tables(self) -> Dict[str, Any]:
        """processes, listeners, interfaces, disks; `{"error": ...}` for one that could not be read."""
        if not self.runs:
            return {}
        self.processes()
        self._tables["listeners"] = _table(_owned_listeners)
        self._tables["interfaces"] = _table(network_interfaces)
        self._tables["disks"] = _table(_disks)
        return self._tables


def _table(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except OSError as error:
        return {"error": error_word(error)}


def error_word(error: OSError) -> str:
    """EACCES, EIO, ... as it stands in a recorded `{"error": ...}`."""
    return errno.errorcode.get(error.errno or 0, "EIO")


def _owned_listeners() -> List[Dict[str, Any]]:
    rows = listening_sockets()
    owners = socket_owners([row["inode"] for row in rows])
    for row in rows:
        pid, process = owners.get(row.pop("inode"), (None, ""))
        if pid is not None:
            row.update(pid=pid, process=process)
    return rows


def _disks() -> List[Dict[str, Any]]:
    rows = []
    for line in read_bytes("/proc/self/mountinfo").decode("utf-8", "replace").splitlines():
        fields = line.split()
        path, kind = fields[4], fields[fields.index("-") + 1]
        if kind in ("ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "zfs", "f2fs", "vfat") or path == "/":
            try:
                rows.append(disk_space(path))
            except OSError:
                continue
    return rows


class Recorder:
    """Reads like a host and keeps what it read: `files` in the form of docs/snapshot.md.

    Every question is answered as the live machine answers, errors included, and the answer is kept, also "not there".
    So code that takes a host (`find_interpreter`) records exactly what it reads by being run on a recorder.
    """

    def __init__(self, machine: Any, target: Mapping[str, Any], environ: Optional[Mapping[str, str]] = None) -> None:
        self.machine = machine
        self.target = target
        self.environ: Mapping[str, str] = dict(os.environ if environ is None else environ)
        self.variables = dict(self.environ)  # of the job; record_job adds to it
        self.identity = machine.identity()
        self.uname = self.identity["uname"]
        self.cwd: str = self.identity["cwd"]
        self.files: Dict[str, Any] = {}
        self.commands: Dict[Tuple[str, ...], Dict[str, Any]] = {}
        self.covered: List[str] = []
        self._stats: Dict[str, Any] = {}
        self._names: Dict[str, Any] = {}

    # ------------------------------------------------------------------ the questions of a host

    def stat(self, path: str, follow: bool = True) -> Stat:
        real = self._walk(path, follow)
        found = self._status(real, follow)
        self._note(real, found)
        return found

    def readlink(self, path: str) -> str:
        real = self._walk(path, False)
        if self._lstat(real).kind != "link":
            raise OSError(errno.EINVAL, "not a symbolic link", path)
        target = self._attempt(real, lambda: clean(self.machine.readlink(real)))
        self.files[real] = {"link": target}
        return str(target)

    def listdir(self, path: str) -> List[str]:
        real = self._walk(path)
        names = self._list(real)
        self.files[real] = dict(_extras("dir", self._status(real)), dir=names)
        return names

    def read_bytes(self, path: str) -> bytes:
        real = self._walk(path)
        found = self._status(real)
        if found.kind == "file" and found.size > RECORD_LIMIT and real != DPKG_STATUS:  # of which an excerpt is kept
            self._note(real, found)
            raise OSError(errno.EFBIG, "larger than a recording keeps", path)
        if found.kind != "file":
            self._note(real, found)
            raise OSError(errno.EINVAL, "not a regular file", path)
        data = self._attempt(real, lambda: self.machine.read_bytes(real), found)
        kept = redact_file(real, excerpt(real, bytes(data)), self.target.get("pid"))
        self.files[real] = _content(kept)
        return kept

    def read(self, path: str) -> str:
        try:
            return self.read_bytes(path).decode("utf-8")
        except UnicodeDecodeError as error:
            raise OSError(errno.EILSEQ, "not text: %s" % error.reason, path)

    def glob(self, pattern: str) -> List[str]:
        if pattern not in self.covered:
            self.covered.append(pattern)
        return glob_paths(_Unlisted(self), pattern)

    def head(self, path: str) -> bytes:
        """Keeps the first bytes of a file, as hexadecimal."""
        real = self._walk(path)
        found = self._status(real)
        data = self._attempt(real, lambda: self.machine.read_head(real), found)
        if not isinstance(self.files.get(real), str):
            self._note(real, found)
            self.files[real] = dict(self.files[real], head=bytes(data).hex())
        return bytes(data)

    def record_digest(self, path: str) -> str:
        """Keeps the digest alone; raises OSError where there is none."""
        real = self._walk(path)
        found = self._status(real)
        digest = self._attempt(real, lambda: self.machine.record_digest(real), found)
        if not isinstance(self.files.get(real), str):
            self._note(real, found)
            self.files[real] = dict(self.files[real], record_digest=digest)
        return str(digest)

    def run(self, argv: Sequence[str], timeout: float = 5.0) -> Dict[str, Any]:
        """The row of `argv`, run once; a row with `error` when there is no result."""
        key = tuple(argv)
        if key not in self.commands:
            row = self.machine.run(argv, timeout)
            if row is None:
                return {"argv": list(argv), "error": "notrecorded"}
            self.commands[key] = row
        return self.commands[key]

    # ------------------------------------------------------------------ how it is kept

    def _walk(self, path: str, follow: bool = True) -> str:
        """`path` without links; every link on the way is recorded, and so is the place where the way ends."""
        done, hops = "/", 40
        parts = [p for p in path.split("/") if p not in ("", ".")]
        while parts:
            part = parts.pop(0)
            if part == "..":
                done = os.path.dirname(done)
                continue
            step = done + "/" + part if done != "/" else "/" + part
            found = self._lstat(step)
            through = (parts or follow) and step.startswith(KERNEL_TREES) and not self.machine.root
            if found.kind != "link" or through or not (parts or follow):
                if parts and found.kind not in ("dir", "link"):
                    self._note(step, found)
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
                done = step
                continue
            hops -= 1
            if hops < 0:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            entry = self.files.get(step)
            if entry is None or "link" not in entry:
                entry = self.files[step] = {"link": clean(self.machine.readlink(step))}
            target = entry["link"]
            done = "/" if target.startswith("/") else done
            parts = [p for p in target.split("/") if p not in ("", ".")] + parts
        return done

    def _status(self, real: str, follow: bool = True) -> Stat:
        """What is at `real`; behind it, where it is a link of a kernel tree."""
        found = self._lstat(real)
        return self._asked(real, self.machine.stat, "followed ") if found.kind == "link" and follow else found

    def _lstat(self, path: str) -> Stat:
        return self._asked(path, self.machine.lstat)

    def _asked(self, path: str, ask: Callable[[str], Stat], word: str = "") -> Stat:
        if word + path not in self._stats:
            try:
                self._stats[word + path] = ask(path)
            except OSError as error:
                self._stats[word + path] = error
                absent = error.errno in (errno.ENOENT, errno.ENOTDIR)
                self.files.setdefault(path, None if absent else {"error": error_word(error)})
        found = self._stats[word + path]
        if isinstance(found, OSError):
            raise found.with_traceback(None)
        return found  # type: ignore[no-any-return]

    def names(self, path: str) -> List[str]:
        """`listdir` that keeps nothing but errors."""
        return self._list(self._walk(path))

    def _list(self, real: str) -> List[str]:
        if real not in self._names:
            found = self._status(real)
            names = self._attempt(real, lambda: self.machine.listdir(real), found)
            self._names[real] = sorted(clean(n) for n in names)
        return list(self._names[real])

    def _attempt(self, real: str, read: Callable[[], Any], found: Optional[Stat] = None) -> Any:
        try:
            return read()
        except OSError as error:
            self.files.pop(real, None)
            if found is not None:
                self._note(real, found)  # it is there all the same
            self.files[real] = dict(self.files.get(real, {}), error=error_word(error))
            raise

    def _note(self, path: str, found: Stat) -> None:
        """Keep what lstat says, unless more is kept already."""
        if path in self.files:
            return
        if found.kind == "dir":
            self.files[path] = dict(_extras("dir", found), dir=None)
        elif found.kind == "file":
            self.files[path] = dict(_extras("file", found), size=found.size)
        elif found.kind == "link":
            self.readlink(path)
        else:
            entry = {found.kind: True}  # type: Dict[str, Any]
            entry.update(mode="%04o" % found.mode, uid=found.uid, gid=found.gid)
            self.files[path] = entry


class _Unlisted:
    """A recorder for a glob: what matches is kept, the listings it took are not (`covered` holds the pattern)."""

    def __init__(self, recorder: Recorder) -> None:
        self.stat = recorder.stat
        self._recorder = recorder

    def listdir(self, path: str) -> List[str]:
        return self._recorder.names(path)


def _extras(kind: str, found: Stat) -> Dict[str, Any]:
    """Mode and owner where they are not the usual ones."""
    extras = {}  # type: Dict[str, Any]
    if found.mode != (0o755 if kind == "dir" else 0o644) and not (kind == "dir" and found.mode == 0o555):
        extras["mode"] = "%04o" % found.mode
    if found.uid:
        extras["uid"] = found.uid
    if found.gid:
        extras["gid"] = found.gid
    return extras


def _content(data: bytes) -> Any:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        import base64

        return {"base64": base64.b64encode(data).decode("ascii")}


def clean(name: str) -> str:
    """A file name as text; bytes that are no UTF-8 become U+FFFD."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def glob_paths(host: Any, pattern: str) -> List[str]:
    """The sorted paths on `host` that match a shell pattern; a final `**` is every path below that is no directory."""
    found = ["/"]
    parts = [p for p in pattern.split("/") if p]
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part == "**":
            return sorted(path for base in found for path in _below(host, base))
        steps = []  # type: List[str]
        for base in found:
            names = _matching(host, base, part) if re.search(r"[*?\[]", part) else [part]
            steps += [os.path.join(base, name) for name in names]
        found = [step for step in steps if _is_there(host, step, not last)]
    return sorted(found)


def _matching(host: Any, folder: str, pattern: str) -> List[str]:
    try:
        names = host.listdir(folder)
    except OSError:
        return []
    hidden = pattern.startswith(".")
    return [n for n in names if fnmatch.fnmatchcase(n, pattern) and (hidden or not n.startswith("."))]


def _is_there(host: Any, path: str, follow: bool) -> bool:
    try:
        host.stat(path, follow)
    except OSError:  # as in Python's glob: what may not be looked at does not match
        return False
    return True


def _below(host: Any, folder: str, depth: int = 12) -> Iterator[str]:
    for name in _names_or_none(host, folder) if depth else ():
        step = os.path.join(folder, name)
        try:
            kind = host.stat(step, False).kind
        except OSError:
            continue
        if kind == "dir":
            for path in _below(host, step, depth - 1):
                yield path
        else:
            yield step


def _names_or_none(host: Any, folder: str) -> List[str]:
    try:
        return list(host.listdir(folder))
    except OSError:
        return []


CPUFREQ = "/sys/devices/system/cpu"
CPUFREQ_FILES = (  # scaling_cur_freq is left out: the kernel may take 10 ms to measure it, on each CPU
    "affected_cpus", "cpuinfo_max_freq", "cpuinfo_min_freq", "energy_performance_preference", "related_cpus",
    "scaling_available_governors", "scaling_driver", "scaling_governor", "scaling_max_freq", "scaling_min_freq",
)  # fmt: skip


def record_cpufreq(recorder: Recorder) -> None:
    """The frequency policies; on kernels without policy directories, the directory of each CPU."""
    folder = CPUFREQ + "/cpufreq/policy*/"
    if not recorder.glob(folder + "scaling_governor"):
        folder = CPUFREQ + "/cpu[0-9]*/cpufreq/"
    paths = [path for name in CPUFREQ_FILES for path in recorder.glob(folder + name)]
    for path in paths + [CPUFREQ + "/cpu0/cpufreq/scaling_driver"]:
        _quietly(recorder.read_bytes, path)


def excerpt(path: str, data: bytes) -> bytes:
    """What is kept of a file: all of it, or the part of a long one that checks read."""
    if path.endswith("/modules.builtin"):  # the packet filters of some hundred lines, and that it has lines at all
        lines = data.splitlines()
        return b"".join(line + b"\n" for line in lines[:1] + [one for one in lines[1:] if b"netfilter" in one])
    return cpuinfo_excerpt(data) if path == "/proc/cpuinfo" else python_excerpt(path, data)


def cpuinfo_excerpt(data: bytes) -> bytes:
    """The first CPU in full; of the others what differs from it, without what differs by nature."""
    stanzas = data.split(b"\n\n")
    first = set(stanzas[0].split(b"\n"))
    kept = [stanzas[0]]
    for stanza in stanzas[1:]:
        lines = [line for line in stanza.split(b"\n") if line not in first and not re.match(_CPU_OWN, line)]
        kept.append(b"\n".join(lines))
    return b"\n\n".join(kept)


_CPU_OWN = rb"(cpu MHz|bogomips|BogoMIPS|apicid|initial apicid|core id|physical id|siblings|cpu cores)\s*:"


# Where a job writes much, by the variables CANN reads (porting guide 003:1582, 1660-1664).
OUTPUT_VARIABLES = (
    "TUNE_BANK_PATH", "ASCEND_PROCESS_LOG_PATH", "ASCEND_WORK_PATH", "ASCEND_CACHE_PATH", "ACL_OP_COMPILER_CACHE_DIR",
)  # fmt: skip


def record_output(recorder: Recorder) -> None:
    """Whether the directories are there that builds and jobs write to."""
    named = [recorder.variables.get(name, "") for name in OUTPUT_VARIABLES]
    homes = [variables["HOME"] for variables in (recorder.variables, recorder.environ) if variables.get("HOME")]
    for path in named + [recorder.environ.get("TMPDIR", "")] + [home + "/ascend/log" for home in homes]:
        if path.startswith("/"):
            _quietly(recorder.stat, os.path.normpath(path))


def record_tables(recorder: Recorder) -> None:
    """Everything the tables above name."""
    for pattern in FILES:
        for path in recorder.glob(pattern):
            _quietly(recorder.read_bytes, path)
    for pattern in STATS:
        for path in recorder.glob(pattern):
            _quietly(recorder.stat, path)  # behind the link, too
    for path in LISTINGS:
        _quietly(recorder.listdir, path)
    for pattern in RECORDS:
        for path in recorder.glob(pattern):
            _quietly(recorder.record_digest, path)
    for argv, needed in COMMANDS:
        record_command(recorder, argv, needed)


def record_command(recorder: Recorder, argv: Sequence[str], needed: Sequence[str] = (), timeout: float = 5.0) -> None:
    """Run `argv` where one of the paths `needed`, or its program, is there; else record that it is missing."""
    places = list(needed) or [folder + "/" + argv[0] for folder in SYSTEM_PATH.split(":")]
    if any(_is_there(recorder, path, True) for path in places):
        recorder.run(argv, timeout)
    elif recorder.machine.runs:
        recorder.commands[tuple(argv)] = {"argv": list(argv), "error": "missing"}


# ---------------------------------------------------------------------------------------------------- secrets

REDACTED = "<redacted>"
_SECRET_WORDS = (
    "password", "passwd", "passphrase", "passcode", "pass", "pwd", "secret", "secrets", "token", "credential",
    "credentials", "apikey", "accesskey", "secretkey", "privatekey", "authtoken", "accesstoken", "cookie", "cookies",
    "jwt", "sas",
)  # fmt: skip
# Words before `token` in options of training scripts, where a token is a piece of text: --pad-token-id 0.
_TEXT_TOKENS = (
    "pad", "eos", "bos", "unk", "mask", "sep", "cls", "special", "stop", "image", "num", "max", "min", "per", "next",
    "start", "end", "first",
)  # fmt: skip
# Shapes that are secrets under any name: Hugging Face, OpenAI, GitHub, GitLab, AWS, Slack, Google, JWT.
_SHAPES = re.compile(
    r"hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{15,}"
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}|xox[abpr]-[\w-]{10,}|AIza[\w-]{30,}|(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*"
    r"|(?:ssh-rsa|ssh-ed25519|ecdsa-sha2-\S+) AAAA[\w+/=]{20,}"
)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S)
_LOGIN = re.compile(r"((?<![a-zA-Z0-9+.-])[a-zA-Z][a-zA-Z0-9+.-]*://[^/\s:@'\"]*):[^/\s'\"]*@")
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}")
_VALUE = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s;&|\"']+")
_ASSIGNED = re.compile(r"(?<![\w$.-])-{0,2}(?P<name>[A-Za-z_][\w.-]*)[\"']?[ \t]*[=:][ \t]*(?=[^\s;&|])")
_OPTION = re.compile(r"(?<!\S)--?(?P<name>[A-Za-z_][\w.-]*)[ \t]+(?=[^\s;&|])")
_HINT = re.compile(
    r"(?i)pass|pwd|secret|token|credential|key|cookie|jwt|auth|signature|bearer|basic|hf_|sk-|gh[pousr]_|github_pat_"
    r"|glpat-|AKIA|ASIA|eyJ|ssh-|xox|AIza|ecdsa-|://[^/\s]*@|-[paw]\s"
)
# Programs that take a password after one letter: sshpass -p secret, mysql -psecret, redis-cli -a secret.
_ASKING = re.compile(
    r"((?:^|[\s;&|/(])(?:sshpass|mysql\w*|mariadb\w*|redis-cli|mongo\w*|ldap\w+|(?:docker|podman) login)\b"
    r"(?:[^\n;&|]{0,200}?\s)??-[paw]\s*)([^\s;&|-][^\s;&|]*)"
)
_ASKING_PROGRAM = re.compile(r"(?:.*/)?(sshpass|mysql\w*|mariadb\w*|redis-cli|mongo\w*|ldap\w+)$")
_PASS_OF = (
    "admin", "auth", "become", "database", "db", "docker", "ftp", "git", "key", "ldap", "login", "mail", "mongo",
    "mysql", "pg", "postgres", "proxy", "redis", "registry", "root", "smtp", "ssh", "sudo", "user",
)  # fmt: skip
# A name that ends so holds where it is, not what it is.
_PLACES = ("file", "path", "dir", "sock", "home", "url", "host", "port")


def secret_name(name: str) -> bool:
    """Whether a variable, option or key of this name holds a key, token, password or other secret."""
    if name in ("PWD", "OLDPWD"):
        return False  # the shell's working directories
    words = [w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", name)]
    if not words or words[-1] in _PLACES or name == "GOOGLE_APPLICATION_CREDENTIALS":
        return False
    return any(_secret_word(words, place) for place in range(len(words)))


def _secret_word(words: Sequence[str], place: int) -> bool:
    word, before, after = words[place], words[place - 1] if place else "", list(words[place + 1 :])
    if word == "token":
        return before not in _TEXT_TOKENS and after in ([], ["value"], ["id"], ["secret"])
    if word == "tokens":
        return before in ("access", "api", "auth", "secret")
    if word == "pass":  # also what a compiler does once over a graph
        return (before in _PASS_OF or len(words) == 1) and not after
    if word in ("key", "keys", "auth", "signature", "pwd"):
        return after in ([], ["id"], ["value"], ["secret"])
    return word in _SECRET_WORDS


def redact_value(name: str, value: str) -> str:
    """The value of a variable as it may be kept."""
    if value and secret_name(name) and not _harmless(value):
        return REDACTED
    return redact_text(value)


def _harmless(value: str) -> bool:
    """A reference to another variable, or nothing."""
    return not value.strip("\"'") or bool(re.match(r"[\"']?\$[\w{(]", value)) or value.strip('"') == REDACTED


def redact_words(text: str, mark: str = REDACTED) -> str:
    """`text` without what is a secret by its shape: tokens, private keys, passwords in URLs."""
    text = _PRIVATE_KEY.sub(mark, text)
    text = _LOGIN.sub(lambda m: m.group(1) + ":" + mark + "@", text)
    text = _BEARER.sub(lambda m: m.group(1) + " " + mark, text)
    return _SHAPES.sub(mark, text)


def redact_text(text: str) -> str:
    """One argument or value: the values of secret names and everything of a secret's shape go."""
    return _redacted_text(text, REDACTED, REDACTED)


def redact_script(text: str) -> str:
    """A script or env file: as `redact_text`, in such a way that a shell still reads it as it was.

    A value that goes becomes a quoted word; within a word, where quotes could be misread, "redacted" stands bare.
    """
    return _redacted_text(text, '"' + REDACTED + '"', REDACTED.strip("<>"))


def _redacted_text(text: str, value: str, within: str) -> str:
    if not _HINT.search(text):
        return text
    text = _redact_named(_OPTION, _redact_named(_ASSIGNED, text, value), value)
    text = _ASKING.sub(lambda m: m.group(1) + value, text)
    return redact_words(text, within)


def _redact_named(pattern: Any, text: str, mark: str) -> str:
    """`text` with `mark` for the values that follow the names of secrets."""
    kept, at = [], 0
    for found in pattern.finditer(text):
        if found.start() >= at and secret_name(found.group("name")):
            value = _VALUE.match(text, found.end())
            if value is not None and not _harmless(value.group()):
                kept += [text[at : found.end()], mark]
                at = value.end()
    return "".join(kept) + text[at:]


def redact_argv(argv: Sequence[str]) -> List[str]:
    """The words of a command line as they may be kept: `--token x`, `--password=x`, `-p secret`, `KEY=x`, URLs."""
    kept = []  # type: List[str]
    asking = any(_ASKING_PROGRAM.match(word) for word in argv[:3])
    for place, word in enumerate(argv):
        kept.append(_redacted_word(word, argv[place - 1] if place else "", asking))
    return kept


def _redacted_word(word: str, before: str, asking: bool) -> str:
    option = before.startswith("--") and "=" not in before and secret_name(before[2:])
    letter = before in ("-p", "-pw", "-a", "-w") if asking else before in ("-p", "-pw")
    if option and not word.startswith("-"):
        return REDACTED
    if letter and not word.startswith("-") and (asking or not re.match(r"[/.]|[0-9:]+$", word)):
        return REDACTED
    if asking and re.match(r"-[paw][^=]", word):
        return word[:2] + REDACTED
    if before in ("-u", "--user") and ":" in word:
        return word.split(":", 1)[0] + ":" + REDACTED
    name, mark, value = word.partition("=")
    if mark and re.match(r"-{0,2}[A-Za-z_][\w.-]*$", name):
        return name + "=" + redact_value(name.lstrip("-"), value)
    return redact_text(word)


# What is kept of the environment of a process that was not named: what a training job is tuned by, nothing private.
JOB_VARIABLE = re.compile(
    r"(ACL|ASCEND|ATB|COMBINED|CPU_AFFINITY|DEVICE_|DISABLE_|DUMP_|DYNAMIC|GE_|HCCL|HOST_|HOSTAPI|INDUCTOR|INF_NAN|JOB_ID"
    r"|LOCAL_|MASTER_|MULTI_STREAM|NPU|OMP_|OOM|P2P_HCCL|PERF_DUMP|PER_STREAM|PROFILING|PTCOPY|PYTORCH|RANK|RESUME"
    r"|SCALAR|STREAMS|SWITCH|TASK_QUEUE|TBE|TE_|TOOLCHAIN|TORCH|TRI_COMBINED|WORLD_SIZE|\w*HCCL"
    r"|(?:GROUP_RANK|LD_LIBRARY_PATH|LD_PRELOAD|NODE_RANK|PATH|PYTHONHOME|PYTHONPATH)=)"
)


def redact_file(path: str, data: bytes, job: Optional[int] = None) -> bytes:
    """The content of a file as it may be kept; `job` is the process that was named by --pid."""
    of_process = re.match(r"/proc/([0-9]+)/(environ|cmdline)$", path)
    if of_process:
        rows = data.decode("utf-8", "surrogateescape").split("\0")
        if of_process.group(2) == "environ":
            named = of_process.group(1) == str(job)
            words = [redact_argv([row])[0] for row in rows if named or not row or JOB_VARIABLE.match(row)]
        else:
            words = redact_argv(rows)
        return "\0".join(words).encode("utf-8", "surrogateescape")
    if path.startswith(KERNEL_TREES) and path != "/proc/cmdline":
        return data
    try:
        return redact_script(data.decode("utf-8")).encode("utf-8")
    except UnicodeDecodeError:
        return data


# ---------------------------------------------------------------------------------------------------- snapshot


def take(
    target: Mapping[str, Any],
    machine: Optional[Any] = None,
    environ: Optional[Mapping[str, str]] = None,
    more: Optional[Callable[[Any], None]] = None,
) -> Dict[str, Any]:
    """The whole snapshot as one mapping (docs/snapshot.md). `target`: python, pid, script, env_file.

    `more` may read further things through the recorder.
    """
    import time

    machine = Machine() if machine is None else machine
    recorder = Recorder(machine, target, environ)
    identity = recorder.identity
    record_job(recorder)
    if more is not None:
        more(recorder)
    record_tables(recorder)
    record_cpufreq(recorder)
    record_output(recorder)
    record_system(recorder)
    record_npu(recorder)
    record_cann(recorder)
    _quietly(record_network, recorder)
    named, pid = target.get("python") or "", target.get("pid")
    _quietly(record_python, recorder, recorder.variables, recorder.cwd, recorder.uname["machine"], named, pid)
    snapshot = {
        "schema": SCHEMA,
        "host": identity["uname"]["nodename"],
        "taken": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(identity["now"])),
        "collector": COLLECTOR,
        "environ": {clean(k): clean(redact_value(k, v)) for k, v in recorder.environ.items()},
        "target": {key: value for key, value in target.items() if value is not None},
        "covered": recorder.covered,
        "files": kept_files(recorder.files),
    }  # type: Dict[str, Any]
    snapshot.update(identity)
    if recorder.commands:
        snapshot["commands"] = [dict(row) for row in recorder.commands.values()]
    snapshot.update(machine.tables())
    if isinstance(snapshot.get("processes"), list):
        listed = recorder.commands.get(("npu-smi", "info"), {}).get("stdout", "")
        snapshot["processes"] = kept_processes(snapshot["processes"], pid, listed)
    return snapshot


def kept_files(files: Mapping[str, Any]) -> Dict[str, Any]:
    """The entries that say something: a directory that is known by what it holds needs none of its own."""
    parents = {os.path.dirname(path) for path, entry in files.items() if entry is not None}
    gone = {"dir": None}
    return {path: files[path] for path in sorted(files) if files[path] != gone or path not in parents}


# Whose arguments and start are kept; of other processes checks need to know only that they are there, and as what.
JOB_PROCESS = re.compile(
    r"(?i)python|msprof|aoe|mpirun|orted|torchrun|deepspeed|accelerate|hccl|npu|ascend|davinci|\bray"
)


def kept_processes(rows: Sequence[Mapping[str, Any]], named: Optional[int], listed: str) -> List[Dict[str, Any]]:
    """Every process but the kernel's own threads; arguments, without secrets, only of those that may be a job's.

    `listed` is what npu-smi printed: a number in it may be the pid of a process whose descriptors cannot be read.
    """
    told = set(re.findall(r"[0-9]+", listed)) | {str(named)}
    kept = []
    for row in sorted(rows, key=lambda one: int(one["pid"])):
        argv = row.get("argv") or ()
        if 2 in (row["pid"], row.get("ppid")) and not argv:
            continue
        entry = {key: row[key] for key in ("pid", "ppid", "name", "user") if key in row}
        words = [str(row.get("name", ""))] + list(argv[:2])
        if row.get("devices") or str(row["pid"]) in told or any(JOB_PROCESS.search(word) for word in words):
            entry.update(row)
            entry["argv"] = redact_argv(argv)
        elif row.get("opaque"):
            entry["opaque"] = True
        kept.append(entry)
    return kept


MEMBERS = ("files", "commands", "processes", "listeners", "interfaces", "disks")


def pack(snapshot: Mapping[str, Any]) -> bytes:
    """The snapshot as a tar.gz: manifest.json and one JSON file per table. The same snapshot gives the same bytes."""
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


def main(arguments: Sequence[str]) -> int:
    """Write a snapshot of this host to standard output, or to the file of -o."""
    import argparse
    import sys

    parser = argparse.ArgumentParser(
        prog="collector.py",
        description="Record this host for envtune: what is read is what envtune's checks look at, without secrets. "
        "Changes nothing, needs no root and nothing installed.",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE (not to standard output)")
    parser.add_argument("--python", metavar="PATH", help="the job's Python")
    parser.add_argument("--pid", type=int, metavar="N", help="a running job")
    parser.add_argument("--script", metavar="FILE", help="the job's launch script")
    parser.add_argument("--env-file", metavar="FILE", help="the job's variables, KEY=VALUE lines")
    parser.add_argument("--root", metavar="DIR", default="", help="record the files below DIR, as if it were /")
    options = parser.parse_args(list(arguments))
    if options.output == "-":
        options.output = None
    if options.output is None and sys.stdout.isatty():
        sys.stderr.write("collector.py: a snapshot is a tar.gz, not for a terminal: add -o FILE or > FILE\n")
        return 2
    target = {
        "python": options.python,
        "pid": options.pid,
        "script": options.script and os.path.abspath(options.script),
        "env_file": options.env_file and os.path.abspath(options.env_file),
    }
    data = pack(take(target, Machine(os.path.abspath(options.root) if options.root else "")))
    try:
        if options.output is None:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        else:
            write_new(options.output, data)
    except OSError as error:
        sys.stderr.write("collector.py: %s: %s\n" % (options.output or "standard output", error.strerror or error))
        return 2
    return 0


def write_new(path: str, data: bytes, replace: bool = False) -> None:
    """Write `data` to `path` for its owner only, all or nothing; raises OSError, FileExistsError when it is there."""
    temporary = "%s.%d.tmp" % (path, os.getpid())
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            os.replace(temporary, path)
        else:
            _place(temporary, path)
    finally:
        try:
            os.unlink(temporary)
        except FileNotFoundError:
            pass


def _place(temporary: str, path: str) -> None:
    """Give the file its name, unless something has that name already."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        if os.path.lexists(path):  # a file system without hard links
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        os.rename(temporary, path)


if __name__ == "__main__":
    import sys

    sys.exit(main(sys.argv[1:]))
