"""Volumes of pods: where those that are there can be used, and where others can be bound or made."""
