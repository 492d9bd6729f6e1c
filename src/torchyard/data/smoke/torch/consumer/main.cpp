#include <torch/torch.h>

#include <cstdio>

int main() {
  torch::manual_seed(7);
  torch::nn::Sequential model(torch::nn::Linear(4, 8), torch::nn::Tanh(), torch::nn::Linear(8, 1));
  torch::optim::Adam optimizer(model->parameters(), 0.05);
  const torch::Tensor inputs = torch::randn({64, 4});
  const torch::Tensor target = inputs.sum(1, true);
  double first = 0;
  double last = 0;
  for (int step = 0; step < 30; ++step) {
    optimizer.zero_grad();
    torch::Tensor loss = torch::nn::functional::mse_loss(model->forward(inputs), target);
    loss.backward();
    optimizer.step();
    last = loss.item<double>();
    if (step == 0) first = last;
  }
  std::printf("loss from %g to %g, with " TORCH_VERSION "\n", first, last);
  return last < first / 2 ? 0 : 1;
}
