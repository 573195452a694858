"""The algorithms as compiled code, one a file: the policies that the service serves and the baselines they are measured against.

A file called `…_kernel` is the compiled twin of the file of service/policy with that name; the baselines have no twin.
"""
