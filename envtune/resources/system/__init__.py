"""The host itself: operating system, hardware, memory, disks, virtualization."""
