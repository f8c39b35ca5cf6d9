"""The fast engine: all keys of a history, as integer columns, judged in one call.

columns      operations as columns of integers; recorder builds them while a run goes on
registers    history rows as columns, for registers, mutexes; texts does so for strings that are put and appended to
classifier   which keys the near-linear monitor can judge; the others are searched
zones        the chained-zones monitor; slots the slot search; replay proves what they find legal
batch        one call for all keys, on the native kernel where there is one, else in plain Python
native       finding the kernel; build_kernel compiles `native/kernel.c` when the package is installed
"""
