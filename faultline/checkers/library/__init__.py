"""Checking histories from a program of one's own: what `from faultline.checkers import check` brings.

checking     `check`: a history in any form, under a model of any kind, to a `Result`
result       the verdict with its evidence and its picture
operations   lists of operations and Faultline's histories, made of each other
named        histories checked under a model by name; own_models: under a model of one's own
"""
