# level: full
# about: tensors are saved and loaded, and passed on by other processes through shared memory
import torch
from torch.utils.data import DataLoader


def main():
    tensor = torch.arange(10.0)
    torch.save({"a": tensor}, "saved.pt")
    assert torch.equal(torch.load("saved.pt", weights_only=True)["a"], tensor)
    batches = list(DataLoader(range(8), batch_size=4, num_workers=2))
    assert [batch.tolist() for batch in batches] == [[0, 1, 2, 3], [4, 5, 6, 7]]


if __name__ == "__main__":
    main()
