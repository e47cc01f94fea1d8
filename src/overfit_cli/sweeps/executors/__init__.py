"""Executors: who trains the tasks of a sweep, on this machine or on a cluster."""
