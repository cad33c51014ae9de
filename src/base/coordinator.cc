#include "base/coordinator.h"

namespace penstock {
namespace {

class Alone final : public Coordinator {
 public:
  [[nodiscard]] std::uint32_t rank() const override { return 0; }
  [[nodiscard]] std::uint32_t world() const override { return 1; }
  void barrier() override {}
  void compare(const std::string&, const std::string&) override {}
  std::uint64_t share(std::uint64_t value) override { return value; }
  std::uint64_t agree(std::uint64_t count) override { return count; }
  double sum(double value) override { return value; }
};

}  // namespace

Coordinator& Coordinator::alone() {
  static Alone coordinator;
  return coordinator;
}

}  // namespace penstock
