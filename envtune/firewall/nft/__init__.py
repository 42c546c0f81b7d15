"""What `nft list ruleset` prints, as JSON and as text."""
