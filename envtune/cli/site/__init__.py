"""The verbs of a site's own catalog: new entries, and running their examples."""
