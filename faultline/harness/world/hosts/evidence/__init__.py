"""Known-bad and known-good evidence: what real stores are known to do under faults, as runs that can be repeated.

Each TOML file here is one claim (see `cases`); `faultline evidence NAME` reproduces it.
"""
