"""Opens the sources of documents: paths, websites, repositories."""
