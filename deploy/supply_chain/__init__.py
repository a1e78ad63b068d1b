"""The lock of the project's dependencies, their audit, and their bill of materials."""
