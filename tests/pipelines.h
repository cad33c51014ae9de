#pragma once
// Fifty and more small datasets that together use every verb, in the combinations that matter.

#include <penstock/penstock.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace penstock::testing {

struct Pipeline {
  std::string name;
  Dataset dataset;
};

inline Dataset numbers(std::int64_t count) {
  return Dataset::range(count);
}

inline Dataset records(std::int64_t count) {
  return Dataset::from_index(static_cast<std::uint64_t>(count), [](std::uint64_t i) {
    return Sample::dict(
        {{"id", Tensor::scalar(i)},
         {"name", Tensor::bytes(std::string(i % 5, 'a' + static_cast<char>(i % 26)))},
         {"x", Tensor::of(std::vector<float>{static_cast<float>(i), 0.5F})}});
  });
}

inline Dataset drawn(const Dataset& in) {
  return in.map([](std::int64_t x, Rng& rng) {
    return x * 1000 + static_cast<std::int64_t>(rng.integer(1000));
  });
}

/// The other tails, alone, nested and under verbs that count steps.
inline std::vector<Dataset> ends_of_batches() {
  std::vector<Dataset> all;
  const auto ends = [](const Dataset& in, std::int64_t size, Tail tail) {
    return in.batch(size, {.tail = tail});
  };
  for (const Tail tail : {Tail::even, Tail::pad, Tail::wrap}) {
    for (const std::int64_t count : {0, 1, 3, 8, 13})
      all.push_back(ends(numbers(count).shuffle(), 4, tail));
    all.push_back(ends(records(13).shuffle(), 5, tail).repeat(2));
    all.push_back(ends(drawn(numbers(13)).shuffle(), 4, tail).skip(1).take(3));
    all.push_back(ends(numbers(13), 3, tail).shuffle());
    all.push_back(
        ends(numbers(9), 4, tail).concatenate(ends(numbers(7).shuffle(), 3, tail)).repeat(2));
    all.push_back(ends(drawn(numbers(9).shuffle()), 4, tail).unbatch().batch(5));
    all.push_back(ends(ends(drawn(numbers(3)), 4, tail).unbatch().repeat(2), 5, tail));
    all.push_back(ends(drawn(numbers(7)), 4, tail).cache().repeat(2));
    all.push_back(ends(numbers(13).shuffle(), 5, tail).map([](const Sample& batch) {
      const auto x = batch.tensor().values<std::int64_t>();
      std::vector<std::int64_t> turned(x.rbegin(), x.rend());
      return Sample(Tensor::of(std::span<const std::int64_t>(turned), batch.tensor().shape()));
    }));
  }
  all.push_back(ends(numbers(2), 7, Tail::wrap).repeat(2));
  all.push_back(ends(numbers(5), 3, Tail::pad).concatenate(ends(numbers(5), 4, Tail::short_)));
  all.push_back(ends(numbers(12).shuffle(), 4, Tail::strict).repeat(2));
  return all;
}

inline std::vector<Pipeline> pipelines() {
  std::vector<Pipeline> all;
  const auto add = [&all](Dataset dataset) {
    all.push_back({std::to_string(all.size()), std::move(dataset)});
  };
  // Plain, at sizes around the batch size, then one verb each before batch.
  for (const std::int64_t count : {0, 1, 3, 4, 5, 8, 17}) add(numbers(count).batch(4));
  for (const std::int64_t count : {1, 7, 23}) {
    add(numbers(count).shuffle({.seed = 3}).batch(4));
    add(numbers(count).shuffle({.seed = 3, .reshuffle_each_epoch = false}).batch(5));
    add(drawn(numbers(count)).shuffle().batch(4));
    add(records(count).shuffle({.seed = 1}).batch(3));
    add(numbers(count).shuffle().repeat(3).batch(4));
    add(drawn(numbers(count).shuffle().repeat(2)).batch(4, {.tail = Tail::drop}));
  }
  add(numbers(20).skip(3).take(11).batch(4));
  add(numbers(20).shard(3, 1).shuffle().batch(2));
  add(numbers(9).concatenate(numbers(6).shuffle()).shuffle().batch(4));
  add(Dataset::zip({numbers(11).shuffle(), records(9)}).batch(4));
  add(numbers(13).shuffle().enumerate().batch(4));
  add(drawn(numbers(13)).cache().shuffle().batch(4));
  add(drawn(drawn(numbers(7)).repeat(2).cache()).repeat(2).batch(4));
  add(records(13).cache().shuffle().batch(4));
  add(numbers(13).batch(4).unbatch().shuffle().batch(3));
  add(numbers(13).batch(4, {.drop_remainder = true}).unbatch().batch(5));
  add(numbers(13).map(cast(Dtype::f32)).batch(4));
  add(numbers(17).shuffle({.seed = 3, .window = 5}).repeat(2).batch(4));
  add(numbers(17).shuffle({.seed = 3, .window = 5, .blocks = 3}).repeat(2).batch(4));
  add(drawn(numbers(17)).window(4, {.shift = 3}).shuffle().repeat(2).batch(3));
  add(drawn(numbers(17)).window(5, {.stride = 2, .drop_remainder = false}).batch(2));
  // One verb each after batch, and several.
  add(numbers(13).shuffle().batch(4).repeat(2));
  add(numbers(13).shuffle().batch(4, {.tail = Tail::drop}).repeat(3));
  add(numbers(13).shuffle().batch(4).take(2));
  add(numbers(13).shuffle().batch(4).skip(1));
  add(numbers(25).batch(4).shuffle({.seed = 5}));
  add(numbers(25).batch(4).shuffle().take(3));
  add(numbers(25).batch(4).shard(2, 1));
  add(numbers(9).batch(4).concatenate(numbers(7).shuffle().batch(3)));
  add(drawn(numbers(13)).batch(4).cache().repeat(2));
  add(numbers(13).batch(4).map([](std::int64_t x) { return -x; }).repeat(2));
  add(numbers(13).shuffle().batch(4).map([](const Sample& batch) {
    const auto x = batch.tensor().values<std::int64_t>();
    std::vector<std::int64_t> sums(x.size(), 0);
    for (const std::int64_t value : x) sums.front() += value;
    return Sample(Tensor::of(std::span<const std::int64_t>(sums), batch.tensor().shape()));
  }));
  add(numbers(13).repeat().take(30).batch(4));
  add(numbers(13).batch(4).prefetch({.steps = 2}).repeat(2));
  add(numbers(6).batch(2).repeat(2).concatenate(numbers(5).batch(2)).repeat(2));
  add(numbers(5).repeat(0).batch(2));
  add(numbers(3).repeat(4).shuffle({.seed = 2}).batch(5));
  add(drawn(numbers(10).batch(3).unbatch()).repeat(2).batch(4).take(4));
  for (Dataset& dataset : ends_of_batches()) add(std::move(dataset));
  return all;
}

/// Everything observable of a step, as text.
inline std::string seen(const std::vector<Batch>& step) {
  std::string text;
  for (const Batch& batch : step) {
    text += "|" + std::to_string(batch.epoch()) + "." + std::to_string(batch.step()) + ":";
    for (std::size_t row = 0; row < batch.rows(); ++row) {
      text += std::to_string(batch.sample_id()[row]) + "*" +
              std::to_string(batch.weight()[row] * static_cast<float>(batch.valid()[row])) + "=";
      const Sample sample = batch.row(row);
      for (const Tensor& leaf : sample.leaves()) text += std::string(leaf.text()) + ",";
    }
  }
  return text;
}

}  // namespace penstock::testing
