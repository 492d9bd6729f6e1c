from smallops._C import twice

__all__ = ["twice"]
