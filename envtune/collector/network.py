"""Listening sockets, their owners, and network interfaces, from /proc and the kernel."""

import os
from typing import Any, Dict, List, Sequence, Tuple

from .files import read_bytes


def listening_sockets() -> List[Dict[str, Any]]:
    """Return the listening TCP sockets of this network namespace: {address, port, inode}."""
    sockets = []
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
                sockets.append({"address": _address(address), "port": int(port, 16), "inode": int(fields[9])})
    return sockets


def _address(text: str) -> str:
    """Return the kernel's hexadecimal address (native-endian 32-bit words) as text."""
    import socket
    import struct

    words = [int(text[i : i + 8], 16) for i in range(0, len(text), 8)]
    packed = struct.pack("=%dI" % len(words), *words)
    return socket.inet_ntop(socket.AF_INET if len(words) == 1 else socket.AF_INET6, packed)


def socket_owners(inodes: Sequence[int]) -> Dict[int, Tuple[int, str]]:
    """Return {inode: (pid, process name)} for those of `inodes` whose owning process this user may read."""
    wanted = {"socket:[%d]" % i: i for i in inodes}
    owners: Dict[int, Tuple[int, str]] = {}
    for name in os.listdir("/proc") if wanted else ():
        if not name.isdecimal():
            continue
        try:
            for number in os.listdir("/proc/%s/fd" % name):
                inode = wanted.get(os.readlink("/proc/%s/fd/%s" % (name, number)))
                if inode is not None and inode not in owners:
                    comm = read_bytes("/proc/%s/comm" % name).decode("utf-8", "replace").strip()
                    owners[inode] = (int(name), comm)
        except OSError:
            continue
    return owners


def network_interfaces() -> List[Dict[str, Any]]:
    """Return [{name, addresses, up}] from the kernel by rtnetlink, which needs no privilege and no command."""
    import _socket as sockets  # importing `socket` costs twenty times as much, and every check reads the interfaces
    import struct

    names = dict(sockets.if_nameindex())
    rows: Dict[str, Dict[str, Any]] = {n: {"name": n, "addresses": [], "up": _is_up(n)} for n in names.values()}
    link = sockets.socket(sockets.AF_NETLINK, sockets.SOCK_RAW, 0)  # NETLINK_ROUTE
    try:
        link.settimeout(2.0)
        link.send(struct.pack("=LHHLL", 24, 22, 0x301, 1, 0) + struct.pack("=BBBBi", 0, 0, 0, 0, 0))
        while True:
            data = link.recv(1 << 16)
            while data:
                length, kind = struct.unpack_from("=LH", data)
                if kind == 3 or length < 16:  # NLMSG_DONE
                    return [rows[n] for n in sorted(rows)]
                if kind == 20:  # RTM_NEWADDR
                    family, _, _, _, index = struct.unpack_from("=BBBBi", data, 16)
                    address = _netlink_address(data[24:length], family)
                    if address and index in names:
                        rows[names[index]]["addresses"].append(address)
                data = data[(length + 3) & ~3 :]
    finally:
        link.close()


def _netlink_address(data: bytes, family: int) -> str:
    """Return IFA_LOCAL if present (point to point), else IFA_ADDRESS."""
    import _socket
    import struct

    best = ""
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if length < 4:
            break
        if kind == 2 or (kind == 1 and not best):
            best = _socket.inet_ntop(family, data[4:length])
        data = data[(length + 3) & ~3 :]
    return best


def _is_up(name: str) -> bool:
    try:
        return bool(int(read_bytes("/sys/class/net/%s/flags" % name), 16) & 1)
    except (OSError, ValueError):
        return True  # no /sys here; an interface with an address counts as up


def owned_listeners() -> List[Dict[str, Any]]:
    """Return `listening_sockets` with the owner of each instead of its inode."""
    rows = listening_sockets()
    owners = socket_owners([row["inode"] for row in rows])
    for row in rows:
        pid, process = owners.get(row.pop("inode"), (None, ""))
        if pid is not None:
            row.update(pid=pid, process=process)
    return rows
