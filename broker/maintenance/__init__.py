"""What runs on timers: deadlines, delayed entries, orphaned work, leases, erasure."""
