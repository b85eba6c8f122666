"""A Kubernetes API server in one process: enough for an unmodified kubectl and for ``pumice run``."""
