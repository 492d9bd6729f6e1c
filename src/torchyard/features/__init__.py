"""What torchyard can do: a folder for each feature, and no other module imports them.

`command.py` has the options. `use_case.py` does the work: it takes plain arguments, returns a value
and prints nothing. `report.py` has that value, which is printed as JSON as it is, and the functions
that write it for people. A command's module is imported to list it, so it imports its use case only
when it is called; other modules import what they need at the top.
"""
