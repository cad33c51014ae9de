// Properties that every dataset has. The verbs are in verb/.
#include "penstock/dataset.h"

#include <fmt/format.h>

#include "graph/node.h"

namespace penstock {

std::uint64_t Cardinality::count() const {
  if (is_endless())
    throw ConfigError("the dataset is endless and has no length", {},
                      "limit it with take(n), or count steps");
  if (kind_ == Kind::undecided)
    throw ConfigError(
        "the length is not known yet: select() has not run, or a stream was not read for its cache",
        {}, "call resolve(): the dataset it returns has a length");
  if (is_unknown())
    throw ConfigError("the dataset is a stream: its length is unknown until it ends", {},
                      "iterate until next() returns nothing, or limit it with take(n)");
  return count_;
}

std::string Cardinality::text() const {
  if (is_counted()) return fmt::format("{}", count_);
  return is_endless() ? "endless" : "unknown";
}

Cardinality Dataset::cardinality() const {
  return node_->size;
}
const ElementSpec& Dataset::element_spec() const {
  return node_->spec;
}
bool Dataset::batched() const {
  return node_->batched;
}
bool Dataset::streamed() const {
  return node_->stream;
}
Digests Dataset::digests() const {
  return digests_of(*node_, std::nullopt);
}

std::vector<std::string> Dataset::class_names() const {
  const Node* node = node_.get();
  while (!node->inputs.empty()) node = &node->input();
  return node->verb->class_names();
}

}  // namespace penstock
