"""Processes that can be ended, with everything that they have started."""
