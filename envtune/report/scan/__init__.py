"""What launch files say, as text, as data and in the formats of other tools."""
