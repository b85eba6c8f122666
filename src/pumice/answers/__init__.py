"""Why a job waits, what would help it, and what a change would do: answered by running cycles on changed clusters."""
