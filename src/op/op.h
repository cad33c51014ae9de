#pragma once
// An op turns one block into another. Const and stateless; called from several threads at once.

#include <cstdint>
#include <memory>
#include <string>

#include "base/json_fwd.h"
#include "base/random_key.h"
#include "base/result.h"
#include "penstock/block.h"
#include "penstock/dataset.h"
#include "sample/scratch.h"

namespace penstock {

/// What an op may know about the rows at hand besides their values.
struct OpContext {
  const RowRng* rng = nullptr;  // set for random ops
  Scratch* scratch = nullptr;   // for what lives while the op runs; null: its own
};

class Op {
 public:
  virtual ~Op() = default;
  /// "map", or the name in the catalogue.
  [[nodiscard]] virtual std::string word() const = 0;
  /// One short line for plans and errors.
  [[nodiscard]] virtual std::string describe() const = 0;
  /// The result's spec; throws ConfigError when the op cannot work on `input`. Unknown when either
  /// the input or the result is only known by running.
  [[nodiscard]] virtual ElementSpec output(const ElementSpec& input) const = 0;
  [[nodiscard]] virtual bool random() const { return false; }
  /// What random ops of the catalogue draw with.
  [[nodiscard]] virtual std::uint64_t seed() const { return 0; }
  /// True when each row depends on itself alone, so that after batch any block may be asked.
  [[nodiscard]] virtual bool row_wise() const { return true; }
  /// True for an op of whole batches that draws for each row by the row's key.
  [[nodiscard]] virtual bool draws_by_row() const { return false; }
  /// True for functions of a Sample: on whole batches those are called once for all rows.
  [[nodiscard]] virtual bool takes_samples() const { return false; }
  /// True for functions of the list of all samples of a batch: those may be of any spec, also one
  /// that only running shows, and so may the batch that comes of it.
  [[nodiscard]] virtual bool takes_lists() const { return false; }
  /// How many of its rows are worked on at once, outside the engine's threads, where it has such
  /// help (worker processes); 0: none, one thread does one row after the other.
  [[nodiscard]] virtual std::size_t rows_at_once() const { return 0; }
  /// True where a call costs as much as hundreds of rows: short batches are then computed together.
  [[nodiscard]] virtual bool prefers_long_blocks() const { return false; }
  /// Arguments that make it again, for ops of the catalogue.
  [[nodiscard]] virtual Json arguments() const;
  /// A user function's name; such ops travel by name.
  [[nodiscard]] virtual std::string name() const { return {}; }

  /// Both specs known: column by column.
  virtual Result<void> run(const BlockView& in, const BlockView& out,
                           const OpContext& context) const = 0;
  /// One sample; for input or output whose spec only running shows.
  [[nodiscard]] virtual Result<Sample> run_sample(const Sample& in, const OpContext& context,
                                                  std::size_t row) const;
  /// Several samples, where one of the specs is not known: one by one, unless the op knows better.
  virtual Result<void> run_samples(const BlockView& in, const BlockView& out,
                                   const OpContext& context) const;
};

/// Where the field an op is for stands; ConfigError naming the op where there is none.
std::size_t field_index(const std::string& word, const std::string& field, const ElementSpec& spec);
/// Copies all columns as they are but `index`; none is left out where there is no such column.
void copy_other_columns(const BlockView& in, const BlockView& out, std::size_t index);

std::shared_ptr<const Op> make_column_op(ColumnFn fn, std::string name);
std::shared_ptr<const Op> make_sample_op(SampleFn fn, const MapOptions& options);
std::shared_ptr<const Op> make_block_op(BlockFn fn, const MapOptions& options);

/// The op `word` of the catalogue; throws ConfigError naming the words there are.
std::shared_ptr<const Op> make_catalogued_op(const std::string& word, const Json& arguments);
/// The words of the catalogue.
std::vector<std::string> catalogue_words();
std::shared_ptr<const Op> make_cast(const Json& arguments);
std::shared_ptr<const Op> make_image_chain(const Json& arguments);
std::shared_ptr<const Op> make_one_hot(const Json& arguments);
std::shared_ptr<const Op> make_mixup(const Json& arguments);
std::shared_ptr<const Op> make_cutmix(const Json& arguments);
std::shared_ptr<const Op> make_read_file(const Json& arguments);

}  // namespace penstock
