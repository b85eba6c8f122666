"""The cluster port over a Kubernetes API server. The network lives here; the core never waits."""
