"""The calling user: for the journal and the host's log."""

import os

from ..common import Record


def current_caller() -> Record:
    """Return `uid` and, if known, `user` (its name), `login` (who logged in) and `sudo_user`."""
    uid = os.geteuid()
    names = {"user": _user_name(uid), "login": _login_name(), "sudo_user": os.environ.get("SUDO_USER", "")}
    caller: Record = {"uid": uid}
    caller.update({key: one_line(name, 64) for key, name in names.items() if name})
    return caller


def _user_name(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""


def _login_name() -> str:
    """Return the name for the audit system's login uid, which su and sudo do not change; empty for daemons."""
    try:
        with open("/proc/self/loginuid", encoding="ascii") as file:
            uid = int(file.read())
    except (OSError, ValueError):
        return ""
    return "" if uid == 0xFFFFFFFF else _user_name(uid) or str(uid)


def one_line(text: str, limit: int) -> str:
    """Return printable text of at most `limit` characters: text chosen by others must not forge lines or fields."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:limit])
