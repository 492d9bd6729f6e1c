# level: ops
# about: neighbours are those that plain torch's distances give
import torch
from torch_cluster import fps, grid_cluster, knn, radius

torch.manual_seed(0)
x, y = torch.rand(30, 3), torch.rand(5, 3)
far = torch.cdist(y, x)
assert torch.equal(
    knn(x, y, 3)[1].view(5, 3).sort(1).values, far.topk(3, largest=False).indices.sort(1).values
)
pairs = radius(x, y, 0.4, max_num_neighbors=30)
assert set(map(tuple, pairs.t().tolist())) == set(map(tuple, (far <= 0.4).nonzero().tolist()))
assert len(set(fps(x, ratio=0.5).tolist())) == 15
cells = grid_cluster(x, torch.tensor([0.5, 0.5, 0.5]))
assert cells.unique().numel() == (x / 0.5).floor().unique(dim=0).size(0)
