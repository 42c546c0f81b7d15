"""torch, torch_npu and apex of the job's Python."""
