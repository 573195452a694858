"""Offline simulation: policies compared on any instance, and how many draws an experiment will need before it is run.

Reads downward: simulation_commands > policy_comparison | result_files > session > runner > kernels > environments; and, without
compiled code, plan_command > verdict_plan > verdict_runs > target_rows | prospect.
The paper's own experiments, and the check that the kernels decide as service/policy does, are in studies/, which is not shipped.
"""
