#pragma once
// Users' iterators as generators of the engine: called by whichever thread pulls the stream.

#include <optional>
#include <string>

#include "functions.h"

namespace penstock::python {

/// One traversal of an iterator that the factory returned.
class PulledIterator {
 public:
  PulledIterator(const Factory& factory, GeneratorStart start);
  std::optional<Sample> operator()();

 protected:
  void iterate_again();
  Held made_;

 private:
  Held iterator_;
};

/// The same for objects that can save() their position as a str and restore() it.
class SavedIterator final : public PulledIterator {
 public:
  using PulledIterator::PulledIterator;
  std::string save();
  void restore(const std::string& cursor);
};

}  // namespace penstock::python
