"""What envtune never does, whoever asks: every operation that an action proposes is checked here.

The porting guide tells people to kill every Python, to empty /tmp, to restart servers, to stop firewalls and to replace
files of the operator library by hand. Such steps are at most printed for a person. The rule is a closed list: only
programs named here are run, with the options and variables named here, and not with words that destroy more than the
change is about. The path of a program is not decided here but by the code that starts it.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any, Iterator, Mapping, Optional, Sequence

from envtune.fix.policy.firewall import firewall_violation, foreign_files, missing_position_guard
from envtune.messages import Message, Text
from envtune.records import expression

# program -> words it must not be given (a whole word of its command line; a regular expression)
_PACKAGE_WORDS = "upgrade|dist-upgrade|full-upgrade|distro-sync|autoremove|purge|update-minimal|dup|up|update|clean"
_POWER = "reboot|poweroff|halt|kexec|soft-reboot|isolate|rescue|emergency|default|suspend|hibernate|hybrid-sleep|kill"
PROGRAMS: Mapping[str, str] = {
    "python": "",
    "apt-get": _PACKAGE_WORDS.replace("|update|", "|"),  # `apt-get update` only reads the package lists
    "yum": _PACKAGE_WORDS,
    "dnf": _PACKAGE_WORDS,
    "zypper": _PACKAGE_WORDS + "|remove-repo|rr",
    "dpkg": "-i|--install|-r|--remove|-P|--purge|--force-.*",
    "dpkg-query": "",
    "rpm": "-[a-zA-Z]*[ieUF][a-zA-Z]*|--(install|erase|upgrade|freshen|force|nodeps)",
    "systemctl": _POWER,
    "tuned-adm": "off",
    "nft": "flush|destroy|reset|delete table|delete chain|-f",
    "iptables": "-[FPXE]|--(flush|policy|delete-chain|rename-chain)",
    "firewall-cmd": "--(complete-)?reload|--runtime-to-permanent|--panic-on|--set-.*|--reset-to-defaults|--lockdown-on",
    "ufw": "disable|reset|default|reload|--force-reset",
    "test": "",
    "cat": "",
}
# program -> the options it may be given; firewall rules have separate forms
OPTIONS: Mapping[str, str] = {
    "apt-get": "-y|-q|-s|--no-install-recommends|--no-remove|-o",
    "yum": "-y|-q",
    "dnf": "-y|-q",
    "zypper": "--non-interactive|--no-recommends",
    "dpkg": "--audit",
    "dpkg-query": "-W|-f=.*",
    "rpm": "-q|-qa|--whatprovides|--qf",
    "systemctl": "--quiet|--no-pager",
    "tuned-adm": "",
    "test": "-[a-z]",
    "cat": "",
}
_APT_SETTING = "DPkg::Lock::Timeout=[0-9]+"
_PYTHON_OPTIONS = "-[IPsEB]+"
_PIP_WORDS = ("install", "uninstall", "download", "wheel", "check", "list", "show")
# option of pip -> allowed values; the empty text if it takes none
_PIP_OPTIONS: Mapping[str, str] = {
    **dict.fromkeys(("--no-deps", "--no-cache-dir", "--force-reinstall", "--user", "--no-index"), ""),
    **dict.fromkeys(("--use-pep517", "--no-build-isolation", "--require-hashes", "--no-input", "-y"), ""),
    "--find-links": r"(\{work\}|/).*",
    "--only-binary": ":all:|[A-Za-z0-9._-]+",
    "--no-binary": "[A-Za-z0-9._-]+",
    **dict.fromkeys(("--dest", "--wheel-dir"), r"\{work\}/[A-Za-z0-9_-]+"),
    **dict.fromkeys(("--report", "-r", "--requirement"), r"\{work\}/[A-Za-z0-9._-]+"),
}
# A distribution with a version (PEP 508, without `@ URL`), or a wheel by its path.
_REQUIREMENT = r"[A-Za-z0-9][A-Za-z0-9._-]*(==[A-Za-z0-9.*+!_-]+)?|(\{work\})?/.*[.](whl|tar[.]gz|zip)"
_SYSTEM_PATH = "(/usr(/local)?)?/s?bin(:(/usr(/local)?)?/s?bin)*"
_PYTHON_ENVIRONMENT: Mapping[str, str] = {
    **dict.fromkeys(("PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT"), ""),
    **dict.fromkeys(("PYTHONNOUSERSITE", "PYTHONSAFEPATH", "PIP_USER", "PIP_NO_INPUT"), "[01]?"),
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PYTHONUSERBASE": "/.*",
    "TMPDIR": r"\{work\}/tmp",
    "CC": "[A-Za-z0-9_/.+ -]+ -mavx2",
    "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
}
_PACKAGE_ENVIRONMENT = {"DEBIAN_FRONTEND": "noninteractive", "NEEDRESTART_SUSPEND": "1"}
# program -> the variables it may be given, and their values
ENVIRONMENT: Mapping[str, Mapping[str, str]] = {
    "python": _PYTHON_ENVIRONMENT,
    "apt-get": _PACKAGE_ENVIRONMENT,
    **{program: {"PATH": _SYSTEM_PATH} for program in ("nft", "iptables", "ufw", "firewall-cmd")},
}
_SAME_AS: Mapping[str, str] = {
    **dict.fromkeys(("ip6tables", "iptables-legacy", "ip6tables-legacy", "iptables-nft", "ip6tables-nft"), "iptables"),
    "firewall-offline-cmd": "firewall-cmd",
}
# Packages are removed only to undo the command that added them, and only those it added (executor: `census`).
_EXACT_WAYS_BACK = (["dpkg", "--remove", "{new}"], ["rpm", "-e", "{new}"])
_FIREWALLS = expression(
    "(firewalld|ufw|nftables|iptables|ip6tables|shorewall6?|ferm|netfilter-persistent)([.]service)?"
)
_STOPPING = {"stop", "disable", "mask", "--now", "restart", "try-restart", "reload-or-restart"}
_FIRMWARE = expression(
    "(ascend|npu|hdk|hiai|davinci|atlas).*(driver|firmware)|ascend.*[.]run$|(driver|firmware).*[.]run$", re.I
)
_PREFIX = expression("(--?)?prefix=?(/usr|/usr/local)?/*")
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
    """Why envtune does not carry out this operation; None if it may. The form has been validated before."""
    kind = operation["op"]
    if kind == "file":
        return _file_refusal(operation)
    found = next((no for argv in _commands(operation) if (no := _command_refusal(argv, operation))), None)
    found = found or _environment_refusal(operation)
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
        return Message("envtune does not run shells ({argv})", argv=argv[0])
    if name not in PROGRAMS:
        return Message("{name} is not one of the programs that envtune runs", name=name)
    words = [word for part in argv[1:] for word in ([part] if name == "python" else part.split())]
    found = _word_refusal(name, words)
    if found is not None or name == "python":
        return found or _python_refusal(words)
    return _option_refusal(name, argv[1:]) or firewall_violation(name, argv)


def _word_refusal(name: str, words: Sequence[str]) -> Optional[Text]:
    if any(_FIRMWARE.search(word) for word in words):
        return Message("envtune does not install drivers or firmware")
    if _default_prefix(words):
        return Message("envtune does not install into /usr or /usr/local")
    if name == "systemctl" and _STOPPING & set(words) and any(_FIREWALLS.fullmatch(word) for word in words):
        return Message("envtune does not stop firewalls")
    wrong = _forbidden(PROGRAMS[name], words)
    return Message("envtune does not run {name} {wrong}", name=name, wrong=wrong) if wrong else None


def _option_refusal(name: str, words: Sequence[str]) -> Optional[Text]:
    """Refuse options that no action uses: many of them run another program (`apt-get -o`, `-c`)."""
    if name not in OPTIONS:
        return None
    for word, following in zip(words, [*words[1:], ""]):
        known = re.fullmatch(OPTIONS[name], word) or not word.startswith("-")
        if not known or (word == "-o" and not re.fullmatch(_APT_SETTING, following)):
            option = f"{word} {following}" if known else word
            return Message("envtune does not use the option {option} of {name}", name=name, option=option)
    return None


def _environment_refusal(operation: Mapping[str, Any]) -> Optional[Text]:
    """Refuse variables that no action sets: PYTHONPATH, LD_PRELOAD and the like load other code."""
    program = "python" if operation["op"] == "swap" else _program(operation.get("argv", ("",))[0])
    known = ENVIRONMENT.get(program, {})
    for name, value in operation.get("env", {}).items():
        if name not in known or not re.fullmatch(known[name], value):
            return Message(
                "envtune does not start {program} with {name}={value}", program=program, name=name, value=value
            )
    return None


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
    """Python may run modules that install, or a line that imports; never a script, whose content no plan shows."""
    for number, word in enumerate(words):
        following = words[number + 1] if number + 1 < len(words) else ""
        if word == "-m":
            if following == "pip":
                return _pip_refusal(words[number + 2 :])
            return Message("envtune does not run python -m {module}", module=following)
        if word == "-c":
            return _code_refusal(following)
        if not word.startswith("-"):
            return Message("envtune does not run Python scripts ({word})", word=word)
        if not re.fullmatch(_PYTHON_OPTIONS, word):
            return Message("envtune does not use the option {option} of {name}", name="python", option=word)
    return None


def _pip_refusal(words: Sequence[str]) -> Optional[Text]:
    """Refuse what would redirect pip (--target, --python, --index-url) or make it install from a URL."""
    if words[:1] == ["--version"]:
        return None
    if not words or words[0] not in _PIP_WORDS:
        return Message("envtune does not run {name} {wrong}", name="pip", wrong=" ".join(words[:1]))
    rest = iter(words[1:])
    for word in rest:
        if not word.startswith("-"):
            if not re.fullmatch(_REQUIREMENT, word):
                return Message("envtune does not let pip install {requirement}", requirement=word)
            continue
        form = _PIP_OPTIONS.get(word)
        value = next(rest, "") if form else ""
        if form is None or not re.fullmatch(form, value):
            option = f"{word} {value}".rstrip()
            return Message("envtune does not use the option {option} of {name}", name="pip", option=option)
    return None


def _code_refusal(code: str) -> Optional[Text]:
    """Refuse code for the job's Python other than imports and the one line that verifies Pillow."""
    from envtune.resources.images.install_pillow import SMOKE

    if code == SMOKE or re.fullmatch(r"import [A-Za-z_][\w.]*(, [A-Za-z_][\w.]*)*", code):
        return None
    return Message("envtune does not run python -c {code}", code=code)


# ---------------------------------------------------------------------- files

_ACCOUNTS = Message("envtune does not change accounts, logins and mounts")
_STARTED = Message("envtune does not write there: the system runs its contents, as root or as the user who logs in")
# What every such path holds (one of these), so that few of the expressions are compiled for a path; the paths; why not.
_NO_WRITE: Sequence[tuple[tuple[str, ...], str, Text]] = (
    (
        ("bin/", "libexec/"),
        r"/(usr/(local/)?)?(s?bin|libexec)/.*",
        Message("envtune changes neither system programs nor the target of python3"),
    ),
    (
        (".py",),
        r".*/(opp|op_impl|tbe|fwkacllib|ascend-toolkit|opp_kernel)/.*[.]py",
        Message("envtune does not edit sources of the operator library"),
    ),
    (
        (".py",),
        r".*/(torch|torch_npu)/.*[.]py",
        Message("envtune shows what to change in an installed torch and does not edit it"),
    ),
    (
        (".",),
        r".*[.](py|pyc|pyi|pth|egg-link|so([.][0-9]+)*)|.*/pyvenv[.]cfg",
        Message("envtune does not write Python code or paths there"),
    ),
    (
        ("/boot/", "/dev/", "/sys/", "/proc/"),
        r"/(boot|dev|sys/power|sys/firmware)/.*|/sys/bus/.*|/sys/.*/(unbind|bind|remove|reset|rescan)|/proc/(?!sys/).*",
        Message("envtune does not change boot files, devices and buses"),
    ),
    (
        ("/proc/sys/", "/sys/"),
        r"/proc/sys/(kernel/(core_pattern|modprobe|hotplug|poweroff_cmd|usermodehelper/.*)|fs/binfmt_misc/.*)"
        r"|/sys/(kernel/(?!mm/).*|fs/.*|class/firmware/.*)|/sys/.*/(uevent_helper|release_agent|uevent)",
        Message("the kernel would execute what is written there"),
    ),
    (
        ("/etc/",),
        r"/etc/((passwd|shadow|group|gshadow|fstab|subuid|subgid)-?|sudoers([.]d/.*)?|ssh/.*|pam[.](d/.*|conf)|security/.*"
        r"|nsswitch[.]conf|login[.]defs|shells|exports|krb5[.]conf|sssd/.*|doas[.]conf|hosts[.]equiv)",
        _ACCOUNTS,
    ),
    (
        ("/.",),
        r".*/([.]ssh|[.]gnupg)/.*|.*/[.](rhosts|netrc|k5login)",
        _ACCOUNTS,
    ),
    (
        ("/etc/",),
        r"/etc/(cron.*|anacrontab|at[.].*|ld[.]so[.].*|profile|bash[.]?bashrc|bashrc|inputrc|zsh.*|csh[.].*|fish/.*|environment"
        r"|rc[0-9S.]?.*[.]d/.*|rc[.]local|init[.]d/.*|inittab|init/.*|udev/.*|polkit-1/.*|dbus-1/.*|modprobe[.]d/.*|modprobe[.]conf"
        r"|modules(-load[.]d/.*)?|binfmt[.]d/.*|apt/.*|dpkg/.*|yum(/.*|[.]conf|[.]repos[.]d/.*)|dnf/.*|zypp/.*|rpm/.*|pip[.]conf"
        r"|xdg/.*|alternatives/.*|NetworkManager/.*|network/.*|dhcp/.*|logrotate[.](d/.*|conf)|update-motd[.]d/.*|grub[.]d/.*"
        r"|default/.*|docker/.*|containerd/.*|kernel/.*|dracut[.].*|initramfs-tools/.*|firewalld/.*|ufw/.*|nftables[.]conf"
        r"|bash_completion([.]d/.*)?|skel/.*|X11/.*|environment[.]d/.*|rsyslog.*|x?inetd.*|networkd-dispatcher/.*|acpi/.*"
        r"|ppp/.*|sysconfig/.*|gitconfig|aliases|tuned/(?!(profiles/)?envtune/tuned[.]conf$).*)",
        _STARTED,
    ),
    (
        ("/etc/",),
        r"/etc/profile[.]d/(?!envtune[.]sh$).*|/etc/(tmpfiles|sysctl)[.]d/(?!([0-9]+-)?(zz-)?envtune[-_.a-z0-9]*$).*"
        r"|/etc/systemd/(?!system/envtune-governor[.]service$|[^/]+/[^/]+[.]d/([0-9]+-)?envtune[-_.a-z0-9]*$).*",
        _STARTED,
    ),
    (
        ("/lib", "share/", "/run/", "/var/"),
        r"/(usr/(local/)?)?lib(64|32)?/(systemd|udev|modprobe[.]d|modules.*|security|tmpfiles[.]d|sysctl[.]d|dracut|firewalld"
        r"|binfmt[.]d|environment[.]d|sysusers[.]d|kernel|pam[.]d|tuned)/.*|/usr/(local/)?share/(polkit-1|dbus-1|applications)/.*"
        r"|/usr/(local/)?share/bash-completion/.*|(/var)?/run/(?!user/).*|/var/(spool|lib/(dpkg|rpm|systemd|polkit-1|AccountsService|apt|cloud|docker))/.*",
        _STARTED,
    ),
    (
        ("/.",),
        r"(/root)?/[.](bash|z|c|tc|k)?(sh)?(rc|_profile|_login|_logout|_aliases|profile|login|logout|env|shenv|shrc)"
        r"|/root/[.](xinitrc|xprofile|inputrc|vimrc|pip/.*|gitconfig|config/(fish|systemd|pip|autostart|environment[.]d)/.*|local/bin/.*)",
        _STARTED,
    ),
)
# What actions write where nothing else may be written.
_MAY_WRITE = expression(".*/(site|dist)-packages/torchvision/transforms/functional[.]py")
# Keys of sysctl.d with which the kernel would start a program, or load code.
_SYSCTL_PROGRAMS = (
    rb"(?m)^[\s-]*(kernel[./](core_pattern|modprobe|hotplug|poweroff_cmd|usermodehelper)|fs[./]binfmt_misc)\b"
)


def _file_refusal(operation: Mapping[str, Any]) -> Optional[Text]:
    path, content = operation["path"], operation["content"]
    if content is None and re.match("(/var)?/tmp/", path):
        return Message("envtune does not remove anything below /tmp")
    if "/sysctl" in path and content is not None and _names_a_program(content):
        return Message("{path}: {reason}", path=path, reason=Message("the kernel would execute what is written there"))
    if _MAY_WRITE.fullmatch(path):
        return None
    for parts, pattern, reason in _NO_WRITE:
        if any(part in path for part in parts) and re.fullmatch(pattern, path, re.DOTALL):
            return Message("{path}: {reason}", path=path, reason=reason)
    return None


def _names_a_program(content: str) -> bool:
    import base64

    return re.search(_SYSCTL_PROGRAMS, base64.b64decode(content)) is not None


def _tree_refusal(path: str) -> Optional[Text]:
    """Refuse to replace a tree that is a directory of the system rather than a distribution's."""
    if len(path.split("/")) < 5 or re.match("/(usr/(local/)?)?s?bin/(python|pip)[0-9.]*$", path):
        return Message("{path}: envtune does not replace system directories", path=path)
    return None
