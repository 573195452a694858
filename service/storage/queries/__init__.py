"""What is read outside of groups, and the forgetting of old replies."""
