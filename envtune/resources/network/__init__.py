"""Host names, addresses and ports of a distributed job."""
