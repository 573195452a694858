"""Offline simulation: policies compared on any instance, and how many draws an experiment will need before it is run.

Reads downward: simulation_commands > policy_comparison | sample_size | result_files > session > runner > kernels > environments.
The paper's own experiments, and the check that the kernels decide as service/policy does, are in studies/, which is not shipped.
"""
