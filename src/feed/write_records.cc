#include "penstock/write_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

#include "base/crc32c.h"
#include "base/json.h"
#include "base/printable.h"
#include "penstock/io.h"
#include "penstock/loader.h"
#include "record/record_kind.h"
#include "record/shard_encoder.h"
#include "record/tar.h"
#include "record/tfrecord_kind.h"
#include "run/store_rows.h"
#include "sample/spec_of_samples.h"
#include "source/build_indexes.h"

namespace penstock {
namespace {

constexpr std::int64_t kTogether = 64;  // samples that a loader delivers at a time

/// One file in shards.json.
struct ShardLine {
  std::string file;
  std::uint64_t first = 0;    // sample of the dataset
  std::uint64_t samples = 0;  // of the dataset, with those that were skipped
  std::uint64_t written = 0;
  std::uint64_t bytes = 0;
  std::uint32_t crc = 0;
};

[[noreturn]] void refuse_io(const std::string& path, const Failure& failure) {
  Where where;
  where.file = path;
  throw IoError(fmt::format("write_records: {}", failure.message), where, failure.remedy);
}

/// What was written, and of what; the content of shards.json.
class Manifest {
 public:
  Manifest(std::string folder, const Dataset& dataset, const WriteRecordsOptions& options)
      : folder_(std::move(folder)) {
    const Digests digests = dataset.digests();
    stream_ = dataset.streamed();
    identity_ = {{"format", options.format},
                 {"shards", options.shards},
                 {"shard_bytes", options.shards > 0 ? 0 : options.shard_bytes},
                 {"order", digests.order},
                 {"values", digests.values}};
  }

  [[nodiscard]] const std::vector<ShardLine>& shards() const { return shards_; }
  [[nodiscard]] bool complete() const { return complete_; }
  [[nodiscard]] std::string path() const { return folder_ + "/shards.json"; }
  [[nodiscard]] std::string path_of(const ShardLine& shard) const {
    return folder_ + "/" + shard.file;
  }

  /// The loader's state after the last complete file of a stream.
  [[nodiscard]] const std::string& stream_state() const { return stream_state_; }
  void set_stream_state(std::string state) { stream_state_ = std::move(state); }

  /// Reads what an earlier call left. Throws ConfigError if that was something else.
  void load(Io& io) {
    constexpr std::uint64_t kBytesMax = std::uint64_t{256} << 20;
    const auto there = io.list(folder_);
    if (!there) refuse_io(folder_, there.failure());
    const auto has = [&](const auto& is) { return std::ranges::any_of(*there, is); };
    if (!has([](const FolderEntry& entry) { return entry.name == "shards.json"; })) {
      if (has([](const FolderEntry& entry) {
            return entry.name.starts_with("data-") && !entry.name.ends_with(".tmp");
          }))
        throw ConfigError(
            fmt::format("write_records: {} has files \"data-...\" and no shards.json: "
                        "they are of something else",
                        printable(folder_)),
            {}, "choose another folder, or remove its files");
      return save(io);  // from now on its files are ours
    }
    const auto text = io.read_text(path(), kBytesMax);
    if (!text) refuse_io(path(), text.failure());
    const auto json = parse_json(*text);
    const auto wrong = [&](const std::string& what) {
      throw ConfigError(fmt::format("write_records: {} {}", printable(path()), what), {},
                        "choose another folder, or remove its files");
    };
    if (!json || !json->is_object() || !json->contains("identity"))
      wrong("is not a list of shards");
    if (json->at("identity") != identity_)
      wrong("lists the files of other data, or of other options");
    try {
      complete_ = json->at("complete").get<bool>();
      stream_state_ = json->value("stream_state", "");
      for (const Json& line : json->at("files")) take(io, line);
    } catch (const Json::exception&) {
      wrong("is damaged");
    }
  }

  void add(Io& io, ShardLine shard) {
    shards_.push_back(std::move(shard));
    save(io);
  }
  void finish(Io& io) {
    complete_ = true;
    save(io);
  }

 private:
  /// A file that is gone, or has another size, is written again, and those after it.
  void take(Io& io, const Json& line) {
    ShardLine shard{line.at("file").get<std::string>(),
                    whole_number<std::uint64_t>(line.at("first")),
                    whole_number<std::uint64_t>(line.at("samples")),
                    whole_number<std::uint64_t>(line.at("written")),
                    whole_number<std::uint64_t>(line.at("bytes")),
                    whole_number<std::uint32_t>(line.at("crc32c"))};
    const auto entry = io.look(path_of(shard));
    const bool there = entry && (*entry).bytes == shard.bytes;
    lost_ = lost_ || !there;
    if (lost_) {
      complete_ = false;
      // The state is that after the last file: a stream is written again from its start.
      if (!stream_) return;
      shards_.clear();
      stream_state_.clear();
      return;
    }
    shards_.push_back(std::move(shard));
  }

  void save(Io& io) const {
    Json files = Json::array();
    for (const ShardLine& shard : shards_)
      files.push_back({{"file", shard.file},
                       {"first", shard.first},
                       {"samples", shard.samples},
                       {"written", shard.written},
                       {"bytes", shard.bytes},
                       {"crc32c", shard.crc}});
    Json json{{"identity", identity_}, {"complete", complete_}, {"files", files}};
    if (!stream_state_.empty() && !complete_) json["stream_state"] = stream_state_;
    if (const auto done = io.publish(path(), json.dump(1) + "\n"); !done)
      refuse_io(path(), done.failure());
  }

  const std::string folder_;
  Json identity_;
  bool stream_ = false;
  std::vector<ShardLine> shards_;
  std::string stream_state_;
  bool complete_ = false;
  bool lost_ = false;
};

/// A file that appears when it is complete.
class Draft {
 public:
  Draft(Io& io, std::string path) : io_(io), path_(std::move(path)), draft_(path_ + ".tmp") {
    if (auto gone = io_.remove(draft_); !gone) refuse_io(draft_, gone.failure());
    auto file = io_.create(draft_);
    if (!file) refuse_io(draft_, file.failure());
    file_ = std::move(*file);
  }
  ~Draft() {
    if (file_) static_cast<void>(io_.remove(draft_).ok());
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  void append(const std::string& bytes) {
    if (bytes.empty()) return;
    const std::string_view part = bytes;
    if (const auto done = file_->append({&part, 1}); !done) refuse_io(path_, done.failure());
    crc_ = crc32c(part, crc_);
    bytes_ += part.size();
  }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::uint32_t crc() const { return crc_; }
  void publish() {
    auto done = file_->flush();
    if (done) done = io_.rename(draft_, path_);
    if (!done) refuse_io(path_, done.failure());
    file_ = nullptr;
  }

 private:
  Io& io_;
  const std::string path_;
  const std::string draft_;
  std::unique_ptr<FileAppender> file_;
  std::uint64_t bytes_ = 0;
  std::uint32_t crc_ = 0;
};

class Writing {
 public:
  Writing(const Dataset& dataset, std::string folder, const WriteRecordsOptions& options)
      : dataset_(dataset),
        folder_(std::move(folder)),
        options_(options),
        manifest_(folder_, dataset, options),
        encoder_(make_shard_encoder(options.format)) {
    options_.loader.shares = Shares{1, 0, 1};
    if (const auto size = dataset.cardinality(); size.is_counted()) total_ = size.count();
    if (dataset.element_spec().known) set_spec(dataset.element_spec());
  }

  WrittenRecords run() {
    if (auto made = io_.create_folder(folder_); !made) refuse_io(folder_, made.failure());
    const auto lock = wait_for_folder(io_, folder_, "write_records", options_.loader.while_waiting);
    manifest_.load(io_);
    result_.found = manifest_.shards().size();
    if (!manifest_.complete()) {
      if (total_) {
        write_indexed();
      } else {
        write_stream();
      }
      manifest_.finish(io_);
      write_indexes();
    }
    for (const ShardLine& shard : manifest_.shards()) {
      result_.files.push_back(manifest_.path_of(shard));
      result_.samples += shard.written;
      result_.bytes += shard.bytes;
    }
    return std::move(result_);
  }

 private:
  /// Files of equal numbers of samples.
  void write_indexed() {
    std::uint64_t shards = options_.shards;
    if (shards == 0 || needs_spec()) {
      const std::vector<Sample> samples = look_at_some();
      if (needs_spec()) set_spec(samples.empty() ? ElementSpec::none() : spec_of_samples(samples));
      if (shards == 0) shards = shards_by_size(samples);
    }
    shards = std::clamp<std::uint64_t>(shards, 1, std::max<std::uint64_t>(*total_, 1));
    for (std::uint64_t number = manifest_.shards().size(); number < shards; ++number) {
      const std::uint64_t first = *total_ * number / shards;
      const std::uint64_t samples = *total_ * (number + 1) / shards - first;
      Draft draft(io_, file_path(number));
      ShardLine shard{file_name(number), first, samples};
      auto loader = loader_of(
          dataset_.skip(static_cast<std::int64_t>(first)).take(static_cast<std::int64_t>(samples)));
      while (const auto batch = loader->next()) write(*batch, draft, shard, first);
      close(draft, shard, *loader);
    }
  }

  /// Files that end after a group of samples that reaches their size. A call that was interrupted
  /// is continued from the state of the loader at the end of the last complete file.
  void write_stream() {
    auto loader = loader_of(dataset_);
    std::uint64_t done = 0;
    for (const ShardLine& shard : manifest_.shards()) done += shard.written;
    if (!manifest_.stream_state().empty()) {
      const State state = State::parse(manifest_.stream_state());
      if (state.epoch > 0) return;  // the last file ended with the stream
      loader->restore(state);
      if (needs_spec()) set_spec(spec_of_beginning());
    }
    std::unique_ptr<Draft> draft;
    ShardLine shard;
    const auto end_file = [&] {
      done += shard.written;
      shard.samples = shard.written;
      manifest_.set_stream_state(loader->state().to_json());
      close(*draft, shard, *loader);
      draft.reset();
    };
    while (const auto batch = loader->next()) {
      const std::uint64_t number = manifest_.shards().size();
      if (!draft) {
        draft = std::make_unique<Draft>(io_, file_path(number));
        shard = {file_name(number), done};
      }
      write(*batch, *draft, shard, done);
      if (draft->bytes() + encoder_->pending_bytes() >= options_.shard_bytes) end_file();
    }
    if (draft) end_file();
  }

  void write(const Batch& batch, Draft& draft, ShardLine& shard, std::uint64_t first) {
    if (needs_spec() && batch.rows() > 0) set_spec(spec_of_samples(rows_of(batch)));
    text_.clear();
    for (std::size_t row = 0; row < batch.rows(); ++row) {
      encoder_->append(text_, batch.row(row), first + shard.written);
      ++shard.written;
    }
    draft.append(text_);
    if (options_.progress) options_.progress(shard.first + shard.written, total_);
  }

  void close(Draft& draft, ShardLine& shard, const Loader& loader) {
    text_.clear();
    encoder_->finish(text_);
    draft.append(text_);
    draft.publish();
    shard.bytes = draft.bytes();
    shard.crc = draft.crc();
    result_.skipped = skipped_ + loader.ledger().entries().size();
    if (total_) skipped_ = result_.skipped;
    manifest_.add(io_, std::move(shard));
  }

  std::unique_ptr<Loader> loader_of(const Dataset& dataset) {
    return std::make_unique<Loader>(dataset.batch(kTogether), options_.loader);
  }

  [[nodiscard]] bool needs_spec() const { return encoder_->needs_spec() && !spec_; }
  void set_spec(const ElementSpec& spec) {
    spec_ = spec;
    encoder_->set_spec(spec);
  }
  /// A spec that nothing declares: that of the first samples of a stream. All files have it, also
  /// those that a later call writes.
  ElementSpec spec_of_beginning() {
    auto loader = loader_of(dataset_);
    while (const auto batch = loader->next())
      if (batch->rows() > 0) return spec_of_samples(rows_of(*batch));
    return ElementSpec::none();
  }
  static std::vector<Sample> rows_of(const Batch& batch) {
    std::vector<Sample> rows;
    rows.reserve(batch.rows());
    for (std::size_t row = 0; row < batch.rows(); ++row) rows.push_back(batch.row(row));
    return rows;
  }

  /// Samples all over the dataset, without those that fail: the policy decides when they are
  /// written. Throws the failure of the first if all of them fail and nothing declares a spec.
  std::vector<Sample> look_at_some() {
    constexpr std::uint64_t kSamples = 64;
    const std::uint64_t count = std::min(*total_, kSamples);
    std::vector<Sample> samples;
    std::exception_ptr failure;
    for (std::uint64_t i = 0; i < count; ++i) {
      try {
        samples.push_back(dataset_.sample(*total_ * i / count));
      } catch (const SampleError&) {
        if (!failure) failure = std::current_exception();
      }
    }
    if (samples.empty() && failure && needs_spec()) std::rethrow_exception(failure);
    return samples;
  }

  std::uint64_t shards_by_size(const std::vector<Sample>& samples) const {
    const auto encoder = make_shard_encoder(options_.format);
    if (spec_) encoder->set_spec(*spec_);
    std::string text;
    for (const Sample& sample : samples) {
      try {
        encoder->append(text, sample, 0);
      } catch (const SampleError&) {
        continue;
      }
    }
    const double each = static_cast<double>(text.size() + encoder->pending_bytes()) /
                        static_cast<double>(std::max<std::size_t>(samples.size(), 1));
    return static_cast<std::uint64_t>(each * static_cast<double>(*total_) /
                                      static_cast<double>(options_.shard_bytes)) +
           1;
  }

  /// So that the first reader need not.
  void write_indexes() {
    if (options_.format == "arrow") return;  // an Arrow file ends with its index
    std::vector<std::shared_ptr<const FileHandle>> handles;
    for (const ShardLine& shard : manifest_.shards()) {
      const auto entry = io_.look(manifest_.path_of(shard));
      if (!entry) refuse_io(manifest_.path_of(shard), entry.failure());
      handles.push_back(std::make_shared<const FileHandle>(manifest_.path_of(shard), (*entry).bytes,
                                                           (*entry).modified_ns));
    }
    static_cast<void>(build_indexes(
        io_, options_.format == "tar" ? tar_kind({}) : tfrecord_kind_raw(), handles, {}));
  }

  [[nodiscard]] std::string file_name(std::uint64_t number) const {
    return fmt::format("data-{:05}.{}", number, options_.format);
  }
  [[nodiscard]] std::string file_path(std::uint64_t number) const {
    return folder_ + "/" + file_name(number);
  }

  Io& io_ = Io::real();
  const Dataset dataset_;
  const std::string folder_;
  WriteRecordsOptions options_;
  Manifest manifest_;
  const std::unique_ptr<ShardEncoder> encoder_;
  std::optional<std::uint64_t> total_;
  std::optional<ElementSpec> spec_;  // of all samples, once it is known
  std::string text_;
  WrittenRecords result_;
  std::uint64_t skipped_ = 0;
};

}  // namespace

WrittenRecords write_records(const Dataset& dataset, const std::string& folder,
                             const WriteRecordsOptions& options) {
  if (dataset.batched())
    throw ConfigError("write_records: these elements are batches", {},
                      "write the samples: leave batch() out, or add unbatch()");
  if (dataset.cardinality().is_endless())
    throw ConfigError("write_records: an endless dataset has no end to write", {}, "use take(n)");
  if (options.shards > 0 && dataset.streamed())
    throw ConfigError(
        "write_records: the number of samples of a stream is not known, so it cannot be cut into "
        "equal files",
        {}, "leave shards out: files end by their size");
  if (options.shard_bytes == 0) throw ConfigError("write_records: files need a size above 0");
  return Writing(dataset.resolve(options.loader.while_waiting), folder, options).run();
}

}  // namespace penstock
