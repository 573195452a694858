"""The dashboard: static pages that draw themselves from the API, and the one answer that the API has no need of: the list at a glance."""
