from pathlib import Path

cmake_prefix_path = str(Path(__file__).parents[1] / "share/cmake")
