#include "plan/program.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "plan/compiler.h"

namespace penstock {

bool has_sequence(const Program& program) {
  return std::ranges::any_of(program.chains,
                             [](const LeafProgram& chain) { return chain.sequence != nullptr; });
}

Program compile(const Node& root, const CompileOptions& options) {
  CompileOptions with_seed = options;
  with_seed.draws = options.draws || wants_drawn_seed(root);
  Compiler compiler(with_seed);
  Program program{Steps::leaf(0, {}), {}, root.spec};
  if (root.stream) {
    program.stream = compiler.step_flow(root, 0, options.tail, program.chains);
  } else {
    program.chains = compiler.chains(root, 0);
    StepsOf shape = steps_of(root, options.tail, options.drawn_seed);
    PENSTOCK_CHECK_EQ(program.chains.size(), shape.leaves.size());
    program.steps = std::move(shape.steps);
  }
  compiler.finish(program);
  return program;
}

FlowPtr compile_flow(const Node& root, const CompileOptions& options) {
  return Compiler(options).flow(root, 0);
}

StagePtr compile_samples(const Node& root, const CompileOptions& options) {
  return Compiler(options).samples(root, 0);
}

}  // namespace penstock
