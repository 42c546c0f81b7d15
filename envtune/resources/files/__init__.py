"""Files of configuration directories."""
