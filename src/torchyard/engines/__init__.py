"""Where and when jobs run, never what they do."""
