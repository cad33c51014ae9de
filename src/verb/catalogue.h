#pragma once
// The verbs by word, for serialized datasets. One line each in catalogue.cc.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "graph/node.h"
#include "op/op.h"

namespace penstock {

/// Data and functions of some datasets by name: the parts that are not serialized.
class Named {
 public:
  /// Adds everything in the graph of `node` that has a name.
  void collect(const Node& node);
  // Each throws ConfigError if there is none.
  [[nodiscard]] const Node& source(const std::string& name) const;
  [[nodiscard]] std::shared_ptr<const Op> function(const std::string& name) const;
  /// A flat_map or interleave.
  [[nodiscard]] const Node& expansion(const std::string& name) const;

 private:
  std::map<std::string, const Node*> sources_;
  std::map<std::string, std::shared_ptr<const Op>> functions_;
  std::map<std::string, const Node*> expansions_;
  std::set<const Node*> seen_;
};

/// A serialized node, with its inputs already built. Reading a missing argument throws
/// Json::exception or std::out_of_range.
struct Parsed {
  const std::string& word;
  const Json& arguments;
  const std::vector<Dataset>& inputs;
  const Named& named;

  [[nodiscard]] const Dataset& input() const { return inputs.at(0); }
  [[nodiscard]] const Json& at(const char* key) const { return arguments.at(key); }
  [[nodiscard]] std::int64_t number(const char* key) const {
    return whole_number<std::int64_t>(at(key));
  }
  [[nodiscard]] std::uint64_t count(const char* key) const {
    return whole_number<std::uint64_t>(at(key));
  }
  [[nodiscard]] bool flag(const char* key) const { return at(key).get<bool>(); }
  [[nodiscard]] std::string text(const char* key) const { return at(key).get<std::string>(); }
  /// The function named by the node.
  [[nodiscard]] std::shared_ptr<const Op> function() const { return named.function(text("name")); }
};

/// Builds the dataset that ends with the node, with the checks of a new one.
Dataset parse_node(const Parsed& parsed);

}  // namespace penstock
