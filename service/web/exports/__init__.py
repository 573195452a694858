"""An experiment's data as files: which columns, in which words, as CSV, JSON lines or Parquet."""
