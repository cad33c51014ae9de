#pragma once
// The position of a loader, as plain JSON: under 1 KB, or up to 64 KB for the cursors of a stream.
// It counts the batches that the consumer received, not those prepared in advance. It is the same
// on every rank and loads with any number of shares and threads and, unless the dataset counts
// steps, any batch size.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <penstock/digests.h>
#include <penstock/tail.h>

namespace penstock {

struct State {
  /// From `step` on, starting at `position`, batches held `batch` samples and ended as `tail` says.
  struct Size {
    std::uint64_t step = 0;
    std::uint64_t position = 0;
    std::uint64_t batch = 1;
    Tail tail = Tail::short_;
    bool operator==(const Size&) const = default;
  };

  std::uint64_t epoch = 0;
  std::uint64_t step = 0;      // steps received in this epoch
  std::uint64_t position = 0;  // samples of the order delivered, or steps if steps are counted
  bool counts_samples = true;
  std::vector<Size> sizes;  // batch sizes of this epoch so far
  std::optional<std::uint64_t> drawn_seed;
  /// The epoch of a Feed with steps_per_epoch, whose epochs differ from passes over the data.
  struct Epochs {
    std::uint64_t epoch = 0;
    std::uint64_t step = 0;  // steps received in it
    bool operator==(const Epochs&) const = default;
  };
  std::optional<Epochs> epochs;
  Digests digests;
  std::vector<std::string> order;  // the inputs of the order digest, shortened

  /// The position of a stream.
  struct Stream {
    std::vector<std::uint64_t> numbers;  // of its parts, in their order
    std::vector<std::string> texts;      // cursors of generators
    std::string next;                    // digest of the element that must come next, if known
    std::uint64_t batch = 0;             // the batch size for which it is next
    bool operator==(const Stream&) const = default;
  };
  std::optional<Stream> stream;

  bool operator==(const State&) const = default;
  [[nodiscard]] std::string to_json() const;
  /// Throws StateError if the text is truncated, garbled or of a newer format.
  static State parse(const std::string& text);
};

}  // namespace penstock
