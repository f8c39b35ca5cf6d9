"""The fast engine: all keys of a history, as integer columns, judged in one call.

columns      operations as columns of integers
registers    history rows as columns, for registers, mutexes; texts does so for strings that are put and appended to
batch        one call for all keys, on the native kernel where there is one, else in plain Python
native       finding and calling the kernel; build_kernel compiles `native/kernel.c` when the package is installed
dovetail     the same in plain Python: zones, the near-linear monitor, and for the other keys slots, the search
problem      one key for those two; replay proves the orders that they find
proofs       the certificate of an illegal key, made by the forward frontier, in C or in frontier, and verified
"""
