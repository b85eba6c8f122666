"""The record of a scheduler that runs: the inputs of its cycles in files, from which any cycle can be run again.

``frames`` has the form of a file, ``events`` that of objects in it; ``recorder`` writes, ``reading`` reads, ``replay``
runs cycles again, ``story`` says what happened to one job.
"""
