"""Which files are launch files, by name and content."""

from __future__ import annotations

import posixpath
import re
from typing import Optional

from envtune.job.language import SHELLS, foreign_language

SHELL, SLURM, DOCKERFILE, KUBERNETES, COMPOSE = "shell", "slurm", "dockerfile", "kubernetes", "compose"
KINDS = (SHELL, SLURM, DOCKERFILE, KUBERNETES, COMPOSE)
MAX_SIZE = 1 << 20  # bytes; a launch file is far smaller
_SHELL_NAMES = re.compile(r".+\.(?:sh|bash|ksh)", re.IGNORECASE)
_SLURM_NAMES = re.compile(r".+\.(?:sbatch|slurm)", re.IGNORECASE)
_DOCKERFILE_NAMES = re.compile(
    r"(?:Dockerfile|Containerfile)(?:[.-].+)?|.+\.(?:Dockerfile|Containerfile)", re.IGNORECASE
)
_YAML_NAMES = re.compile(r".+\.(?:ya?ml|json)", re.IGNORECASE)
_COMPOSE_NAMES = re.compile(r"(?:docker-)?compose(?:[.-].+)?\.ya?ml", re.IGNORECASE)
_SHEBANG = re.compile(r"#!\s*\S*?(?:/env\s+(?:-\S+\s+)*)?([^/\s]+)(?:\s|$)")
_SBATCH = re.compile(r"^#SBATCH\s", re.MULTILINE)
_OBJECT = re.compile(r"^[\"']?(?:apiVersion|kind)[\"']?[ \t]*:", re.MULTILINE)
_JSON_OBJECT = re.compile(r"\"(?:apiVersion|kind)\"\s*:")
_SERVICES = re.compile(r"^[\"']?services[\"']?[ \t]*:", re.MULTILINE)
_FROM = re.compile(r"\A\ufeff?(?:[ \t]*(?:#[^\n]*)?\n|[ \t]*ARG[ \t][^\n]*\n)*[ \t]*FROM[ \t]+\S", re.IGNORECASE)


def is_candidate(path: str) -> bool:
    """Return whether a file in a directory may be a launch file, by its name: one without a suffix may be a script."""
    name = posixpath.basename(path)
    named = (_SHELL_NAMES, _SLURM_NAMES, _DOCKERFILE_NAMES, _YAML_NAMES)
    return "." not in name or any(pattern.fullmatch(name) for pattern in named)


def kind_of(path: str, text: str, named: bool = False) -> Optional[str]:
    """Return the kind of a launch file, None for any other file.

    `named`: the user named it, so the content decides if the name does not tell.
    """
    name = posixpath.basename(path)
    if _YAML_NAMES.fullmatch(name):
        pattern = _JSON_OBJECT if name.lower().endswith("json") else _OBJECT
        if pattern.search(text) is not None:
            return KUBERNETES
        return COMPOSE if (named or _COMPOSE_NAMES.fullmatch(name)) and _SERVICES.search(text) is not None else None
    if _DOCKERFILE_NAMES.fullmatch(name) and not name.lower().endswith((".md", ".py", ".sh", ".dockerignore")):
        return DOCKERFILE
    if _SLURM_NAMES.fullmatch(name) or (_is_shell(name, text) and _SBATCH.search(text)):
        return SLURM
    if _is_shell(name, text):
        return SHELL if foreign_language(path, text) is None else None
    return _by_content(path, text) if named else None


def _is_shell(name: str, text: str) -> bool:
    if _SHELL_NAMES.fullmatch(name):
        return True
    shebang = _SHEBANG.match(text[:200])
    return shebang is not None and shebang[1] in SHELLS


def _by_content(path: str, text: str) -> Optional[str]:
    if _FROM.match(text):
        return DOCKERFILE
    if _OBJECT.search(text) or (text.lstrip("\ufeff \t\r\n").startswith("{") and _JSON_OBJECT.search(text)):
        return KUBERNETES
    return SHELL if foreign_language(path, text) is None else None
