"""Reports scope and answer, ask or refuse on collections that the weights were not fitted on."""
