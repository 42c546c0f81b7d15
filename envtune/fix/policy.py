"""What envtune never does, whoever asks: every operation of every plan, made here or loaded from a file, passes here.

The porting guide tells people to kill every Python, to empty /tmp, to restart servers, to stop firewalls and to replace
files of the operator library by hand. Such steps are printed for a person at most. The rule is a closed list: only
programs named here are run, and not with words that destroy more than the change is about.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any, Iterator, Mapping, Optional, Sequence

from envtune.fix.firewall_policy import firewall_violation, foreign_files, missing_position_guard
from envtune.messages import Message, Text

# program -> words it may not be given (a whole word of its command line; a regular expression)
_PACKAGE_WORDS = "upgrade|dist-upgrade|full-upgrade|distro-sync|autoremove|purge|update-minimal|dup|up|update|clean"
_POWER = "reboot|poweroff|halt|kexec|soft-reboot|isolate|rescue|emergency|default|suspend|hibernate|hybrid-sleep|kill"
PROGRAMS: Mapping[str, str] = {
    "python": "",
    "pip": "",
    "conda": "update|clean|env",
    "apt-get": _PACKAGE_WORDS.replace("|update|", "|"),  # `apt-get update` reads the lists of packages only
    "yum": _PACKAGE_WORDS,
    "dnf": _PACKAGE_WORDS,
    "zypper": _PACKAGE_WORDS + "|remove-repo|rr",
    "dpkg": "-i|--install|-r|--remove|-P|--purge|--force-.*",
    "dpkg-query": "",
    "rpm": "-[a-zA-Z]*[ieUF][a-zA-Z]*|--(install|erase|upgrade|freshen|force|nodeps)",
    "systemctl": _POWER,
    "sysctl": "--system|-p.*|--load.*",
    "cpupower": "",
    "tuned-adm": "off",
    "nft": "flush|destroy|reset|delete table|delete chain|-f",
    "iptables": "-[FPXE]|--(flush|policy|delete-chain|rename-chain)",
    "firewall-cmd": "--(complete-)?reload|--runtime-to-permanent|--panic-on|--set-.*|--reset-to-defaults|--lockdown-on",
    "ufw": "disable|reset|default|reload|--force-reset",
    "test": "",
    "grep": "-r|-R|--recursive",
    "cat": "",
    "cmp": "",
}
_SAME_AS: Mapping[str, str] = {
    **dict.fromkeys(("ip6tables", "iptables-legacy", "ip6tables-legacy", "iptables-nft", "ip6tables-nft"), "iptables"),
    **dict.fromkeys(("mamba", "micromamba"), "conda"),
    "firewall-offline-cmd": "firewall-cmd",
}
# Packages go only as the way back of the command that added them, and only those it added (executor: `census`).
_EXACT_WAYS_BACK = (["dpkg", "--remove", "{new}"], ["rpm", "-e", "{new}"])
_FIREWALLS = re.compile(
    "(firewalld|ufw|nftables|iptables|ip6tables|shorewall6?|ferm|netfilter-persistent)([.]service)?"
)
_STOPPING = {"stop", "disable", "mask", "--now", "restart", "try-restart", "reload-or-restart"}
_FIRMWARE = re.compile(
    "(ascend|npu|hdk|hiai|davinci|atlas).*(driver|firmware)|ascend.*[.]run$|(driver|firmware).*[.]run$", re.I
)
_PREFIX = re.compile("(--?)?prefix=?(/usr|/usr/local)?/*")
_SHELLS = {
    "sh",
    "bash",
    "dash",
    "zsh",
    "fish",
    "ksh",
    "env",
    "sudo",
    "su",
    "eval",
    "xargs",
    "perl",
    "ruby",
    "node",
    "awk",
}


def refusal(operation: Mapping[str, Any]) -> Optional[Text]:
    """Why envtune does not carry out this operation; None when it may. The shape has been judged before."""
    kind = operation["op"]
    if kind == "file":
        return _file_refusal(operation["path"], operation["content"] is None)
    found = next((no for argv in _commands(operation) if (no := _command_refusal(argv, operation))), None)
    if found is None and kind == "swap":
        trees = (posixpath.join(operation["root"], name) for name in operation["touches"])
        return next((no for path in trees if (no := _tree_refusal(path))), None)
    if found is None and kind == "run" and _program(operation["argv"][0]) in ("iptables", "nft"):
        return missing_position_guard(operation)
    return found or foreign_files(operation)


def _commands(operation: Mapping[str, Any]) -> Iterator[Sequence[str]]:
    yield from (*operation.get("prepare", ()), *operation.get("steps", ()), *operation.get("verify", ()))
    undo = operation.get("undo") or {}
    queries = (operation.get(name) or {} for name in ("check", "given", "census", "already"))
    more = (*queries, undo, undo.get("find") or {})
    for part in (operation, *more):
        if "argv" in part:
            yield part["argv"]


# ---------------------------------------------------------------------- commands


def _command_refusal(argv: Sequence[str], operation: Mapping[str, Any]) -> Optional[Text]:
    if list(argv) in _EXACT_WAYS_BACK and "census" in operation:
        return None
    name = _program(argv[0])
    if name in _SHELLS:
        return Message("envtune runs no shell ({argv})", argv=argv[0])
    if name not in PROGRAMS:
        return Message("{name} is not among the programs envtune runs", name=name)
    words = [word for part in argv[1:] for word in ([part] if name == "python" else part.split())]
    if any(_FIRMWARE.search(word) for word in words):
        return Message("envtune installs no driver and no firmware")
    if _default_prefix(words):
        return Message("envtune installs nothing over /usr or /usr/local")
    if name == "systemctl" and _STOPPING & set(words) and any(_FIREWALLS.fullmatch(word) for word in words):
        return Message("envtune stops no firewall")
    wrong = _forbidden(PROGRAMS[name], words)
    if wrong:
        return Message("envtune does not run {name} {wrong}", name=name, wrong=wrong)
    return _python_refusal(words) if name == "python" else firewall_violation(name, argv)


def _program(path: str) -> str:
    """`/opt/py37/bin/python3.7` as `python`, `ip6tables` as `iptables`."""
    name = posixpath.basename(path)
    name = re.sub("^(python|pip)[0-9.]*$", r"\1", name)
    return _SAME_AS.get(name, name)


def _forbidden(pattern: str, words: Sequence[str]) -> str:
    if not pattern:
        return ""
    joined = " ".join(words)
    found = re.search(f"(?:^| )({pattern})(?= |$)", joined)
    return found[1] if found else ""


def _default_prefix(words: Sequence[str]) -> bool:
    for word, following in zip(words, [*words[1:], ""]):
        found = _PREFIX.fullmatch(word)
        if found and (found[2] or re.fullmatch("(/usr|/usr/local)/*", following)):
            return True
    return False


def _python_refusal(words: Sequence[str]) -> Optional[Text]:
    """Python runs modules that install, or a line that imports; never a script, whose content no plan shows."""
    for number, word in enumerate(words):
        if word == "-m":
            module = words[number + 1] if number + 1 < len(words) else ""
            if module.partition(".")[0] in ("pip", "venv", "ensurepip", "compileall"):
                return None
            return Message("envtune does not run python -m {module}", module=module)
        if word == "-c":
            return _code_refusal(words[number + 1] if number + 1 < len(words) else "")
        if not word.startswith("-"):
            return Message("envtune runs no Python script ({word})", word=word)
    return None


def _code_refusal(code: str) -> Optional[Text]:
    """Refuse code for the job's Python other than imports and the one line that proves Pillow."""
    from envtune.resources.images.install_pillow import SMOKE

    if code == SMOKE or re.fullmatch(r"import [A-Za-z_][\w.]*(, [A-Za-z_][\w.]*)*", code):
        return None
    return Message("envtune does not run python -c {code}", code=code)


# ---------------------------------------------------------------------- files

_NO_WRITE: Sequence[tuple[str, Text]] = (
    (
        r"/(usr/(local/)?)?s?bin/.*",
        Message("envtune changes no program of the system, nor what python3 leads to"),
    ),
    (
        r".*/(opp|op_impl|tbe|fwkacllib|ascend-toolkit|opp_kernel)/.*[.]py",
        Message("envtune edits no source of the operator library"),
    ),
    (
        r".*/(torch|torch_npu)/.*[.]py",
        Message("envtune shows what to change in an installed torch and does not edit it"),
    ),
    (
        r"/(boot|dev|sys/power|sys/firmware)/.*|/sys/bus/.*|/sys/.*/(unbind|bind|remove|reset|rescan)|/proc/(?!sys/).*",
        Message("envtune does not touch boot files, devices and buses"),
    ),
    (
        r"/etc/((passwd|shadow|group|gshadow|fstab)-?|sudoers([.]d/.*)?|ssh/.*|pam[.]d/.*|ld[.]so[.]preload|crontab|cron[.].*)",
        Message("envtune does not touch accounts, logins and mounts"),
    ),
    (
        r".*/[.]ssh/.*",
        Message("envtune does not touch accounts, logins and mounts"),
    ),
)


def _file_refusal(path: str, removes: bool) -> Optional[Text]:
    if removes and re.match("(/var)?/tmp/", path):
        return Message("envtune removes nothing below /tmp")
    for pattern, reason in _NO_WRITE:
        if re.fullmatch(pattern, path):
            return Message("{path}: {reason}", path=path, reason=reason)
    return None


def _tree_refusal(path: str) -> Optional[Text]:
    """Refuse to replace a tree that is a directory of the system rather than a distribution's."""
    if len(path.split("/")) < 5 or re.match("/(usr/(local/)?)?s?bin/(python|pip)[0-9.]*$", path):
        return Message("{path}: envtune does not replace directories of the system", path=path)
    return None
