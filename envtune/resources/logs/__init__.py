"""The host logs of CANN: where they are, and what they may take."""
