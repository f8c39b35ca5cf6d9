"""Hosts made of namespaces: several machines, as far as programs can tell, inside this one."""
