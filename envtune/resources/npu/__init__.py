"""NPU devices: npu-smi, health, and those a job names."""
