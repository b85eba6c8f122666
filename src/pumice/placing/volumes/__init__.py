"""Volumes of pods: where existing ones can be used, and where others can be bound or provisioned."""
