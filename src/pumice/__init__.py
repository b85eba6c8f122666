"""Pumice: a batch scheduler for Kubernetes over one columnar, transactional core."""

__version__ = "0.1.0"
