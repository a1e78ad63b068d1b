"""The locked dependencies of the project, their audit, and their software bill of materials."""
