"""What `docs/generate.py` writes into the documents, from the code: one module for each kind of text."""
