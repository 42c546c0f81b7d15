"""Scripts that start an interpreter: pyenv's shims, wrapper scripts, and programs such as pip.

Source: pyenv-exec(1).
"""

import os
import re
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ..paths import LinkLoop, kind_at, names_in, on_path, real_path
from .errors import Unresolved

SCRIPT_LIMIT = 65536  # bytes; a wrapper script is far smaller, and most interpreters are larger
PYTHON_NAME = r"(?:python|pypy)[0-9.]*[a-z]*$"
EXPANSION_LIMIT = 16384  # characters of a value or word with its variables expanded
VERSION_LIMIT = 20  # versions of Python that pyenv is configured to search
SHELLS = ("sh", "bash", "dash", "ash", "ksh", "zsh")


def interpreter_behind(host: Any, variables: Mapping[str, str], cwd: str, path: str) -> Tuple[str, str]:
    """Return (path the interpreter is started by, interpreter), following links, shims and wrapper scripts."""
    for _ in range(10):
        try:
            real = real_path(host, path)
            text = _script(host, real)
        except FileNotFoundError:
            raise Unresolved("missing", path) from None
        except LinkLoop:
            raise Unresolved("circle", path) from None
        if text is None:
            return path, real
        path = _target(host, variables, cwd, path, text)
    raise Unresolved("circle", path)


def script_interpreter(host: Any, variables: Mapping[str, str], cwd: str, path: str) -> Optional[str]:
    """Return the Python that runs a script such as pip, None if it is not a Python script."""
    for _ in range(10):
        try:
            text = _script(host, real_path(host, path))
        except LinkLoop:
            raise Unresolved("circle", path) from None
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
        if long_form:  # written by pip if the path is too long for a #! line
            return long_form.group(1)
        path = _target(host, variables, cwd, path, text)
    raise Unresolved("circle", path)


def _target(host: Any, variables: Mapping[str, str], cwd: str, path: str, text: str) -> str:
    """Return the program that the script `text` at `path` starts."""
    if re.search(r"\bpyenv[\"']?\s+exec\b", text):
        return _pyenv_target(host, variables, cwd, path, text)
    return _wrapper_target(host, variables, cwd, path, text)


def _script(host: Any, path: str) -> Optional[str]:
    """Return the text of a script, None for a binary; raises Unresolved for anything else."""
    status = host.stat(path)
    if status.kind != "file":
        raise Unresolved("not-a-file", path)
    if status.size > SCRIPT_LIMIT:
        return None
    is_python = re.match(PYTHON_NAME, os.path.basename(path))
    try:
        data = host.read_bytes(path)
    except PermissionError:
        raise
    except OSError:
        if is_python:  # a recording keeps the text of scripts, but only the existence of programs
            return None
        raise
    if data.startswith(b"\x7fELF") or (is_python and not data):
        return None
    if not data.startswith(b"#!"):
        raise Unresolved("not-an-interpreter", path)
    return str(data.decode("utf-8", "replace"))


def _pyenv_target(host: Any, variables: Mapping[str, str], cwd: str, path: str, text: str) -> str:
    """Return the program a pyenv shim starts: by $PYENV_VERSION, .python-version here or above, or `version`."""
    export = re.search(r"^export PYENV_ROOT=[\"']?([^\"'\n]+)", text, re.M)
    root = export.group(1) if export else variables.get("PYENV_ROOT") or variables.get("HOME", "/root") + "/.pyenv"
    program = os.path.basename(path)
    versions, source = _pyenv_versions(host, variables, cwd, root)
    for version in versions[:VERSION_LIMIT]:
        if version == "system":
            shims = [os.path.dirname(path), root + "/shims"]
            target = on_path(host, variables, cwd, program, shims)
            if target is not None:
                return target
            continue
        for name in (version, version.replace("python-", "", 1)):
            if kind_at(host, "%s/versions/%s/bin/%s" % (root, name, program)) == "file":
                return "%s/versions/%s/bin/%s" % (root, name, program)
        newest = _newest(names_in(host, root + "/versions"), version)
        if newest and kind_at(host, "%s/versions/%s/bin/%s" % (root, newest, program)) == "file":
            return "%s/versions/%s/bin/%s" % (root, newest, program)
    raise Unresolved("pyenv", path, "%s (%s)" % (":".join(versions), source))


def _pyenv_versions(host: Any, variables: Mapping[str, str], cwd: str, root: str) -> Tuple[List[str], str]:
    """Return the selected versions, and where they are selected."""
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
    """Return the newest release matching `stem`: 3.7 is the highest 3.7.N that is installed."""
    releases = [n for n in names if n.startswith(stem + ".") and re.match(r"[0-9.]+$", n)]
    return max(releases, key=lambda n: [int(part or 0) for part in n.split(".")]) if releases else None


def _wrapper_target(host: Any, variables: Mapping[str, str], cwd: str, path: str, text: str) -> str:
    """Return the program a wrapper script starts, if its text names exactly one."""
    lines = text.splitlines()
    if not any(os.path.basename(word) in SHELLS for word in lines[0][2:].split()):
        raise Unresolved("wrapper", path, lines[0])
    known = dict(variables)
    known["0"] = path
    programs = _started_programs(lines[1:], known)
    if len(set(programs)) != 1 or not programs[0]:
        raise Unresolved("wrapper", path, "; ".join(programs))
    if "/" in programs[0]:
        return os.path.normpath(os.path.join(cwd, programs[0]))
    target = on_path(host, known, cwd, programs[0], [os.path.dirname(path)])
    if target is None:
        raise Unresolved("not-on-path", path, programs[0])
    return target


def _started_programs(lines: Sequence[str], known: Dict[str, str]) -> List[str]:
    """Return every program that may finally be started; `known` tracks the assignments."""
    assigned: Dict[str, str] = {}
    programs: List[str] = []
    for line in [line.strip() for line in lines]:
        if not line or line.startswith("#"):
            continue
        assignment = re.match(r"(?:export\s+|readonly\s+)?([A-Za-z_]\w*)=(\S.*|)$", line)
        if assignment:
            name, value = assignment.group(1), expanded(assignment.group(2), known).strip("\"'")
            if assigned.setdefault(name, value) == value:
                known[name] = value
            else:
                known.pop(name, None)  # set twice: the value depends on how the script runs
            continue
        for name in re.findall(r"\b([A-Za-z_]\w*)=", line):
            assigned[name] = ""
            known.pop(name, None)
        programs += [_program(part, known) for part in _last_commands(line)]
    return programs


def _last_commands(line: str) -> List[str]:
    """Return the programs that a line starts: `if ...; then exec A "$@"; fi` with a last line `B "$@"` has two."""
    started = re.split(r"(?:^|[;&|({]|\b(?:then|else|do)\b)\s*exec\s+(?![0-9]*[<>])", line)[1:]
    passed_on = re.search(r"\$(@|\{1\+|\*)", line) and not re.match(r"(set|for|while|case|shift|local)\b", line)
    return [line] if not started and passed_on else started


def expanded(text: str, known: Mapping[str, str]) -> str:
    """Return `text` with known shell variables, and the usual spellings of the script's directory, filled in.

    What is, or would become, longer than EXPANSION_LIMIT is returned unchanged.
    """
    if "$" not in text or len(text) > EXPANSION_LIMIT:
        return text
    whole, path = text, known["0"]
    text = text.replace("BASH_SOURCE[0]", "0").replace("BASH_SOURCE", "0").replace("${0%/*}", os.path.dirname(path))
    for _ in range(2):  # $(cd "$(dirname "$0")" && pwd)
        text = re.sub(r"\$\(([^()`]*)\)", lambda m: _substituted(m, path), text)
    room = EXPANSION_LIMIT - len(text)

    def value(found: Any) -> str:
        nonlocal room
        filled = known.get(found.group(1), found.group())
        room -= len(filled)
        return filled if room >= 0 else ""

    text = re.sub(r"\$\{?([A-Za-z_]\w*|0)\}?", value, text)
    return text if room >= 0 else whole


def _substituted(found: Any, path: str) -> str:
    """Return the value of `$(...)` if it names the directory or the path of the script at `path`; else itself."""
    words = found.group(1).replace("${0}", "$0").replace('"$0"', "$0").split()
    if words[:2] == ["readlink", "-f"]:
        words[:2] = ["realpath"]
    if len(words) > 2 and words[1] == "--":
        del words[1]
    if words in (["dirname", "$0"], ["realpath", "$0"]):
        return os.path.dirname(path) if words[0] == "dirname" else path
    changed, mark, then = found.group(1).replace("&&", ";").partition(";")
    change = changed.strip()
    folder = change[2:].strip()
    if folder[:1] == '"':
        folder = folder[1:]
    if folder[-1:] == '"':
        folder = folder[:-1].rstrip()
    if not mark or then.split() not in (["pwd"], ["pwd", "-P"]) or not re.match(r"cd\s", changed.lstrip()):
        return str(found.group())
    return str(found.group()) if re.search(r'["$&]', folder) else folder


def _program(line: str, known: Mapping[str, str]) -> str:
    """Return the interpreter among the words of a command line, else its first word; "" when a variable hides it."""
    import shlex

    try:
        words = shlex.split(expanded(line.strip(), known), comments=True)
    except ValueError:
        return ""
    for word in words:
        if re.match(PYTHON_NAME, os.path.basename(word)) and "$" not in word and "=" not in word:
            return word
    words = [word for word in words if word not in ("-a", "-c", "-l", "--")]
    return "" if not words or "$" in words[0] or "`" in words[0] else words[0]
