"""Registers on PySyncObj, an existing store: the adapter that Faultline needs to test it."""
