"""Hosts at EC2: what has to be true before, what it may cost, what there is, and how all of it is removed again."""
