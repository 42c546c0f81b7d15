"""A site's own catalogue: skeletons of new entries, and running the examples of its entries."""
