"""Live traffic: late, lost, repeated and corrected rewards, changing arms, replay."""
