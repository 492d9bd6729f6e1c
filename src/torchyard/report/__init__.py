"""How torchyard talks: data on standard output, talk on standard error."""
