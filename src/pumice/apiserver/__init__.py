"""A Kubernetes API server of our own, in one process: enough for an unmodified kubectl and for ``pumice run``."""
