"""ELF files: parsing, streaming, editing."""
