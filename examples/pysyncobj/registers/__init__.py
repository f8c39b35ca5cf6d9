"""Registers on PySyncObj, a store that exists: what Faultline must be told to test it."""
