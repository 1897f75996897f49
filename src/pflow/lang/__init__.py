"""The two small languages of a workflow: templates (three syntaxes, one resolver) and expressions (one evaluator).

Neither can run code: both reach the values they are given, by key and index, and nothing else.
"""
