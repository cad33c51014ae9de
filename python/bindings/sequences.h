#pragma once
// Users' Sequence objects as the engine's.

#include "callee.h"
#include "interpreter.h"
#include "penstock/sequence.h"

namespace penstock::python {

/// Any object with __len__ and __getitem__, and hooks if it has them.
class UserSequence final : public Sequence {
 public:
  explicit UserSequence(nb::handle object);
  [[nodiscard]] std::uint64_t size() const override { return size_; }
  Sample get(std::uint64_t index) override;
  void on_epoch_begin() override;
  void on_epoch_end() override;

 private:
  void call_hook(const char* name) const;
  Callee object_;
  std::uint64_t size_;
  bool has_begin_;
  bool has_end_;
};

}  // namespace penstock::python
