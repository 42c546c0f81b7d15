"""What profiles say, as text and as data."""
