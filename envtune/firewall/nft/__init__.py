"""The output of `nft list ruleset`, as JSON and as text."""
