"""The figures of docs/performance.md: what is measured, how, and how it is written down. Run it with ``make bench``."""
