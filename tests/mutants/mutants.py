"""Bugs of one logical line each, as (name, file, right line, wrong line).

Each right line stands exactly once in its file. run.py makes every line wrong in turn and requires
the property test to name a difference.
"""

MUTANTS = [
    ("last remainder row to the wrong share", "src/order/cut.h",
     "return rows / shares + (share < rows % shares ? 1 : 0);",
     "return rows / shares + (shares - 1 - share < rows % shares ? 1 : 0);"),
    ("pass missing from the key", "src/plan/order_stages.cc",
     "Permutation(size_, {order_.seed, key.pass, key.round})",
     "Permutation(size_, {order_.seed, 0, key.round})"),
    ("position counted at prefetch", "src/run/pass_run.h",
     "std::uint64_t delivered() const { return delivered_.load(); }",
     "std::uint64_t delivered() const { return opened_.load(); }"),
    ("slab reused one batch early", "src/run/pass_run.cc",
     "batches.emplace_back(std::move(share));",
     "batches.emplace_back("
     "std::shared_ptr<const BatchData>(std::shared_ptr<void>(), share.get()));"),
    ("missing-count decremented before the write", "src/run/pass_run.cc",
     "finish(piece, compute(piece), task.began);",
     "finish(piece, {}, task.began), static_cast<void>(compute(piece));"),
    ("restore after a change of G off by one", "src/feed/loader.cc",
     "{state.step, state.position, batch}", "{state.step, state.position + 1, batch}"),
    ("repeat ignoring its round", "src/plan/order_stages.cc",
     "ask.turn.round * rounds_ + round}", "ask.turn.round * rounds_}"),
    ("occurrence missing from the random key", "src/plan/value_stages.cc",
     "key.rng(out.identity.occurrence[row],", "key.rng(0,"),
    ("a fixed order reshuffled all the same", "src/plan/order_stages.cc",
     "const Turn key = order_.reshuffle ? ask.turn : Turn{};", "const Turn key = ask.turn;"),
    ("a cache that asks the turn at hand", "src/plan/value_stages.cc",
     "const Ask first_turn{{0, 0},", "const Ask first_turn{ask.turn,"),
    ("drop keeps the tail", "src/order/steps.cc",
     "(tail != TailRule::drop && count % batch != 0 ? 1 : 0)", "(count % batch != 0 ? 1 : 0)"),
    ("shard that always starts at 0", "src/plan/order_stages.cc",
     "positions[i] = first_ + stride_ * ask.positions[i];",
     "positions[i] = stride_ * ask.positions[i];"),
    ("the end of an epoch is not the start of the next", "src/feed/loader.cc",
     "if (at_end() && step_ > 0) {", "if (at_end() && step_ > UINT32_MAX) {"),
    ("ids of a concatenation start again", "src/plan/program.cc",
     "samples(*node.inputs[1], first_id + id_space(*node.inputs[0]))",
     "samples(*node.inputs[1], first_id)"),
]
