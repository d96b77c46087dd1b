"""Data larger than memory: files of bags that are read chunk by chunk; `mipl.scan` is the way in."""
