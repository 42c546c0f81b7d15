"""Find the files of profiles below directories, and which rank each belongs to."""

from __future__ import annotations

import os
import re
from typing import Iterator, Optional, Sequence

from envtune.profile.readers.layouts import TEXT_FILES
from envtune.records import NamedTuple

DEPTH, MOST = 8, 20_000  # depth of directories; number of files
_OUTPUT = ("ASCEND_PROFILER_OUTPUT", "mindstudio_profiler_output", "summary", "timeline", "profiler")
_PROFILE = re.compile(r".*_ascend_(?:pt|ms)$")
_RAW = re.compile(r"PROF_.*|FRAMEWORK|sqlite|log|logs|mindstudio_profiler_log|data|\..*")
_ENDINGS = (".csv", ".json", ".db")
# step_trace_raw_0_detail_time.csv, aicore_intermediate_0_type.csv, device_queue_profiling_0.txt, op_summary_0_1_1.csv
_OF_RANK = re.compile(
    r"(?:step_trace_raw|aicore_intermediate|aicpu_intermediate|minddata_pipeline_raw|pipeline_profiling"
    r"|device_queue_profiling|dataset_iterator_profiling|minddata_aicpu|framework_raw|output_data_preprocess_aicpu"
    r"|minddata_cpu_utilization|dynamic_shape_info|ascend_timeline_summary|profiler_info|ascend_pytorch_profiler|ascend_timeline_display|flops)"
    r"_(\d{1,6})(?:[._]\w*)*\.\w+"
)
# op_summary_20260301120000.csv: msprof writes the time of the export into the name, so a second export adds a file.
_EXPORTED = re.compile(r"(.+_)(\d{14})(\.\w+)")
_STAGE_RANK = re.compile(r"ascend_cluster_analyse_.*_(\d{1,6})\.csv")
_DIRECTORY_RANK = re.compile(r"(?:^|[_.-])(?:rank|device)[_-]?(\d{1,6})(?:[_.-]|$)")
# MindSpore <= 2.2 writes the files of all ranks into one directory: the number in the name distinguishes them.
_OF_OWN_DIRECTORY = re.compile(r"profiler_info|ascend_pytorch_profiler")


class Place(NamedTuple):
    """A file, the profile it belongs to, and the rank given by names."""

    path: str
    unit: str
    rank: Optional[str]


class Files:
    """The files below some paths: each one once, however it is reached (path, link or directory).

    `repeated` counts, for each path, the files already found by an earlier path; `older` maps files to the newer export
    of the same table, which is read instead. Both are complete after the iteration.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.repeated: dict[str, int] = {}
        self.older: list[tuple[str, str]] = []
        self._paths = paths
        self._seen: set[str] = set()
        self._units: dict[str, str] = {}  # by real directory: a profile has one name, even through a link

    def __iter__(self) -> Iterator[Place]:
        """Yield the files to read; raises OSError for a path that does not exist."""
        count = 0
        for path in self._paths:
            if not os.path.isdir(path):
                os.stat(path)
                yield from self._new(path, path)
                continue
            for file in self._walk(path, DEPTH):
                count += 1
                if count > MOST:
                    return
                yield from self._new(path, file)

    def _new(self, path: str, file: str) -> Iterator[Place]:
        real = os.path.realpath(file)
        if real in self._seen:
            self.repeated[path] = self.repeated.get(path, 0) + 1
            return
        self._seen.add(real)
        place = _place(file)
        directory, mark, rank = place.unit.partition("#")
        unit = self._units.setdefault(os.path.realpath(directory), directory)
        yield place._replace(unit=f"{unit}{mark}{rank}")

    def _walk(self, directory: str, depth: int) -> Iterator[str]:
        try:
            entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
        except OSError:
            return
        has_output = any(entry.name == _OUTPUT[0] for entry in entries)
        newest = _newest([entry.name for entry in entries])
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    raw = _RAW.fullmatch(entry.name) is not None and (has_output or not entry.name.startswith("PROF_"))
                    if depth and not raw:
                        yield from self._walk(entry.path, depth - 1)
                elif entry.is_file() and _may_be_read(entry.name):
                    newer = newest.get(_table(entry.name), entry.name)
                    if newer == entry.name:
                        yield entry.path
                    else:
                        self.older.append((entry.path, newer))
            except OSError:
                continue


def _table(name: str) -> str:
    """Return the name of an exported file without the time of the export; empty if it has none."""
    found = _EXPORTED.fullmatch(name)
    return found[1] + found[3] if found is not None else ""


def _newest(names: Sequence[str]) -> dict[str, str]:
    """Return the newest export of each table; names are sorted."""
    return {_table(name): name for name in names if _table(name)}


def _may_be_read(name: str) -> bool:
    return name.endswith(_ENDINGS) or (name.endswith(".txt") and name.startswith(tuple(TEXT_FILES)))


def _place(path: str) -> Place:
    directory, name = os.path.split(os.path.abspath(path))
    unit = directory
    if os.path.basename(unit) in _OUTPUT:
        unit = os.path.dirname(unit)
    if re.fullmatch(r"PROF_.*", os.path.basename(unit)) and _PROFILE.fullmatch(os.path.dirname(unit)):
        unit = os.path.dirname(unit)
    found = _OF_RANK.fullmatch(name) or _STAGE_RANK.fullmatch(name)
    rank = found[1] if found is not None else None
    if rank is not None and _OF_OWN_DIRECTORY.match(name) is None:
        return Place(path, f"{unit}#{rank}", rank)
    if rank is None:
        in_directory = _DIRECTORY_RANK.search(os.path.basename(unit))
        rank = in_directory[1] if in_directory is not None else None
    return Place(path, unit, rank)
