"""The reading end: reads files, runs commands, tables processes and sockets. Judges nothing, writes nothing.

Standard library only, Python 3.6 syntax, imports nothing of envtune: `python3 collector.py > host.tar.gz` (or the same
text on standard input of `python3 -`) writes a snapshot (`envtune.snapshot/1`, docs/snapshot.md) of a host on which
nothing is installed. `LocalHost` uses the same functions for a live audit, so that the two cannot drift apart.
It is one module above the usual size because it travels as one file.
"""

import errno
import os
import stat as stat_module
from typing import Any, Dict, List, Optional, Sequence, Tuple

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
