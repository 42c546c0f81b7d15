"""CANN, its te and topi, HCCL, the driver, and the versions that belong together."""
