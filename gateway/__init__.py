"""The doors through which people reach the desk."""
