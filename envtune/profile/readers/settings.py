"""Read profiler_info_*.json and profiler_metadata.json: how the profile was taken, its rank, the job's variables."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from envtune.records import NamedTuple

# Options of the profiler that slow down every step (torch_npu profiler guide, "with_stack ...
# introduces additional overhead").
_COSTLY = ("with_stack", "profile_memory", "record_shapes", "with_modules", "_l2_cache")


class Settings(NamedTuple):
    """How the profile was recorded."""

    rank: Optional[str]
    level: str  # Level0, Level1, Level2, or ""
    costly: tuple[str, ...]


def read_settings(data: Mapping[str, Any]) -> Settings:
    """Return the content of profiler_info_*.json."""
    config = _member(data, "config")
    common, more = _member(config, "common_config"), _member(config, "experimental_config")
    costly = tuple(name.lstrip("_") for name in _COSTLY if common.get(name) is True or more.get(name) is True)
    rank = data.get("rank_id")
    level = str(more.get("_profiler_level") or "").rpartition(".")[2]
    return Settings(
        str(rank) if isinstance(rank, int) and rank >= 0 else None,
        level.capitalize(),
        costly,
    )


class Metadata(NamedTuple):
    """The job: its rank, and the variables noted by the profiler."""

    rank: Optional[str]
    variables: Optional[Mapping[str, str]]  # an empty value is a variable that was not set
    world: int = 0  # number of ranks of the job, from its arguments or its groups; 0 if neither tells


def read_metadata(data: Mapping[str, Any]) -> Metadata:
    """Return the content of profiler_metadata.json."""
    rank = _member(data, "distributed_args").get("rank")
    variables = data.get("ENV_VARIABLES")
    known = {str(key): str(value) for key, value in variables.items()} if isinstance(variables, Mapping) else None
    return Metadata(str(rank) if isinstance(rank, int) else None, known, _world(data))


def _world(data: Mapping[str, Any]) -> int:
    """Return the number of ranks: `world_size`, else derived from the largest rank in the communication groups."""
    size = _member(data, "distributed_args").get("world_size")
    if isinstance(size, int) and size > 0:
        return size
    groups = [group for group in _member(data, "parallel_group_info").values() if isinstance(group, Mapping)]
    members = [group.get("global_ranks") for group in groups]
    ranks = [rank for ranks in members if isinstance(ranks, list) for rank in ranks if isinstance(rank, int)]
    return 1 + max(ranks, default=-1)


def _member(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key)
    return value if isinstance(value, Mapping) else {}
