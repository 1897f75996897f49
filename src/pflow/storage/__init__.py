"""What outlives a process: private files, journals, leases, inboxes, run folders."""
