// tested in src/verb/kinds_test.cc
#include "graph/verb.h"

#include "graph/node.h"

namespace penstock {

std::uint64_t Verb::id_space(const Node& node) const {
  return node.input().verb->id_space(node.input());
}

Steps StepsWalk::of(const Node& node) {
  return node.verb->steps(node, *this);
}

Steps StepsWalk::leaf(const Node& node, const Groups& groups) {
  leaves.push_back(&node);
  return Steps::leaf(static_cast<std::uint32_t>(leaves.size() - 1), groups);
}

}  // namespace penstock
