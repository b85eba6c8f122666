"""Pages about a cluster: what a cycle decided, what waits and why, queues, jobs and nodes."""
