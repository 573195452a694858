"""The dashboard: static pages that draw themselves from the API, and the list at a glance."""
