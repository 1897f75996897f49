"""What nodes of a graph are handed: live inputs, and the flow that they talk to."""
