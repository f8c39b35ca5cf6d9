"""Known-bad and known-good evidence: what real stores are known to do under faults, as runs that anybody can repeat.

Each TOML file here is one claim (see `cases`); `faultline evidence NAME` reproduces it.
"""
