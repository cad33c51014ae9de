// tested in src/feed/stream_lengths_test.cc
#include "verb/bucket_stream.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "graph/tail.h"
#include "plan/cursor.h"
#include "plan/flow_kinds.h"
#include "plan/run_stage.h"
#include "sample/rows.h"
#include "verb/batch.h"
#include "verb/catalogue.h"
#include "verb/kinds.h"
#include "verb/row_lengths.h"

namespace penstock {
namespace {

struct CompiledBuckets {
  StreamBuckets settings;
  std::uint32_t leaf = 0;
  Tail tail = Tail::short_;                   // or drop, or pad
  std::shared_ptr<const Stage> measure = {};  // null: the field counts
  std::string title;
};

/// Collects samples by length until a bucket is full. The samples of a bucket are delivered in the
/// order of their arrival. So its state is the state of the input at a sample before which all are
/// delivered, how many samples have arrived since, and how many of each bucket were delivered.
class BucketCursor final : public StepCursor {
 public:
  BucketCursor(const Flow& input, Turn turn, const CompiledBuckets& compiled)
      : input_flow_(input),
        input_(input.open(turn)),
        turn_(turn),
        own_(compiled),
        chunk_(input.spec()),
        buckets_(compiled.settings.buckets.size()) {}

  Result<bool> pull(PulledStep& step, Pulling& pulling) override {
    for (;;) {
      if (const auto late = waited_too_long()) return deliver(*late, step);
      while (next_ == lengths_.size() && !ended_)  // all samples of a chunk may be skipped
        if (auto done = refill(pulling); !done) return std::move(done.failure());
      if (next_ == lengths_.size()) return deliver_rest(step);
      const std::size_t number = take_next();
      if (buckets_[number].rows >= size_of(number)) return deliver(number, step);
    }
  }

  void save(Anchor& anchor) override {
    const Chunk& base = oldest_needed();
    anchor.numbers.push_back(arrived_ - base.first);
    for (std::size_t i = 0; i < buckets_.size(); ++i)
      anchor.numbers.push_back(buckets_[i].delivered - base.arrived[i]);
    write_anchor(base.before, anchor);
  }

  Result<void> restore(AnchorReader& anchor, Pulling& pulling) override {
    const std::uint64_t passed = anchor.number();
    std::vector<std::uint64_t> delivered(buckets_.size());
    for (std::uint64_t& count : delivered) count = anchor.number();
    const Anchor before = anchor.anchor();
    AnchorReader reader(before);
    if (auto done = input_->restore(reader, pulling); !done) return done;
    while (arrived_ < passed && !ended_) {
      if (auto done = refill(pulling); !done) return done;
      while (next_ < lengths_.size() && arrived_ < passed) {
        const std::size_t number = bucket_of(lengths_[next_]);
        if (buckets_[number].arrived < delivered[number]) {
          ++buckets_[number].arrived;
          ++buckets_[number].delivered;
          ++next_;
          ++arrived_;
        } else if (const std::size_t taken = take_next(); buckets_[taken].rows >= size_of(taken)) {
          refuse_state();  // it would have been delivered
        }
      }
    }
    for (std::size_t i = 0; i < buckets_.size(); ++i)
      if (buckets_[i].delivered != delivered[i]) refuse_state();
    return {};
  }

 private:
  [[noreturn]] void refuse_state() const {
    throw StateError(
        fmt::format("{}: the samples of the stream do not have the lengths that they had when the "
                    "state was saved",
                    own_.title),
        {}, "load it with the dataset that it was saved with");
  }
  struct Pending {
    std::unique_ptr<RowBuffer> buffer;
    std::size_t rows = 0;
    std::uint64_t first = 0;  // number of its first row in the stream, if it has one
    std::uint64_t arrived = 0;
    std::uint64_t delivered = 0;
  };
  /// Samples that were pulled together.
  struct Chunk {
    std::uint64_t first = 0;             // number of the first in the stream
    Anchor before;                       // the state of the input before it
    std::vector<std::uint64_t> arrived;  // before it, by bucket
  };

  [[nodiscard]] std::size_t size_of(std::size_t bucket) const {
    return static_cast<std::size_t>(own_.settings.buckets[bucket].size);
  }
  [[nodiscard]] std::size_t bucket_of(std::uint32_t length) const {
    const auto& all = own_.settings.buckets;
    return static_cast<std::size_t>(
        std::ranges::find_if(all, [&](const Bucket& each) { return length < each.high; }) -
        all.begin());
  }

  /// Pulls the next samples; many at a time, so that threads can share the work on them.
  Result<void> refill(Pulling& pulling) {
    constexpr std::size_t kAtOnce = 64;
    Chunk chunk{arrived_, {}, {}};
    input_->save(chunk.before);
    for (const Pending& each : buckets_) chunk.arrived.push_back(each.arrived);
    drop_chunks();
    chunks_.push_back(std::move(chunk));
    chunk_.reserve(kAtOnce);
    lengths_.clear();
    next_ = 0;
    auto got = input_->pull(chunk_.rows(0, kAtOnce), pulling);
    if (!got) return std::move(got.failure());
    ended_ = *got < kAtOnce;
    return *got == 0 ? Result<void>() : measure(chunk_.rows(0, *got), pulling);
  }

  /// Finds the lengths of the rows. Those without one leave the stream if failures are skipped.
  Result<void> measure(const BlockView& rows, Pulling& pulling) {
    const Scratch::Frame frame(pulling.context.scratch);
    std::vector<std::uint8_t> failed(rows.rows, 0);
    std::optional<ScratchBlock> made;
    if (own_.measure) {
      made.emplace(own_.measure->spec(), rows.rows, pulling.context.scratch);
      auto done = run_stage(*own_.measure, {turn_, 0, &rows}, made->view(), pulling, failed.data());
      if (!done) return std::move(done.failure());
    }
    std::vector<std::uint8_t> good(rows.rows, 1);
    const BlockView& measured = made ? made->view() : rows;
    const RowLengths lengths(measured, own_.settings.rule);
    for (std::size_t row = 0; row < rows.rows; ++row) {
      good[row] = failed[row] == 0 ? 1 : 0;
      if (good[row] == 0) continue;
      auto length = lengths[row];
      if (length && bucket_of(*length) == buckets_.size())
        length = Failure{fmt::format("a sample has length {}, the last boundary is {}", *length,
                                     own_.settings.buckets.back().high),
                         {},
                         "add a boundary above it, or cut long samples before"};
      if (length) {
        lengths_.push_back(*length);
        continue;
      }
      length.failure().row = row;
      length.failure().where.op = own_.title;
      Failure failure = at_sample(std::move(length.failure()), input_flow_.ids(), rows);
      if (pulling.failures == nullptr) return failure;
      pulling.failures->add(std::move(failure), nullptr);
      good[row] = 0;
    }
    (void)keep_rows(rows, good);
    return {};
  }

  /// Adds the next sample of the chunk to its bucket, and returns the bucket.
  std::size_t take_next() {
    const std::size_t number = bucket_of(lengths_[next_]);
    Pending& bucket = buckets_[number];
    if (!bucket.buffer) bucket.buffer = std::make_unique<RowBuffer>(input_flow_.spec());
    if (bucket.rows == bucket.buffer->capacity())
      bucket.buffer->reserve(std::max(
          bucket.rows + 1, std::min(size_of(number), std::max<std::size_t>(8, 2 * bucket.rows))));
    if (bucket.rows == 0) bucket.first = arrived_;
    copy_rows(chunk_.rows(0, lengths_.size()), next_, bucket.buffer->rows(0, bucket.rows + 1),
              bucket.rows, 1);
    ++bucket.rows;
    ++bucket.arrived;
    ++arrived_;
    ++next_;
    return number;
  }

  /// The bucket with the oldest sample, if that has waited for as many samples as it may.
  [[nodiscard]] std::optional<std::size_t> waited_too_long() const {
    if (!own_.settings.window) return std::nullopt;
    for (std::size_t i = 0; i < buckets_.size(); ++i)
      if (buckets_[i].rows > 0 && arrived_ - buckets_[i].first > *own_.settings.window) return i;
    return std::nullopt;
  }

  bool deliver(std::size_t number, PulledStep& step) {
    Pending& bucket = buckets_[number];
    std::swap(step.buffer, bucket.buffer);
    if (bucket.buffer && &bucket.buffer->spec() != &input_flow_.spec()) bucket.buffer = nullptr;
    step.rows = std::exchange(bucket.rows, 0);
    bucket.delivered += step.rows;
    step.leaf = own_.leaf;
    step.pass = turn_.pass;
    step.padded_to = own_.tail == Tail::pad ? size_of(number) : 0;
    return true;
  }

  /// At the end: what the buckets still have.
  bool deliver_rest(PulledStep& step) {
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      if (buckets_[i].rows == 0) continue;
      if (own_.tail != Tail::drop) return deliver(i, step);
      buckets_[i].delivered += std::exchange(buckets_[i].rows, 0);
    }
    return false;
  }

  /// Keeps the last chunk and those in which a bucket begins: a state needs no others, because a
  /// bucket is delivered as a whole.
  void drop_chunks() {
    std::deque<Chunk> kept;
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      const std::uint64_t end = i + 1 < chunks_.size() ? chunks_[i + 1].first : UINT64_MAX;
      const bool begins = std::ranges::any_of(buckets_, [&](const Pending& bucket) {
        return bucket.rows > 0 && bucket.first >= chunks_[i].first && bucket.first < end;
      });
      if (begins || i + 1 == chunks_.size()) kept.push_back(std::move(chunks_[i]));
    }
    chunks_ = std::move(kept);
  }
  const Chunk& oldest_needed() {
    if (chunks_.empty()) {  // nothing was pulled
      Chunk chunk{0, {}, std::vector<std::uint64_t>(buckets_.size(), 0)};
      input_->save(chunk.before);
      chunks_.push_back(std::move(chunk));
    }
    drop_chunks();
    return chunks_.front();
  }

  const Flow& input_flow_;
  const CursorPtr input_;
  const Turn turn_;
  const CompiledBuckets& own_;
  RowBuffer chunk_;
  std::vector<std::uint32_t> lengths_;  // of the rows of the chunk
  std::size_t next_ = 0;                // row of the chunk that is taken next
  bool ended_ = false;
  std::uint64_t arrived_ = 0;  // samples that were taken
  std::vector<Pending> buckets_;
  std::deque<Chunk> chunks_;  // the first has the oldest sample that is not delivered
};

class StreamBucketVerb final : public Verb {
 public:
  explicit StreamBucketVerb(StreamBuckets settings) : settings_(std::move(settings)) {}

  [[nodiscard]] Words words() const override { return {"stream_buckets", line(settings_.tail)}; }
  [[nodiscard]] std::string line(std::optional<Tail> tail) const {
    std::vector<std::string> parts;
    for (const Bucket& bucket : settings_.buckets)
      parts.push_back(bucket.high == UINT64_MAX
                          ? fmt::format("from {}: {}", bucket.low, bucket.size)
                          : fmt::format("to {}: {}", bucket.high - 1, bucket.size));
    std::string text = fmt::format("buckets({}", fmt::join(parts, ", "));
    if (!settings_.rule.field.empty()) text += fmt::format(", field={}", settings_.rule.field);
    if (settings_.rule.measure) text += ", length by a function";
    if (settings_.window) text += fmt::format(", window={}", *settings_.window);
    if (tail) text += fmt::format(", tail={}", tail_name(*tail));
    return text + ")";
  }
  [[nodiscard]] Facts facts(const Node&) const override {
    return {.is_leaf = true, .counts_steps = true};
  }
  void add_order(const Node& node, const Counting& counting,
                 std::vector<std::string>& lines) const override {
    add_order_of_inputs(node, counting, lines);
    std::optional<Tail> tail = settings_.tail ? settings_.tail : counting.tail;
    if (tail && !changes_steps(*tail)) tail.reset();
    lines.push_back(line(tail));
  }
  void add_values(const Node&, Digest& digest) const override {
    if (settings_.padding) digest.add(padding_written(*settings_.padding).dump());
  }
  [[nodiscard]] Json arguments() const override {
    refuse_measure(settings_.rule);
    Json json{{"field", settings_.rule.field}, {"window", settings_.window.value_or(0)}};
    for (const Bucket& bucket : settings_.buckets)
      json["buckets"].push_back({bucket.low, bucket.high, bucket.size});
    if (settings_.tail) json["tail"] = tail_name(*settings_.tail);
    if (settings_.padding) json["padding"] = padding_written(*settings_.padding);
    return json;
  }
  [[nodiscard]] Dataset apply(const Node&, const std::vector<Dataset>& inputs) const override {
    return add_stream_buckets(inputs.front(), settings_);
  }
  [[nodiscard]] StagePtr samples(Compiler&, const Node&, std::uint64_t) const override {
    return unreachable();
  }
  [[nodiscard]] FlowPtr flow(Compiler&, const Node&, std::uint64_t) const override {
    return unreachable();
  }
  [[nodiscard]] std::vector<LeafProgram> chains(Compiler&, const Node&,
                                                std::uint64_t) const override {
    unreachable();
  }
  [[nodiscard]] StepFlowPtr step_flow(Compiler& compiler, const Node& node, std::uint64_t first_id,
                                      std::optional<Tail> tail,
                                      std::vector<LeafProgram>& chains) const override {
    FlowPtr input = compiler.flow(node.input(), first_id);
    CompiledBuckets compiled{settings_, static_cast<std::uint32_t>(chains.size()),
                             stream_tail(node, tail), nullptr, words().line};
    if (compiled.tail == Tail::drop && settings_.window)
      throw ConfigError("bucket_by_length: a window delivers short steps, and tail=drop none", {},
                        "leave out the window, or the tail");
    if (settings_.rule.measure)
      compiled.measure = measured_stage(pulled_stage(input->spec(), input->ids()), settings_.rule,
                                        compiler.counts().second);
    chains.push_back({pulled_stage(input->spec(), input->ids()), {}});
    chains.back().padding = settings_.padding;
    return steps_over<BucketCursor>(std::move(input), std::move(compiled));
  }
  [[nodiscard]] Steps steps(const Node& node, StepsWalk& walk) const override {
    return walk.leaf(node, *groups(node, walk.tail));
  }
  [[nodiscard]] Promise promise(const Node& node, const Delivery& delivery) const override {
    return promise_of(node.input(), {delivery.tail});
  }
  /// Those of the bucket with the smallest steps.
  [[nodiscard]] std::optional<Groups> groups(const Node&, std::optional<Tail> tail) const override {
    std::int64_t smallest = settings_.buckets.front().size;
    for (const Bucket& bucket : settings_.buckets) smallest = std::min(smallest, bucket.size);
    return Groups{kEndless, static_cast<std::uint64_t>(smallest),
                  settings_.tail.value_or(tail.value_or(Tail::short_))};
  }
  [[nodiscard]] const Padding* padding() const { return settings_.padding.get(); }

 private:
  [[noreturn]] static std::nullptr_t unreachable() {
    throw InternalError("bucket_by_length: a stream was compiled as indexed data");
  }

  const StreamBuckets settings_;
};

}  // namespace

Dataset add_stream_buckets(const Dataset& input, StreamBuckets settings) {
  for (const Bucket& bucket : settings.buckets)
    if (bucket.size < 1)
      throw ConfigError(
          fmt::format("bucket_by_length: size must be positive, got {}", bucket.size));
  if (settings.window == 0U) throw ConfigError("bucket_by_length: window must be positive, got 0");
  if (settings.padding) check_padding("bucket_by_length", *settings.padding, input.element_spec());
  for (std::size_t i = 0; i < settings.buckets.size(); ++i)
    if (settings.buckets[i].low != (i == 0 ? 0 : settings.buckets[i - 1].high) ||
        settings.buckets[i].high <= settings.buckets[i].low)
      throw ConfigError("bucket_by_length: the buckets do not follow each other");
  Node node = after(input, std::make_shared<const StreamBucketVerb>(std::move(settings)));
  node.batched = true;
  return make_node(std::move(node));
}

const Padding* stream_padding_of(const Node& leaf) {
  const auto* const buckets = leaf.as<StreamBucketVerb>();
  return buckets == nullptr ? nullptr : buckets->padding();
}

Dataset parse_stream_buckets(const Parsed& parsed) {
  StreamBuckets settings;
  for (const Json& bucket : parsed.at("buckets"))
    settings.buckets.push_back({whole_number<std::uint64_t>(bucket.at(0)),
                                whole_number<std::uint64_t>(bucket.at(1)),
                                whole_number<std::int64_t>(bucket.at(2))});
  if (settings.buckets.empty() || !parsed.input().streamed())
    throw ConfigError("stream_buckets: the plan has no buckets, or its input is not a stream");
  settings.rule.field = parsed.text("field");
  if (const std::uint64_t window = parsed.count("window"); window > 0) settings.window = window;
  if (parsed.arguments.contains("tail")) settings.tail = tail_parsed(parsed.text("tail"));
  if (parsed.arguments.contains("padding"))
    settings.padding = std::make_shared<const Padding>(padding_parsed(parsed.at("padding")));
  return add_stream_buckets(parsed.input(), std::move(settings));
}

}  // namespace penstock
