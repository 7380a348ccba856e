"""Transfers whose limit is known, constructed in a lab of their own; they need root."""
