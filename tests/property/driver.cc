// Runs the cases of tests/property/run.py through the public API: one JSON request per line on
// stdin, one JSON reply per line on stdout.
#include <penstock/penstock.h>

#include <fmt/format.h>

#include <deque>
#include <iostream>
#include <string>

#include "base/fault.h"
#include "base/json.h"
#include "base/pool.h"
#include "driver_batches.h"
#include "driver_ragged.h"
#include "driver_streams.h"
#include "graph/tail.h"
#include "op/long_block_op_for_tests.h"
#include "order/permutation.h"

namespace penstock {
namespace {

class Builder {
 public:
  explicit Builder(std::int64_t batch, std::int64_t element = 0)
      : batch_(batch), element_(element) {}

  Dataset build(const Json& node) const {
    const std::string op = node.at("op");
    const auto number = [&](const char* key) { return node.at(key).get<std::int64_t>(); };
    if (op == "range") return Dataset::range(number("start"), number("stop"), number("step"));
    if (op == "tensors") return Dataset::from_tensors(Tensor::scalar(number("value")));
    if (op == "slices") return slices(number("rows"), number("salt"));
    if (op == "index") {
      return Dataset::from_index(static_cast<std::uint64_t>(number("size")),
                                 [salt = number("salt")](std::uint64_t i) {
                                   return static_cast<std::int64_t>(i) * 3 + salt;
                                 });
    }
    if (op == "pairs") {
      SourceOptions options;
      if (node.at("declared")) options.spec = pairs_spec();
      return Dataset::from_index(
          static_cast<std::uint64_t>(number("size")),
          [salt = number("salt")](std::uint64_t i) {
            return pairs_element(static_cast<std::int64_t>(i), salt);
          },
          options);
    }
    if (is_ragged_source(op)) return ragged_source(node);
    if (op == "generator") return generator(node);
    if (op == "hatch") return hatched(node, element_);
    if (op == "zip") {
      std::vector<Dataset> parts;
      for (const Json& input : node.at("inputs")) parts.push_back(build(input));
      return Dataset::zip(parts);
    }
    if (op == "concatenate")
      return build(node.at("inputs").at(0)).concatenate(build(node.at("inputs").at(1)));
    if (op == "batch" && node.contains("rebatch"))
      return build(node.at("input").at("input")).rebatch(batch_size(node), batch_options(node));
    return transform(build(node.at("input")), op, node);
  }

 private:
  Dataset transform(const Dataset& in, const std::string& op, const Json& node) const {
    const auto number = [&](const char* key) { return node.at(key).get<std::int64_t>(); };
    const Build build_inner = [batch = batch_](const Json& inner, std::int64_t element) {
      return Builder(batch, element).build(inner);
    };
    if (const auto made = stream_op(in, node, build_inner)) return *made;
    if (op == "map") return map(in, node);
    if (op == "cast") return in.map(cast(Dtype::i32));
    if (op == "shuffle") {
      ShuffleOptions options{.seed = node.at("seed").get<std::uint64_t>(),
                             .reshuffle_each_epoch = node.at("reshuffle").get<bool>()};
      if (node.contains("window")) options.window = node["window"].get<std::uint64_t>();
      if (node.contains("blocks")) options.blocks = node["blocks"].get<std::uint64_t>();
      return in.shuffle(options);
    }
    if (op == "repeat") return in.repeat(number("count"));
    if (op == "take") return in.take(number("count"));
    if (op == "skip") return in.skip(number("count"));
    if (op == "shard") return in.shard(number("count"), number("index"));
    if (op == "enumerate") return in.enumerate();
    if (op == "cache") return in.cache();
    if (op == "prefetch")
      return in.prefetch({.steps = static_cast<std::uint64_t>(number("steps"))});
    if (op == "unbatch") return in.unbatch();
    if (op == "batch" && node.contains("padding"))
      return in.padded_batch(batch_size(node), {.padding = padding_of(node.at("padding")),
                                                .tail = batch_options(node).tail});
    if (op == "batch") return in.batch(batch_size(node), batch_options(node));
    if (op == "bucket") return bucketed(in, node, batch_options(node).tail);
    if (op == "pack") return packed(in, node);
    throw ConfigError(fmt::format("the driver knows no op {}", op));
  }

  [[nodiscard]] std::int64_t batch_size(const Json& node) const {
    return node.at("size").is_string() ? batch_ : node.at("size").get<std::int64_t>();
  }
  static BatchOptions batch_options(const Json& node) {
    return {.tail = tail_named(node.at("tail").get<std::string>()).value()};
  }

  static Dataset map(const Dataset& in, const Json& node) {
    const std::string form = node.at("form");
    const auto number = [&](const char* key) { return node.at(key).get<std::int64_t>(); };
    MapOptions options;
    if (node.value("declared", false)) options.spec = in.element_spec();
    options.row_wise = node.value("row_wise", false);
    if (form == "whole") {
      return in.map([a = number("a")](const Sample& batch) {
        const std::int64_t rows = batch.leaves().front().shape().front();
        return on_integers(batch, [&](std::int64_t x) { return wrap_affine(x, 1, a * rows); });
      });
    }
    if (node.at("fn") == "resize") return resize_map(in, number("most"), options);
    if (node.at("fn") == "faulty") return faulty_map(in, node, options);
    if (node.at("fn") == "affine") {
      const std::int64_t a = number("a");
      const std::int64_t b = number("b");
      if (form == "typed") return in.map([a, b](std::int64_t x) { return wrap_affine(x, a, b); });
      if (form == "block") {
        const auto rows = [a, b](const Block& from, Block& to) {
          const auto x = from.column<std::int64_t>();
          const auto y = to.column<std::int64_t>();
          for (std::size_t i = 0; i < x.size(); ++i) y[i] = wrap_affine(x[i], a, b);
        };
        const MapOptions known{.spec = ElementSpec::single(Dtype::i64)};
        if (a % 2 == 0) return in.map(rows, known);
        // Like a function of Python: short steps are computed together.
        return in.map(
            OpCall(std::make_shared<testing::LongBlockOp>(make_block_op(BlockFn{rows}, known))));
      }
      return in.map(
          [a, b](const Sample& s) {
            return on_integers(s, [&](std::int64_t x) { return wrap_affine(x, a, b); });
          },
          options);
    }
    const auto range = static_cast<std::uint64_t>(number("range"));
    options.seed = node.at("seed").get<std::uint64_t>();
    const auto add = [range](std::int64_t x, Rng& rng) {
      return wrap_affine(x, 1, static_cast<std::int64_t>(rng.integer(range)));
    };
    if (form == "typed") return in.map(add, options);
    return in.map(
        [add](const Sample& s, Rng& rng) {
          return on_integers(s, [&](std::int64_t x) { return add(x, rng); });
        },
        options);
  }

  std::int64_t batch_;
  std::int64_t element_;  // that the dataset is opened for, if it is an inner one
};

using HeldStep = std::vector<Batch>;

Json step_json(const HeldStep& step) {
  Json shares = Json::array();
  for (const Batch& batch : step) shares.push_back(share_json(batch));
  return {{"epoch", step.front().epoch()}, {"step", step.front().step()}, {"shares", shares}};
}

/// The next step of all shares; nothing at the end of an epoch.
HeldStep next_step(std::vector<Loader>& loaders) {
  HeldStep step;
  for (Loader& loader : loaders)
    if (auto batches = loader.next_step())
      step.insert(step.end(), batches->begin(), batches->end());
  return step;
}

/// One session: loaders for all shares in lock step; batches are read `hold` steps late. A failed
/// sample ends it, and then the ranks need not have the same state.
Json run_session(const Json& session, const Dataset& dataset, std::uint64_t epochs,
                 std::string& state) {
  const auto shares = session.at("shares").get<std::uint32_t>();
  const auto local = session.at("local").get<std::uint32_t>();
  const auto hold = session.at("hold").get<std::size_t>();
  fault::set_yield_seed(session.at("yield_seed").get<std::uint64_t>());
  std::vector<Loader> loaders;
  for (std::uint32_t first = 0; first < shares; first += local) {
    LoaderOptions options;
    options.shares = {shares, first, local};
    options.threads = session.at("threads").get<unsigned>();
    options.lookahead_bytes = session.at("lookahead").get<std::uint64_t>();
    const bool skip = session.value("on_error", "raise") == "skip";
    options.on_error = skip ? OnError::skip : OnError::raise;
    options.skip_limit = 1'000'000;
    loaders.emplace_back(dataset, options);
    if (!state.empty()) loaders.back().restore(State::parse(state));
  }
  Json steps = Json::array();
  std::deque<HeldStep> held;
  std::int64_t pull = session.at("pull");
  Json error;
  while (pull != 0 && loaders.front().state().epoch < epochs) {
    HeldStep step;
    try {
      step = next_step(loaders);
    } catch (const SampleError& failed) {
      const auto sample = failed.where().sample;
      error = {{"what", failed.what()}, {"sample", nullptr}};
      if (sample) error["sample"] = {sample->source, sample->number};
      break;
    }
    if (step.empty()) continue;
    --pull;
    held.push_back(std::move(step));
    if (held.size() <= hold) continue;
    steps.push_back(step_json(held.front()));
    held.pop_front();
  }
  for (const HeldStep& step : held) steps.push_back(step_json(step));
  const State now = loaders.front().state();
  state = now.to_json();
  Json ledgers = Json::array();
  for (const Loader& loader : loaders) {
    ledgers.push_back(ledger_json(loader.ledger()));
    if (error.is_null() && loader.state() != now)
      throw InternalError("ranks are at different states");
  }
  return {{"steps", steps},
          {"ledgers", ledgers},
          {"error", error},
          {"state",
           {{"epoch", now.epoch},
            {"step", now.step},
            {"position", now.position},
            {"bytes", state.size()}}}};
}

Json answer(const Json& request) {
  if (request.contains("order")) {
    const Json& order = request["order"];
    const Permutation permutation(order.at("size"),
                                  {order.at("seed"), order.at("pass"), order.at("round")});
    std::vector<std::uint64_t> positions(permutation.size());
    for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = i;
    permutation.apply(positions);
    return {{"order", positions}};
  }
  const Json& run = request.at("case");
  Json sessions = Json::array();
  std::string state;
  for (const Json& session : run.at("sessions")) {
    const Dataset dataset = Builder(session.at("batch")).build(run.at("dataset"));
    sessions.push_back(run_session(session, dataset, run.at("epochs"), state));
  }
  return {{"sessions", sessions}};
}

}  // namespace
}  // namespace penstock

int main() {
  std::ios::sync_with_stdio(false);
  penstock::Pool::set_shared_threads(8);  // more than this machine's cores, for more interleavings
  std::string line;
  while (std::getline(std::cin, line)) {
    penstock::Json reply;
    try {
      reply = penstock::answer(penstock::Json::parse(line));
    } catch (const std::exception& error) {
      reply = {{"error", error.what()}};
    }
    std::cout << reply.dump() << std::endl;
  }
}
