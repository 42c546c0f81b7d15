"""The environment of every command: built from what is allowed, instead of removing what is known to be harmful."""

import os
import re
from typing import Dict, Mapping, Optional

from .interpreters import is_python, library_directories
from .ownership import who_can_change
from .programs import SYSTEM_PATH, UntrustedError, resolve_program, trusted_path

# From the caller: how pip and package managers reach the network.
_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")
# From the caller, if nobody else can change what they name.
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
# Slurm's programs load the plugins named in their configuration; also from the caller.
_SLURM_TOOLS, _SLURM = ("sinfo", "squeue", "scontrol"), "SLURM_CONF"
# From an operation, with the allowed values; any variable may be set to the empty string.
_WORD = "[A-Za-z0-9._-]*"
_OPERATION_VARIABLES = {
    "DEBIAN_FRONTEND": _WORD,
    "NEEDRESTART_SUSPEND": _WORD,
    "PIP_DISABLE_PIP_VERSION_CHECK": _WORD,
    "PIP_NO_INPUT": _WORD,
    "PIP_USER": _WORD,
    "PYTHONNOUSERSITE": _WORD,
    "PYTHONUSERBASE": "/.*",
    "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
    "TMPDIR": "/.*",
    "CC": ".*",
}
_COMPILER_OPTION = re.compile("-(m[a-z0-9.=+-]+|O[0-3s]|g|pipe)$")
# In a container npu-smi finds its libraries only by LD_LIBRARY_PATH; those of the driver, whatever the caller's value.
_DRIVER_TOOLS = ("npu-smi", "hccn_tool", "msnpureport", "ascend-dmi")
_DRIVER_LIBRARIES = tuple("/usr/local/Ascend/driver/lib64" + name for name in ("", "/common", "/driver"))


class VariableError(ValueError):
    """A variable that an operation may not set, or not to that value."""

    def __init__(self, name: str) -> None:
        super().__init__("an operation may not set %s so" % name)
        self.name = name


def command_environment(program: str, extra: Optional[Mapping[str, str]] = None) -> Dict[str, str]:
    """Return the environment of a program, with the variables that an operation sets for it.

    Raises VariableError for one it may not set, UntrustedError if it refers to what others can change.
    """
    # Python reads .pth files in the locale's encoding, even in UTF-8 mode; a path in them may be in any language.
    locale = "C.UTF-8" if is_python(program) else "C"
    variables = {"PATH": trusted_path(), "LC_ALL": locale, "HOME": _home_directory(), "PYTHONNOUSERSITE": "1"}
    for name in _PROXIES:
        variables.update((n, os.environ[n]) for n in (name, name.upper()) if n in os.environ)
    for name in (*_CERTIFICATES, *((_SLURM,) if os.path.basename(program) in _SLURM_TOOLS else ())):
        if _is_own(os.environ.get(name, "")):
            variables[name] = os.environ[name]
    if os.path.basename(program) in _DRIVER_TOOLS:
        variables["LD_LIBRARY_PATH"] = ":".join(filter(_is_own, _DRIVER_LIBRARIES))
    elif is_python(program):
        variables["LD_LIBRARY_PATH"] = ":".join(filter(_is_own, library_directories(program)))
    for name, value in (extra or {}).items():
        if (name, value) != ("PATH", SYSTEM_PATH):  # as named by firewall.allow
            _require_allowed(name, value)
            variables[name] = value
    return {name: value for name, value in variables.items() if value or name.startswith("PIP_")}


def _require_allowed(name: str, value: str) -> None:
    if value and re.match(_OPERATION_VARIABLES.get(name, "$") + "$", value) is None:
        raise VariableError(name)
    if name == "CC":
        for word in value.split():
            if not word.startswith("-"):
                resolve_program(word)
            elif _COMPILER_OPTION.match(word) is None:
                raise VariableError(name)
    elif value.startswith("/"):
        exposure = who_can_change(value) if os.path.lexists(value) else None
        if exposure is not None:
            raise UntrustedError(value, exposure)


def _home_directory() -> str:
    """Return the caller's HOME; for root, to whom sudo may pass a user's, the one in passwd(5).

    It is not accessed: a home directory may be on a mount that does not answer.
    """
    if os.geteuid() != 0 and os.environ.get("HOME", "").startswith("/"):
        return os.environ["HOME"]
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return "/"


def _is_own(path: str) -> bool:
    try:
        return path.startswith("/") and who_can_change(path) is None
    except OSError:
        return False
