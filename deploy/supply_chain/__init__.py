"""What the project is built from: the lock of its dependencies, their audit, their inventory."""
