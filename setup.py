"""The description for a package index: the README without links into the repository, which lead nowhere there."""

import re
from pathlib import Path

from setuptools import setup

readme = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
text, _, _ = readme.partition("## Where to go on")  # links only
text = re.sub(r"!\[[^\]]*\]\((?!https?:)[^)]*\)\n*", "", text)
text = re.sub(r"\[([^\]]*)\]\((?!https?:)[^)]*\)", r"\1", text)
setup(long_description=text, long_description_content_type="text/markdown")
