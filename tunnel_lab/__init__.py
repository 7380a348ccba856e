"""The lab's own code: what exists, what to run, what came back, and what it says."""
