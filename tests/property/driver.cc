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
#include "order/permutation.h"

namespace penstock {
namespace {

std::int64_t wrap_affine(std::int64_t x, std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(a) +
                                   static_cast<std::uint64_t>(b));
}

/// Every i64 leaf through `fn`, the rest as it is.
template <typename Fn>
Sample on_integers(const Sample& in, Fn fn) {
  std::vector<Tensor> leaves;
  for (const Tensor& leaf : in.leaves()) {
    if (leaf.dtype() != Dtype::i64) {
      leaves.push_back(leaf);
      continue;
    }
    std::vector<std::int64_t> values;
    for (const std::int64_t value : leaf.values<std::int64_t>()) values.push_back(fn(value));
    leaves.push_back(Tensor::of(std::span<const std::int64_t>(values), leaf.shape()));
  }
  return Sample::assemble(in.structure(), std::move(leaves));
}

Dataset slices(std::int64_t rows, std::int64_t salt) {
  // Strings have no dense column, so they come from a function; the rest is sliced.
  std::vector<float> v;
  std::vector<std::int64_t> x;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (const std::int64_t value : {i, i + 1, i + salt}) v.push_back(static_cast<float>(value));
    x.push_back(i * 7 + salt);
  }
  const Dataset dense = Dataset::from_tensor_slices(Sample::dict(
      {{"v", Tensor::of(std::span<const float>(v), {rows, 3})}, {"x", Tensor::of(x)}}));
  const ElementSpec spec =
      ElementSpec::dict({{"s", Dtype::bytes, {}}, {"v", Dtype::f32, {3}}, {"x", Dtype::i64, {}}});
  return dense.map(
      [salt](const Sample& in) {
        const std::int64_t i = (in["x"].item<std::int64_t>() - salt) / 7;
        std::string text;
        for (std::int64_t k = 0; k < i % 4; ++k) text += fmt::format("{}", i);
        return Sample::dict({{"s", Tensor::bytes(text)}, {"v", in["v"]}, {"x", in["x"]}});
      },
      {.spec = spec});
}

class Builder {
 public:
  explicit Builder(std::int64_t batch) : batch_(batch) {}

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
      const ElementSpec leaf = ElementSpec::single(Dtype::i64);
      if (node.at("declared"))
        options.spec = ElementSpec::tuple({leaf, ElementSpec::dict({{"k", Dtype::i64, {}}})});
      return Dataset::from_index(
          static_cast<std::uint64_t>(number("size")),
          [salt = number("salt")](std::uint64_t i) {
            const auto x = static_cast<std::int64_t>(i);
            return Sample::tuple(
                {Tensor::scalar(x - salt), Sample::dict({{"k", Tensor::scalar(x * x)}})});
          },
          options);
    }
    if (op == "zip") {
      std::vector<Dataset> parts;
      for (const Json& input : node.at("inputs")) parts.push_back(build(input));
      return Dataset::zip(parts);
    }
    if (op == "concatenate")
      return build(node.at("inputs").at(0)).concatenate(build(node.at("inputs").at(1)));
    return transform(build(node.at("input")), op, node);
  }

 private:
  Dataset transform(const Dataset& in, const std::string& op, const Json& node) const {
    const auto number = [&](const char* key) { return node.at(key).get<std::int64_t>(); };
    if (op == "map") return map(in, node);
    if (op == "cast") return in.map(cast(Dtype::i32));
    if (op == "shuffle")
      return in.shuffle({.seed = node.at("seed").get<std::uint64_t>(),
                         .reshuffle_each_epoch = node.at("reshuffle").get<bool>()});
    if (op == "repeat") return in.repeat(number("count"));
    if (op == "take") return in.take(number("count"));
    if (op == "skip") return in.skip(number("count"));
    if (op == "shard") return in.shard(number("count"), number("index"));
    if (op == "enumerate") return in.enumerate();
    if (op == "cache") return in.cache();
    if (op == "prefetch")
      return in.prefetch({.steps = static_cast<std::uint64_t>(number("steps"))});
    if (op == "unbatch") return in.unbatch();
    if (op == "batch") {
      const bool drop = node.at("tail") == "drop";
      const std::int64_t size = node.at("size").is_string() ? batch_ : number("size");
      return in.batch(size, {.tail = drop ? Tail::drop : Tail::short_});
    }
    throw ConfigError(fmt::format("the driver knows no op {}", op));
  }

  static Dataset map(const Dataset& in, const Json& node) {
    const std::string form = node.at("form");
    const auto number = [&](const char* key) { return node.at(key).get<std::int64_t>(); };
    MapOptions options;
    if (node.value("declared", false)) options.spec = in.element_spec();
    if (form == "whole") {
      return in.map([a = number("a")](const Sample& batch) {
        const std::int64_t rows = batch.leaves().front().shape().front();
        return on_integers(batch, [&](std::int64_t x) { return wrap_affine(x, 1, a * rows); });
      });
    }
    if (node.at("fn") == "affine") {
      const std::int64_t a = number("a");
      const std::int64_t b = number("b");
      if (form == "typed") return in.map([a, b](std::int64_t x) { return wrap_affine(x, a, b); });
      if (form == "block") {
        return in.map(
            [a, b](const Block& from, Block& to) {
              const auto x = from.column<std::int64_t>();
              const auto y = to.column<std::int64_t>();
              for (std::size_t i = 0; i < x.size(); ++i) y[i] = wrap_affine(x[i], a, b);
            },
            {.spec = ElementSpec::single(Dtype::i64)});
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
};

Json value_json(const Tensor& leaf) {
  if (is_variable(leaf.dtype())) {
    std::string hex;
    for (const std::byte byte : leaf.raw())
      hex += fmt::format("{:02x}", static_cast<unsigned>(byte));
    return hex;
  }
  const auto numbers = [&]<typename T>(T) -> Json {
    if (leaf.shape().empty()) return leaf.item<T>();
    return std::vector<T>(leaf.values<T>().begin(), leaf.values<T>().end());
  };
  if (leaf.dtype() == Dtype::i64) return numbers(std::int64_t{});
  if (leaf.dtype() == Dtype::i32) return numbers(std::int32_t{});
  return numbers(float{});
}

Json share_json(const Batch& batch) {
  Json fields = Json::object();
  const auto paths = batch.spec().structure.paths();
  if (!batch.spec().fields.empty())
    for (const std::string& path : paths) fields[path] = Json::array();
  for (std::size_t row = 0; row < batch.rows(); ++row) {
    const Sample sample = batch.row(row);
    for (std::size_t i = 0; i < paths.size(); ++i)
      fields[paths[i]].push_back(value_json(sample.leaves()[i]));
  }
  return {{"ids", std::vector<std::uint64_t>(batch.sample_id().begin(), batch.sample_id().end())},
          {"loss_scale", batch.loss_scale()},
          {"weight", std::vector<float>(batch.weight().begin(), batch.weight().end())},
          {"valid", std::vector<int>(batch.valid().begin(), batch.valid().end())},
          {"global_valid", batch.global_valid()},
          {"fields", fields}};
}

using HeldStep = std::vector<Batch>;

Json step_json(const HeldStep& step) {
  Json shares = Json::array();
  for (const Batch& batch : step) shares.push_back(share_json(batch));
  return {{"epoch", step.front().epoch()}, {"step", step.front().step()}, {"shares", shares}};
}

/// One session: loaders for all shares in lock step; batches are read out `hold` steps late.
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
    loaders.emplace_back(dataset, options);
    if (!state.empty()) loaders.back().restore(State::parse(state));
  }
  Json steps = Json::array();
  std::deque<HeldStep> held;
  std::int64_t pull = session.at("pull");
  while (pull != 0 && loaders.front().state().epoch < epochs) {
    HeldStep step;
    for (Loader& loader : loaders)
      if (auto batches = loader.next_step())
        step.insert(step.end(), batches->begin(), batches->end());
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
  for (const Loader& loader : loaders)
    if (loader.state() != now) throw InternalError("ranks are at different states");
  return {{"steps", steps},
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
