"""Faults that are put into the program one at a time, started by tests/mutants.

table.py names each with the test that must see it, main.py copies the sources, builds and judges.
"""
