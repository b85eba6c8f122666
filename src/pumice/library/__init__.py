"""What ``import pumice`` gives: clusters, policies, runs and comparisons for Python, with results as tables."""
