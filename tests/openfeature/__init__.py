"""The stock OpenFeature providers, unmodified, against the real service."""
