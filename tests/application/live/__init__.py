"""What many viewers share, and where expensive reads run."""
