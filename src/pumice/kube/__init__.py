"""The cluster port over a Kubernetes API server. The network is here; the core never waits."""
