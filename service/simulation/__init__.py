"""Offline simulation: the paper's experiments, planning before an experiment, and the proof that the policies are right.

Reads downward: commands > studies | planning | page > reports > runner > algorithms > environments > complexity | metrics.
"""
