"""The torch releases that an extension loads with, by the symbols of both."""
