"""Many rows from one snapshot, as they come: for exports, in processes that hold little else in memory."""
