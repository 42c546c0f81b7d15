"""Whether the value of an environment variable is one its reader documents. Pure: text in, judgment out.

Sources: hicann/hccl docs/zh/user_guide/hccl_env (HCCL_*), Ascend/pytorch docs/zh/environment_variable_reference and the
allocator's parser NPUCachingAllocator.cpp (PYTORCH_NPU_ALLOC_CONF), CANN environment variable reference (ASCEND_*).
"""

from __future__ import annotations

import re
from typing import Any, Callable, Mapping, NamedTuple, Optional

from envtune.messages import Bilingual, Literal, Message, Text, alternatives, clauses, enumerated


class Judgement(NamedTuple):
    """`good` is None if unknown, and then `why` says what is missing."""

    good: Optional[bool]
    wanted: Text
    why: Optional[Text] = None


def judge(form: Mapping[str, Any], value: str, npu: Optional[str], variables: Mapping[str, str]) -> Judgement:
    """Judge a value by the documented form of its variable; some forms depend on the NPU model or another variable."""
    if "by" in form:
        return _judge_by_product(form["by"], value, npu, variables)
    if "syntax" in form:
        return _SYNTAXES[form["syntax"]](value)
    if "in" in form:
        folded = value if form.get("case", True) else value.lower()
        return Judgement(folded in form["in"], alternatives(form["in"]))
    if "int" in form or "number" in form:
        return Judgement(_is_in_range(form, value), _number_words(form))
    return Judgement(re.fullmatch(form["matches"], value) is not None, Bilingual(*form["words"]))


def _judge_by_product(
    rows: list[Mapping[str, Any]], value: str, npu: Optional[str], variables: Mapping[str, str]
) -> Judgement:
    rows = [row for row in rows if all(variables.get(n) == v for n, v in row.get("with", {}).items())]
    mine = [row for row in rows if npu in row["npu"]]
    if mine:
        return judge({key: mine[0][key] for key in mine[0] if key not in ("npu", "with")}, value, npu, variables)
    verdicts = [_is_in_range(row, value) for row in rows]
    ranges = ((Literal("/".join(row["npu"])), _number_words(row)) for row in rows)
    wanted = clauses(Message("{models}: {range}", models=models, range=words) for models, words in ranges)
    if len(set(verdicts)) == 1:
        return Judgement(verdicts[0], wanted)
    if npu:
        return Judgement(None, wanted, Message("the range depends on the NPU model, which is {npu}", npu=npu))
    return Judgement(None, wanted, Message("the range depends on the NPU model, which is unknown"))


def _whole_number(form: Mapping[str, Any], value: str) -> bool:
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", value):
        return False
    number, (low, high) = int(value), form["int"]
    return bool(low <= number and (high is None or number <= high) and number % form.get("step", 1) == 0)


def _is_in_range(form: Mapping[str, Any], value: str) -> bool:
    """Return whether it is a whole number in the range, or, if the form has `places`, a decimal with that many."""
    if "int" in form:
        return _whole_number(form, value)
    found = re.fullmatch(rf"([0-9]{{1,18}})(?:\.([0-9]{{1,{form['places']}}})0{{0,18}})?", value)
    if found is None:
        return False
    low, high = form["number"]
    whole, places = int(found[1]), int(found[2] or "0")
    return bool(low <= whole <= high and (whole < high or places == 0))


def _number_words(form: Mapping[str, Any]) -> Text:
    unit = f" {form['unit']}" if "unit" in form else ""
    if "number" in form:
        low, high = form["number"]
        step = f"0.{'1':0>{form['places']}}"
        return Message(
            "a number from {low} to {high}{unit}, in steps of {step}", low=low, high=high, unit=unit, step=step
        )
    low, high = form["int"]
    if high is None:
        return Message("a whole number of at least {low}{unit}", low=low, unit=unit)
    if "step" in form:
        return Message(
            "a multiple of {step} from {low} to {high}{unit}", step=form["step"], low=low, high=high, unit=unit
        )
    return Message("a whole number from {low} to {high}{unit}", low=low, high=high, unit=unit)


def _cpu_affinity(value: str) -> Judgement:
    """Judge `<mode>[,force:0|1][,npu<id>:<a>-<b>]...[,npu_affine:0|1][,lazy_bind:0|1]`; the mode comes first."""
    wanted = Message("mode 0, 1 or 2, then optional force:0|1, npuN:first-last, npu_affine:0|1")
    mode, *parts = [part.strip(" ") for part in value.split(",")]
    if not re.fullmatch(r"[0-2]", mode):
        return Judgement(False, wanted)
    strange = [
        part for part in parts if not re.fullmatch(r"(force|npu_affine|lazy_bind):[01]", part) and not _cores(part)
    ]
    return Judgement(not strange, wanted)


def _cores(part: str) -> bool:
    found = re.fullmatch(r"npu\d{1,4}:(\d{1,6})-(\d{1,6})", part)
    return found is not None and int(found[1]) <= int(found[2])


def alloc_options(value: str) -> Optional[dict[str, str]]:
    """Return `key:value,...` of PYTORCH_NPU_ALLOC_CONF as a mapping, blanks ignored; None for another form."""
    text = value.replace(" ", "")
    found = re.fullmatch(r"[^:,\[\]]+:(\[[^\[\]]*\]|[^:,\[\]]+)(,[^:,\[\]]+:(\[[^\[\]]*\]|[^:,\[\]]+))*", text)
    if found is None:
        return None
    return dict(re.findall(r"([^:,\[\]]+):(\[[^\[\]]*\]|[^:,\[\]]+)", text))


def _alloc_conf(value: str) -> Judgement:
    options = alloc_options(value)
    if options is None:
        return Judgement(False, Message("`option:value` pairs separated by commas"))
    for key, option in options.items():
        rule = _ALLOC.get(key)
        if rule is not None and not rule[0](option):
            return Judgement(False, Literal(f"{key}:{rule[1]}"))
    unknown = [key for key in options if key not in _ALLOC]
    wanted = Message("options and values as torch_npu documents them")
    if unknown:
        names = enumerated(unknown)
        why = Message("unknown whether torch_npu accepts {names}", names=names)
        return Judgement(None, wanted, why)
    return Judgement(True, wanted)


def _is_between(low: int, high: Optional[int]) -> Callable[[str], bool]:
    return lambda text: _whole_number({"int": [low, high]}, text)


def _threshold(text: str) -> bool:
    return re.fullmatch(r"0?\.\d{1,18}", text) is not None and float(text) > 0


def _divisions(text: str) -> bool:
    if not text.startswith("["):
        return text.isdecimal()
    return re.fullmatch(r"\[(\d+|>):\d+(,(\d+|>):\d+)*\]", text) is not None


_TRUTH = (lambda text: text in ("True", "False"), "True|False")
_ALLOC: Mapping[str, tuple[Callable[[str], bool], str]] = {
    "max_split_size_mb": (_is_between(21, None), "> 20"),
    "garbage_collection_threshold": (_threshold, "(0, 1)"),
    "expandable_segments": _TRUTH,
    "base_addr_aligned_kb": (_is_between(0, 16), "0-16"),
    "page_size": (lambda text: text == "1g", "1g"),
    "segment_size_mb": (_is_between(20, 512), "20-512"),
    "roundup_power2_divisions": (_divisions, "N | [size:N,...,>:N]"),
    "pinned_use_background_threads": _TRUTH,
    "pin_memory_expandable_segments": _TRUTH,
    "pinned_mem_register": _TRUTH,
    "multi_stream_lazy_reclaim": _TRUTH,
}


def _retry_params(value: str) -> Judgement:
    """Judge `MaxCnt:3,HoldTime:5000,IntervalTime:1000`: count 1 to 10, times 0 to 60000 ms."""
    wanted = Message("MaxCnt:1-10, HoldTime:0-60000, IntervalTime:0-60000 (ms)")
    limits = {"MaxCnt": [1, 10], "HoldTime": [0, 60000], "IntervalTime": [0, 60000]}
    for part in value.split(","):
        key, colon, number = part.strip(" ").partition(":")
        if key not in limits or not colon or not _whole_number({"int": limits[key]}, number.strip(" ")):
            return Judgement(False, wanted)
    return Judgement(True, wanted)


_SYNTAXES: Mapping[str, Callable[[str], Judgement]] = {
    "cpu_affinity": _cpu_affinity,
    "alloc_conf": _alloc_conf,
    "retry_params": _retry_params,
}
