"""The state of builds and jobs, from another terminal."""
