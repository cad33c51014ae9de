#pragma once
// Small streams that together use every verb that creates or accepts one.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/number_streams_for_tests.h"
#include "tests/pipelines.h"

namespace penstock::testing {

/// Samples whose fields are unknown before running.
inline Dataset told(std::int64_t count) {
  return Dataset::from_generator([count] {
    return [i = std::int64_t{0}, count]() mutable -> std::optional<Sample> {
      if (i == count) return std::nullopt;
      ++i;
      return Sample::dict(
          {{"id", Tensor::scalar(i)},
           {"name", Tensor::bytes(std::string(static_cast<std::size_t>(i % 4), 'n'))},
           {"x", Tensor::of(std::vector<float>{0.5F, static_cast<float>(i)})}});
    };
  });
}

/// Other elements in each round.
inline Dataset changing() {
  return Dataset::from_generator([](GeneratorStart start) {
    const auto first = static_cast<std::int64_t>(100 * start.epoch + 10 * start.round);
    return [first, i = std::int64_t{0}, end = 3 + first % 7]() mutable {
      return i == end ? std::nullopt : std::optional(first + i++);
    };
  });
}

inline Dataset even(const Dataset& in) {
  return in.filter([](std::int64_t x) { return x % 2 == 0; });
}
inline Dataset lucky(const Dataset& in) {
  return in.filter([](std::int64_t, Rng& rng) { return rng.integer(3) > 0; });
}
inline Dataset windows(const Dataset& in, std::uint64_t window) {
  return in.shuffle({.seed = 3, .window = window});
}
inline Dataset rows_of_elements(std::int64_t count) {
  return Dataset::range(count)
      .map([](const Sample& s) {
        const auto x = s.tensor().item<std::int64_t>();
        return Sample(Tensor::of(std::vector<std::int64_t>(static_cast<std::size_t>(x % 4), x)));
      })
      .unbatch();
}

/// Documents of 0 to 6 tokens.
inline Dataset documents(const Dataset& numbers) {
  return numbers.map([](const Sample& s) {
    const auto x = s.tensor().item<std::int64_t>();
    return Sample(Tensor::of(std::vector<std::int64_t>(static_cast<std::size_t>(x * x % 7), x)));
  });
}

/// Verbs that need the lengths of samples.
inline std::vector<Dataset> streams_of_documents() {
  std::vector<Dataset> all;
  for (const std::int64_t count : {0, 1, 13, 200}) {
    all.push_back(documents(lucky(counted(count))).pack(8, {.separator = 1}).batch(3));
    all.push_back(documents(generated(count)).bucket_by_length({2, 5}, {4, 3, 2}));
  }
  all.push_back(
      documents(even(numbers(23))).pack(6, {.how = PackHow::best_fit}).repeat(2).batch(2));
  all.push_back(windows(documents(generated(40)).pack(5), 4).batch(3));
  all.push_back(documents(lucky(numbers(40)))
                    .bucket_by_length({2, 5}, {4, 3, 2}, {.padding = {}, .window = 6})
                    .repeat(2));
  all.push_back(documents(generated(90)).batch_by_tokens(12, {.tail = Tail::pad}));
  all.push_back(documents(generated(90)).bucket_by_length({3}, {5, 4}, {.tail = Tail::drop}));
  return all;
}

/// Sources of streams, and verbs of rows before batch.
inline std::vector<Dataset> streams_of_rows() {
  std::vector<Dataset> all;
  for (const std::int64_t count : {0, 1, 4, 13}) {
    all.push_back(generated(count).batch(4));
    all.push_back(counted(count).batch(3));
    all.push_back(told(count).batch(4));
  }
  all.push_back(changing().repeat(3).batch(4));
  all.push_back(even(numbers(23)).batch(4));
  all.push_back(even(drawn(numbers(23).shuffle())).batch(4));
  all.push_back(drawn(lucky(counted(23))).batch(4));
  all.push_back(lucky(numbers(11).shuffle().repeat(2)).repeat(2).batch(4));
  all.push_back(numbers(30).take_while([](std::int64_t x) { return x < 13; }).batch(4));
  all.push_back(counted(30).skip(3).take(17).shard(2, 1).batch(3));
  all.push_back(even(generated(30)).enumerate().batch(4));
  for (const std::uint64_t window : {1U, 3U, 5U, 100U})
    all.push_back(windows(generated(17), window).batch(4));
  all.push_back(windows(windows(told(17), 4), 7).batch(3));
  all.push_back(windows(lucky(counted(17)), 4).repeat(2).batch(5));
  all.push_back(even(generated(9)).concatenate(drawn(numbers(6).shuffle())).batch(4));
  all.push_back(numbers(5).concatenate(lucky(counted(9))).repeat(2).batch(4));
  all.push_back(Dataset::zip({even(counted(17)), records(30).shuffle(), generated(40)}).batch(3));
  all.push_back(rows_of_elements(9).batch(4));
  all.push_back(drawn(windows(rows_of_elements(9), 3)).repeat(2).batch(4));
  return all;
}

/// One element to many, and verbs of whole steps.
inline std::vector<Dataset> streams_of_steps() {
  const auto part = [](std::int64_t x) { return counted(x % 5).repeat(2); };
  const auto random_part = [](std::int64_t x) {
    return drawn(numbers(x % 4).shuffle({.seed = static_cast<std::uint64_t>(x)}));
  };
  std::vector<Dataset> all;
  all.push_back(numbers(9).flat_map(part).batch(4));
  all.push_back(lucky(counted(9)).flat_map(random_part).batch(4));
  all.push_back(
      numbers(4).flat_map([part](std::int64_t x) { return numbers(x).flat_map(part); }).batch(3));
  for (const std::uint64_t cycle : {1U, 2U, 5U})
    for (const std::uint64_t block : {1U, 3U})
      all.push_back(
          generated(7).interleave(part, {.cycle = cycle, .block = block}).repeat(2).batch(4));
  all.push_back(windows(even(numbers(14)).interleave(random_part, {.cycle = 3}), 5).batch(4));
  const Dataset steps = lucky(numbers(31)).batch(4);
  all.push_back(steps.repeat(2));
  all.push_back(steps.take(3));
  all.push_back(steps.skip(2));
  all.push_back(steps.shard(2, 1));
  all.push_back(steps.prefetch({.steps = 2}).repeat(2).take(7));
  all.push_back(lucky(numbers(31)).batch(4, {.tail = Tail::drop}).repeat(2));
  all.push_back(lucky(numbers(31)).batch(4, {.tail = Tail::pad}).repeat(2));
  all.push_back(steps.concatenate(numbers(9).shuffle().batch(3)).repeat(2));
  all.push_back(numbers(9).batch(2).concatenate(counted(7).batch(3)));
  all.push_back(drawn(steps.unbatch()).repeat(2).batch(5));
  all.push_back(drawn(generated(13).batch(4, {.tail = Tail::drop}).unbatch()).batch(3));
  all.push_back(steps.map([](std::int64_t x) { return -x; }));
  all.push_back(steps.map([](const Sample& batch) {
    const auto x = batch.tensor().values<std::int64_t>();
    std::vector<std::int64_t> turned(x.rbegin(), x.rend());
    return Sample(Tensor::of(std::span<const std::int64_t>(turned), batch.tensor().shape()));
  }));
  all.push_back(windows(lucky(numbers(31)).batch(4).unbatch(), 6).batch(3));
  all.push_back(generated(13).repeat().take(30).batch(4));
  return all;
}

inline std::vector<Pipeline> stream_pipelines() {
  std::vector<Pipeline> all;
  const auto add = [&all](std::vector<Dataset> datasets) {
    for (Dataset& dataset : datasets)
      all.push_back({"stream " + std::to_string(all.size()), std::move(dataset)});
  };
  add(streams_of_rows());
  add(streams_of_steps());
  add(streams_of_documents());
  return all;
}

}  // namespace penstock::testing
