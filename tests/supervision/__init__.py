"""Workers under their supervisor."""
