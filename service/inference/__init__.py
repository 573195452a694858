"""How sure is it: confidence sequences, separation, error estimate and drift, as pure functions of sufficient statistics.

Everything here reads no more than each arm's count, mean and variance (that is: count, sum and sum of squares, rounded once
from the exact sums), so no answer depends on the order of the rewards and a correction leaves no trace.

The model. Arm i has its own sequence of rewards X_i1, X_i2, ..., independent of the other arms', each with mean mu_i given
the arm's past (independent and Gaussian for real rewards). A policy decides, from what it has seen, whose next reward is
shown. Each bound holds for all lengths of an arm's own sequence at once, so it holds at every look and however the policy
chose.
"""
