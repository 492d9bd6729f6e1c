from setuptools import setup

setup(
    name="torch",
    version="2.13.9+cpu",
    packages=["torch", "torch.utils"],
    package_data={"torch": ["include/torch/*", "share/cmake/Torch/*", "lib/*"]},
)
