"""Sweeps: many simulations that differ in policy, arguments, cluster size and seed, on any executor."""
