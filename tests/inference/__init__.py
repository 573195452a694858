"""Tests of the inference: formulas, edges, and small coverage simulations."""
