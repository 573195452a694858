"""docs/reproduction.md, made of the studies' summaries: one file a section."""
