"""Tests that mirror the modules of service/simulation/kernels."""
