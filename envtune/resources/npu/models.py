"""Which models of NPU this host has, and whether one of them is made for inference only."""

from __future__ import annotations

from collections import Counter
from typing import Iterable

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable
from envtune.messages import Message
from envtune.model import Evidence, Reading
from envtune.resources.npu.devices import MODELS, PCI, accelerators, smi_output, table_model

INFERENCE = ("310",)  # prefixes of the names of inference chips: 310, 310P, 310B


@probe("npu.models")
def models(context: Context) -> Iterable[Reading]:
    """Purpose of each NPU model on this host: `training`, or `inference` for the 310 series.

    Source: porting guide 003:113, 1576 (Ascend 910); NpuVariables.cpp of torch_npu for the names of the chips.
    """
    counts, source = _counted(context)
    if not counts:
        raise NotApplicable(Message("this host has no NPU"), source)
    for model, count in sorted(counts.items()):
        value = "inference" if model.startswith(INFERENCE) else "training"
        shown = Message("{count} of model {model}", count=count, model=model)
        yield Reading(model, value, Evidence(source, f"{count} x {model}"), shown, Message("an NPU for training"))


def _counted(context: Context) -> tuple[Counter[str], str]:
    """Return how many there are of each model, from PCI, else from npu-smi."""
    try:
        cards = [MODELS[card.device] for card in accelerators(context) if card.device in MODELS]
    except HostError:
        cards = []  # npu-smi may still name them
    if cards:
        return Counter(cards), f"{PCI}/*/device"
    try:
        table = smi_output(context).table
    except Missing:
        return Counter(), PCI
    names = Counter(table_model(table._replace(devices=(device,))) for device in table.devices)
    return names, "npu-smi info"
