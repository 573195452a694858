"""One algorithm per file, each compiled: the policies that the service serves and the baselines they are measured against."""
