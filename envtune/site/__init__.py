"""A site's own catalog: skeletons of new entries, and running the examples of its entries."""
