"""Claims of devices: what nodes offer, which claim holds which device, and where a claim can be allocated."""
