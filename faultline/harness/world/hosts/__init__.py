"""Test hosts: machines, or namespaces of this one, that are reached over SSH and carry the nodes of a run.

Everything goes through one layer over paramiko: `connection` is the pooled connection to one host, `fleet` the fan-out
over many. `namespaces` makes hosts on this machine, `host_file` reads hosts that are there already.
"""
