"""What the checks of a job's files read: dump configurations, leftovers of debugging, and the data set's location."""

import json
import os
import re
from typing import Any, Iterator, List

from .job import ASSIGNED, OPTION_START, OPTION_VALUE, command_text, job_folder
from .tables import Table, quietly

CONFIG = Table(files=("/sys/block/sd*/queue/rotational", "/sys/block/nvme*/queue/rotational"))
# Below the job's directory. Source: porting guide 003:2787-2792; DUMP_GE_GRAPH in the reference of CANN (ge_proto_*).
LEFTOVERS = ("kernel_meta/*.cce", "kernel_meta*/kernel_meta*/*.cce", "ge_proto_*.txt", "ge_onnx_*.pbtxt")
DUMP_CONFIGURATIONS = ("acl.json", "dump.json")
# What follows the program: `main.py /data/imagenet`.
POSITIONAL_DATA = r"\.py[\"']?[ \t]+(/[^\s\\;|&\"'.]+)(?=[\s\\;|&\"']|$)"
DATA_OPTIONS = r"(?:train[-_])?data(?:set)?(?:[-_](?:path|dir|root))?"  # porting guide 003:582: --data

# Where checkpoints go: --save of Megatron-LM and MindSpeed, --output_dir of transformers, and usual names.
SAVE_OPTIONS = r"save(?:[-_](?:dir|path))?|output[-_]dir|(?:checkpoint|ckpt)[-_](?:dir|path)"


def record_config(recorder: Any) -> None:
    """Record the files in the job's working directory, and whether the data set in its command exists."""
    folder = job_folder(recorder)
    paths = [recorder.variables.get("TORCH_ACL_INIT_CONFIG_PATH", "")] + list(DUMP_CONFIGURATIONS)
    paths += _given_to_set_dump(recorder)
    for path in paths:
        if path:
            quietly(_record_dump, recorder, os.path.normpath(os.path.join(folder, path)), folder)
    for pattern in LEFTOVERS:
        recorder.glob(os.path.join(folder, pattern))
    quietly(_record_data_set, recorder)
    quietly(_record_save_path, recorder)


def _given_to_set_dump(recorder: Any) -> List[str]:
    """Return the configurations that the job's program passes to set_dump, from the lines kept of it."""
    texts = [recorder.files.get(path) for path in recorder.programs]
    return re.findall(r"set_dump\(\s*[\"']([^\"'\n]+)[\"']", "\n".join(text for text in texts if isinstance(text, str)))


def _record_dump(recorder: Any, path: str, folder: str) -> None:
    """Record a dump configuration, and whether the directory it names can be created."""
    try:
        place = json.loads(recorder.read(path))["dump"]["dump_path"]
    except (ValueError, KeyError, TypeError, RuntimeError):  # RecursionError is one of the last
        return
    if isinstance(place, str):
        place = os.path.normpath(os.path.join(folder, place))
        quietly(recorder.stat, place)
        quietly(recorder.stat, os.path.dirname(place))


def _record_data_set(recorder: Any) -> None:
    """Record whether the data named in the command exists, as a path or as a prefix of file names."""
    for value in _command_paths(recorder, [OPTION_START + DATA_OPTIONS + OPTION_VALUE, POSITIONAL_DATA]):
        for path in dict.fromkeys([value] + value.split(",")):
            _record_data(recorder, os.path.normpath(path))


def _record_save_path(recorder: Any) -> None:
    """Record which directories exist on the path where the command saves checkpoints."""
    for value in _command_paths(recorder, [OPTION_START + "(?:" + SAVE_OPTIONS + ")" + OPTION_VALUE]):
        path = os.path.normpath(value)
        while path != "/":
            quietly(recorder.stat, path)
            path = os.path.dirname(path)


def _command_paths(recorder: Any, patterns: List[str]) -> Iterator[str]:
    """Yield the absolute paths in the job's command that match, with its known variables expanded."""
    text = command_text(recorder)
    known = dict(re.findall(ASSIGNED, text), **recorder.variables)
    for value in [value for pattern in patterns for value in re.findall(pattern, text)]:
        value = re.sub(r"\$\{?(\w+)\}?", lambda found: known.get(found.group(1), "$"), value.strip("\"'"))
        if value.startswith("/") and "$" not in value:
            yield value


def _record_data(recorder: Any, path: str) -> None:
    """Record whether a path exists, or files whose names begin with it."""
    quietly(recorder.stat, path)
    if recorder.files.get(path) is None:
        recorder.glob(path + "*")
