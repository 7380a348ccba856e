"""Live tests of the link relay; they make network namespaces and need root."""
