"""Models: one small async interface over whoever answers.

`interface` says what is asked of a model, `find` who answers to a name, `call` makes one call, with price and budget.
Nothing here is imported before a node asks a model, and nothing heavy before its backend is used.
"""
