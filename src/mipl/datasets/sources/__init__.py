"""Raw data: where their files come from."""
