"""Pictures of data sets and of what was found in them."""
