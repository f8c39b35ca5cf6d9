"""The program that the harness leaves on a host for the length of a run, to strike a store that knows nothing of it.

It is sent there as one archive and run by the host's own Python (3.9 or later), so everything in this folder uses
nothing but the standard library, this folder and `processes/supervisor.py`. What it can do is found out there, by
trying; what it cannot do, it refuses with a reason.
"""
