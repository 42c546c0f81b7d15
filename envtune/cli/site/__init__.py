"""The verbs of a site's own catalogue: new entries, and running their examples."""
