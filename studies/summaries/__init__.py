"""What a study's counts say: tables, comparisons with the published numbers, figures. One file a kind of statement."""
