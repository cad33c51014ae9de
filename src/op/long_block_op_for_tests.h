#pragma once
// A block function that prefers long blocks, as functions of another language do; for tests.

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "op/op.h"

namespace penstock::testing {

/// Calls `op`, and counts the calls.
class LongBlockOp final : public Op {
 public:
  explicit LongBlockOp(std::shared_ptr<const Op> op) : op_(std::move(op)) {}
  [[nodiscard]] std::string word() const override { return op_->word(); }
  [[nodiscard]] std::string describe() const override { return op_->describe(); }
  [[nodiscard]] std::string name() const override { return op_->name(); }
  [[nodiscard]] bool row_wise() const override { return op_->row_wise(); }
  [[nodiscard]] bool prefers_long_blocks() const override { return true; }
  [[nodiscard]] ElementSpec output(const ElementSpec& in) const override { return op_->output(in); }
  Result<void> run(const BlockView& in, const BlockView& out,
                   const OpContext& context) const override {
    ++calls;
    return op_->run(in, out, context);
  }
  mutable std::atomic<std::uint64_t> calls{0};

 private:
  std::shared_ptr<const Op> op_;
};

}  // namespace penstock::testing
