"""From a cycle's outcome to what would help: a sentence with numbers for each job that waits (docs/decisions/0032)."""
