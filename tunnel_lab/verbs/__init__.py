"""What collect.py can do: one module for each verb, with a `VERB`."""
