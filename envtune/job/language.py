"""The language of a file: sh and bash, or something else that a line of shell would break.

The `#!` line decides, as it does for the kernel; without one the content, then the name. Nothing is executed.
"""

from __future__ import annotations

import json
import posixpath
import re
from typing import Optional

SHELLS = ("sh", "bash", "dash", "ash", "ksh", "ksh93", "mksh", "zsh", "busybox", "rbash")
_PROGRAMS = {"tcsh": "csh", "node": "JavaScript", "perl": "Perl", "ruby": "Ruby", "pwsh": "PowerShell"}
_ENDINGS = {
    **dict.fromkeys((".csh", ".tcsh", ".cshrc", ".login"), "csh"),
    ".fish": "fish",
    **dict.fromkeys((".py", ".pyw"), "python"),
    **dict.fromkeys((".yaml", ".yml"), "YAML"),
    **dict.fromkeys((".json", ".ipynb"), "JSON"),
    ".pl": "Perl",
    ".rb": "Ruby",
    ".ps1": "PowerShell",
    ".bat": "cmd.exe",
    ".cmd": "cmd.exe",
    ".toml": "TOML",
    ".ini": "an INI file",
    ".service": "systemd",
    ".conf": "a configuration file",
    ".lua": "Lua",
    **dict.fromkeys((".mk", ".mak", ".make"), "make"),
    **dict.fromkeys((".md", ".rst", ".adoc"), "a document"),
    **dict.fromkeys((".c", ".cc", ".cpp", ".h"), "C"),
    **dict.fromkeys((".sql", ".html", ".xml", ".tex", ".java", ".go", ".rs"), "no shell"),
    ".js": "JavaScript",
}
_OF_A_SHELL = re.compile(r"(?m)^[ \t]*(?:(?:export|unset|source|[.])[ \t]+\S|(?:fi|done|esac)\b|\w+=)")
# What no shell script has at the beginning of a line, by language.
_TELLTALES = (
    ("csh", re.compile(r"(?m)^[ \t]*(?:un)?setenv[ \t]+\w+|^[ \t]*set[ \t]+\w+[ \t]*=")),
    ("fish", re.compile(r"(?m)^[ \t]*set[ \t]+(?:-[gxUL]+|--(?:export|global|universal))[ \t]")),
    (
        "python",
        re.compile(r"(?m)^(?:from[ \t]+[\w.]+[ \t]+import[ \t]|import[ \t]+[\w.]+[ \t]*(?:$|#|,|as[ \t])|os\.environ)"),
    ),
    (
        "make",
        re.compile(r"(?m)^(?![ \t#])[^\n=(){}\"'$]{1,200}:(?![:=])[^\n=]{0,1000}\n(?:[ \t]*\n)?\t\S|^\.PHONY[ \t]*:"),
    ),
    ("YAML", re.compile(r"\A(?:[ \t]*(?:#.*)?\n)*(?:---[ \t]*$|(?:apiVersion|version|services|kind)[ \t]*:)", re.M)),
)
# A sh script whose first command starts the interpreter for the rest of the file.
_POLYGLOTS = (
    ("JavaScript", re.compile(r"(['\"]):\1[ \t]*//")),
    ("python", re.compile(r"(?:''''?|\"{3}|['\"])(?:exec|which|:|true)['\" ]")),
    ("Perl", re.compile(r"eval[ \t]+'(?:\(exit|exec[ \t]+\S*perl)")),
)
_COMMENTS = re.compile(r"(?:[ \t]*(?:#.*)?\n)*")
_LOOKED_AT = 1 << 16  # characters; the beginning of a file shows its language


def foreign_language(path: str, text: str) -> Optional[str]:
    """Return the language of a file that is not for sh and bash; None for a shell script."""
    head = text[:_LOOKED_AT].lstrip("\ufeff")
    if "\0" in head:
        return "a program"
    if head.startswith("#!"):
        return _of_interpreter(head)
    if _is_json(head):
        return "JSON"
    if _OF_A_SHELL.search(head) is None or posixpath.splitext(path)[1] not in (".sh", ".bash", ".ksh", ".zsh"):
        found = next((language for language, telltale in _TELLTALES if telltale.search(head)), None)
        if found is not None and not (found == "python" and re.search(r"(?m)^[ \t]*(?:export[ \t]|fi\b|done\b)", head)):
            return found
    name = posixpath.basename(path)
    if name.startswith(("Dockerfile", "Containerfile", "Makefile", "GNUmakefile", "makefile", "Jenkinsfile")):
        return name
    return _ENDINGS.get(posixpath.splitext(name)[1].lower()) or _ENDINGS.get(name)


def _is_json(head: str) -> bool:
    """Return whether it is a JSON object or array; `{ echo; }` and `[ "$1" ]` begin the same way."""
    if not re.match(r"\s*[\[{]", head):
        return False
    try:
        json.loads(head)
    except (ValueError, RecursionError):
        return len(head) >= _LOOKED_AT and re.match(r"\s*(?:\{\s*\"|\[\s*\{\s*\")", head) is not None
    return True


def _of_interpreter(head: str) -> Optional[str]:
    first, _, rest = head.partition("\n")
    words = [word for word in first[2:].split() if not word.startswith("-") and "=" not in word]
    names = [posixpath.basename(word) for word in words]
    name = names[1] if names[:1] == ["env"] and len(names) > 1 else names[0] if names else ""
    if name in SHELLS:
        begins = _COMMENTS.sub("", rest, count=1)
        return next((language for language, start in _POLYGLOTS if start.match(begins)), None)
    return "python" if re.fullmatch(r"(?:python|pypy)[0-9.]*", name) else _PROGRAMS.get(name, name or "no shell")
