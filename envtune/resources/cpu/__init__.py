"""CPU frequency: governors, what sets them at boot, BIOS settings."""
