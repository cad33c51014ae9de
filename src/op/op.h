#pragma once
// An op turns one block into another. Const and stateless; called from several threads at once.

#include <cstdint>
#include <memory>
#include <string>

#include "base/json_fwd.h"
#include "base/random_key.h"
#include "penstock/block.h"
#include "penstock/dataset.h"
#include "penstock/result.h"
#include "source/context.h"

namespace penstock {

/// The data that an op may use besides the values of the rows.
struct OpContext : Context {
  explicit OpContext(const Context& context, const RowRng* row_rng = nullptr)
      : Context(context), rng(row_rng) {}
  const RowRng* rng;  // set for random ops
};

class Op {
 public:
  virtual ~Op() = default;
  /// "map", or the name in the catalogue.
  [[nodiscard]] virtual std::string word() const = 0;
  /// One short line for plans and errors.
  [[nodiscard]] virtual std::string describe() const = 0;
  /// The result's spec. Throws ConfigError if the op cannot work on `input`. Unknown if the input
  /// or the result is only known by running.
  [[nodiscard]] virtual ElementSpec output(const ElementSpec& input) const = 0;
  [[nodiscard]] virtual bool random() const { return false; }
  /// The seed of random ops of the catalogue.
  [[nodiscard]] virtual std::uint64_t seed() const { return 0; }
  /// True if each output row depends only on its input row, so that after batch any block may be
  /// computed.
  [[nodiscard]] virtual bool row_wise() const { return true; }
  /// True for an op of whole batches that draws random numbers for each row by the row's key.
  [[nodiscard]] virtual bool draws_by_row() const { return false; }
  /// True for functions of a Sample: on whole batches they are called once for all rows.
  [[nodiscard]] virtual bool takes_samples() const { return false; }
  /// True for functions of the list of all samples of a batch: the samples, and the batch, may have
  /// any spec, also one that is unknown before running.
  [[nodiscard]] virtual bool takes_lists() const { return false; }
  /// How many rows it processes at the same time outside the engine's threads (in worker
  /// processes); 0: none, one thread computes one row after the other.
  [[nodiscard]] virtual std::size_t rows_at_once() const { return 0; }
  /// True if a call costs as much as hundreds of rows: short batches are then computed together.
  [[nodiscard]] virtual bool prefers_long_blocks() const { return false; }
  /// Arguments to create it again, for ops of the catalogue.
  [[nodiscard]] virtual Json arguments() const;
  /// The name of a user's function; such ops are looked up by name.
  [[nodiscard]] virtual std::string name() const { return {}; }

  /// Both specs known: column by column.
  virtual Result<void> run(const BlockView& in, const BlockView& out,
                           const OpContext& context) const = 0;
  /// One sample; if the input or output spec is unknown before running.
  [[nodiscard]] virtual Result<Sample> run_sample(const Sample& in, const OpContext& context,
                                                  std::size_t row) const;
  /// Several samples, if one of the specs is unknown: one by one, unless the op overrides it.
  virtual Result<void> run_samples(const BlockView& in, const BlockView& out,
                                   const OpContext& context) const;
};

/// The index of the field of an op. Throws ConfigError naming the op if there is none.
std::size_t field_index(const std::string& word, const std::string& field, const ElementSpec& spec);
/// Copies all columns unchanged except `index`; all of them if there is no such column.
void copy_other_columns(const BlockView& in, const BlockView& out, std::size_t index);

std::shared_ptr<const Op> make_column_op(ColumnFn fn, std::string name);
std::shared_ptr<const Op> make_sample_op(SampleFn fn, const MapOptions& options);
std::shared_ptr<const Op> make_block_op(BlockFn fn, const MapOptions& options);

/// The op `word` of the catalogue. Throws ConfigError that lists the existing names.
std::shared_ptr<const Op> make_catalogued_op(const std::string& word, const Json& arguments);
/// The names of the catalogue.
std::vector<std::string> catalogue_words();
std::shared_ptr<const Op> make_audio_decode(const Json& arguments);
std::shared_ptr<const Op> make_cast(const Json& arguments);
std::shared_ptr<const Op> make_image_chain(const Json& arguments);
std::shared_ptr<const Op> make_encode_image(const Json& arguments);
std::shared_ptr<const Op> make_one_hot(const Json& arguments);
std::shared_ptr<const Op> make_mixup(const Json& arguments);
std::shared_ptr<const Op> make_cutmix(const Json& arguments);
std::shared_ptr<const Op> make_read_file(const Json& arguments);
std::shared_ptr<const Op> make_truncate(const Json& arguments);

}  // namespace penstock
