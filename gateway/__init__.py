"""The channels through which people reach the desk."""
