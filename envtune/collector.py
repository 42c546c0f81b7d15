"""The reading end: reads files, runs commands, tables processes and sockets. Judges nothing, writes nothing.

Standard library only, Python 3.6 syntax, imports nothing of envtune: `python3 collector.py > host.tar.gz` (or the same
text on standard input of `python3 -`) writes a snapshot (`envtune.snapshot/1`, docs/snapshot.md) of a host on which
nothing is installed. `LocalHost` uses the same functions for a live audit, so that the two cannot drift apart.
It is one module above the usual size because it travels as one file.
"""

import errno
import os
import re
import stat as stat_module
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
FILE_LIMIT = 4 * 1024 * 1024  # bytes of one file; version files, rule sets and /proc texts are far below
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


# ---------------------------------------------------------------------------------------------------- commands


def command_environment() -> Dict[str, str]:
    """The environment of every command: the C locale, system directories first, nothing that hijacks a loader."""
    env = {k: v for k, v in os.environ.items() if k not in HARMFUL_VARIABLES}
    env["LC_ALL"] = "C"
    env["PATH"] = SYSTEM_PATH
    return env


def run_command(argv: Sequence[str], timeout: float = 5.0, limit: int = OUTPUT_LIMIT) -> Dict[str, Any]:
    """Run `argv` in a process group of its own: {argv, rc, stdout, stderr} or {argv, error: missing|denied|timeout}.

    At the deadline the whole group is killed; a child that does not die of SIGKILL (state D) is left behind, not waited
    for.
    """
    import subprocess

    argv = list(argv)
    try:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=command_environment(),
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
        prefix, version = _installation(host, os.path.dirname(real), os.path.basename(real), home)
        sites = _user_site(variables, version) + _installation_sites(host, prefix, version)
        kind = "conda" if _kind(host, prefix + "/conda-meta") == "dir" else "system"
    else:
        kind = "venv"
        version = _venv_version(host, settings, prefix, real)
        sites = _libraries(host, prefix, version)
        if settings.get("include-system-site-packages", "").lower() == "true":
            base, _ = _installation(host, settings.get("home", ""), "python" + version, "")
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
    found: List[str] = []
    last = ""
    for line in [part.strip() for part in lines[1:]]:
        if not line or line.startswith("#"):
            continue
        last = line
        assignment = re.match(r"(?:export\s+|readonly\s+)?([A-Za-z_]\w*)=(\S.*|)$", line)
        if assignment:
            known[assignment.group(1)] = _expanded(assignment.group(2), known)
        elif re.match(r"exec\s+\S", line) and not re.match(r"exec\s+[0-9]*[<>]", line):
            found.append(_program(line[4:], known))
    if not found and re.search(r"\$(@|\{1\+)", last):
        found.append(_program(last, known))
    if len(set(found)) != 1 or not found[0]:
        raise Unresolved("wrapper", path, "; ".join(found))
    if "/" in found[0]:
        return os.path.normpath(os.path.join(cwd, found[0]))
    target = on_path(host, variables, cwd, found[0], [os.path.dirname(path)])
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
    return text.strip("\"'") if text[:1] == text[-1:] else text


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


def _installation(host: Any, folder: str, name: str, home: str) -> Tuple[str, str]:
    """(prefix, version) of the Python whose program lies in `folder`: the nearest directory with lib/pythonX.Y."""
    version = _version_by_name(name)
    place = home or folder
    while version and place.startswith("/"):
        if any(_kind(host, "%s/%s/python%s" % (place.rstrip("/"), lib, version)) == "dir" for lib in ("lib", "lib64")):
            return place, version
        if place == "/":
            break
        place = os.path.dirname(place)
    prefix = home or os.path.dirname(folder)
    if version:
        raise Unresolved("no-library", folder + "/" + name, "lib/python" + version)
    return prefix, _only_version(host, prefix, folder + "/" + name)


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
    stem, suffix = os.path.splitext(name)
    if suffix not in (".dist-info", ".egg-info", ".egg", ".egg-link"):
        return None
    if suffix == ".dist-info":
        title, _, version = stem.rpartition("-")
    else:
        title, _, rest = stem.partition("-")
        version = re.split(r"-py[0-9]", rest)[0]
    return normal_name(title or stem), version if title else ""


def normal_name(name: str) -> str:
    """A distribution's name as PEP 503 compares it: lower case, runs of `-`, `_` and `.` as one `-`."""
    return re.sub(r"[-_.]+", "-", name).lower()


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
