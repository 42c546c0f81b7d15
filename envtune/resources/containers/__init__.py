"""What a container was started with: NPU devices, the driver's files, and its limits."""
