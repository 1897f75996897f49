"""Planning: from a workflow to what a run needs, with every problem found on the way."""
