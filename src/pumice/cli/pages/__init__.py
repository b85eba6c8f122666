"""What ``pumice pages`` can be about: one cycle on a cluster, a record of cycles, or the results of a simulation."""
