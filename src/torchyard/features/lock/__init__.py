"""The wheels that an extension is built with."""
