// tested in src/feed/records_test.cc
#include "verb/record_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/cancelled.h"
#include "base/printable.h"
#include "penstock/io.h"
#include "plan/failures.h"
#include "source/find_files.h"
#include "source/record_files.h"
#include "source/record_source.h"
#include "source/record_stream.h"
#include "trace/activity.h"
#include "verb/kinds.h"
#include "verb/source.h"

namespace penstock {
namespace {

/// A compressed dataset: its files, and how records become samples.
struct Streamed {
  StreamedFiles files;
  std::shared_ptr<const RecordDecoder> decoder;
  std::string digest;  // of names and sizes
  Json arguments;
};
using StreamedPtr = std::shared_ptr<const Streamed>;

class RecordFlow final : public Flow {
 public:
  RecordFlow(StreamedPtr streamed, SourcePlace place, std::string title)
      : Flow(streamed->decoder->spec(), IdSpace{{{place.first_id, place.ordinal}}}),
        streamed_(std::move(streamed)),
        place_(place),
        title_(std::move(title)) {}
  [[nodiscard]] CursorPtr open(Turn turn) const override;

 private:
  friend class RecordCursor;
  const StreamedPtr streamed_;
  const SourcePlace place_;
  const std::string title_;
};

class RecordCursor final : public Cursor {
 public:
  RecordCursor(const RecordFlow& flow, Turn turn)
      : flow_(flow), turn_(turn), stream_(Io::real(), flow.streamed_->files) {}

  Result<std::size_t> pull(const BlockView& out, Pulling& pulling) override {
    const trace::MeasuredCall call = pulling.context.enter(flow_.title_, id(), out.rows);
    std::size_t made = 0;
    while (made < out.rows) {
      if (!pulling.context.at_sample(id())) return cancelled(made);
      auto record = stream_.next();
      if (!record) break;
      auto done = decode(*record, out, made, pulling);
      if (record->file != file_) records_ = 0;
      file_ = record->file;
      records_ = record->number + 1;
      if (done) {
        out.identity.sample_id[made] = id();
        out.identity.occurrence[made] = turn_.round;
        ++made;
      }
      ++number_;
      if (done) continue;
      Failure failure = named(std::move(done.failure()), *record, made);
      if (pulling.failures == nullptr || failure.must_raise()) return failure;
      pulling.failures->add(std::move(failure), nullptr);
    }
    return made;
  }

  void save(Anchor& anchor) override {
    anchor.numbers.insert(anchor.numbers.end(), {file_, records_, number_});
  }

  Result<void> restore(AnchorReader& anchor, Pulling&) override {
    file_ = anchor.number();
    records_ = anchor.number();
    number_ = anchor.number();
    stream_.skip_to(file_, records_);
    return {};
  }

 private:
  [[nodiscard]] std::uint64_t id() const { return flow_.place_.first_id + number_; }

  Result<void> decode(RecordStream::Record& record, const BlockView& out, std::size_t row,
                      Pulling& pulling) {
    if (record.failure) return std::move(*record.failure);
    const Scratch::Frame frame(pulling.context.scratch);
    const RecordDecoder& decoder = *flow_.streamed_->decoder;
    if (flow_.streamed_->files.kind.has_preface && accepted_file_ != record.file) {
      // Each record of the file fails if this does.
      if (auto done = decoder.accept(stream_.preface()); !done) return done;
      accepted_file_ = record.file;
    }
    RecordBytes bytes{record.bytes};
    if (decoder.lends()) {
      const auto owner = std::make_shared<const std::string>(record.bytes);
      bytes = {*owner, owner};
    }
    return decoder.decode(bytes, out, row, pulling.context.scratch);
  }

  [[nodiscard]] Failure named(Failure failure, const RecordStream::Record& record,
                              std::size_t row) const {
    const auto& file = flow_.streamed_->files.files[record.file];
    failure = in_record(std::move(failure), file.handle->path(),
                        flow_.streamed_->decoder->place(record.number, record.offset));
    failure.row = row;
    failure.where.op = flow_.title_;
    failure.where.sample = SampleKey{flow_.place_.ordinal, number_ - 1};
    failure.make_permanent();  // the position in the file is lost
    return failure;
  }

  const RecordFlow& flow_;
  const Turn turn_;
  RecordStream stream_;
  std::uint64_t file_ = 0;
  std::uint64_t records_ = 0;  // of this file
  std::uint64_t number_ = 0;   // records of all files so far
  std::optional<std::size_t> accepted_file_ = {};
};

CursorPtr RecordFlow::open(Turn turn) const {
  return std::make_unique<RecordCursor>(*this, turn);
}

class RecordStreamVerb final : public Origin {
 public:
  explicit RecordStreamVerb(StreamedPtr streamed) : streamed_(std::move(streamed)) {}
  [[nodiscard]] Words words() const override {
    const std::size_t count = streamed_->files.files.size();
    return {streamed_->files.kind.word,
            fmt::format("{}({} compressed file{})", streamed_->files.kind.word, count,
                        count == 1 ? "" : "s")};
  }
  void add_order(const Node&, const Counting&, std::vector<std::string>& lines) const override {
    lines.push_back(
        fmt::format("{} #{}", streamed_->files.kind.word, streamed_->digest.substr(0, 8)));
  }
  void add_values(const Node& node, Digest& digest) const override {
    Origin::add_values(node, digest);
    streamed_->decoder->identify(digest);
  }
  [[nodiscard]] Json arguments() const override { return streamed_->arguments; }
  [[nodiscard]] FlowPtr flow(Compiler& compiler, const Node&,
                             std::uint64_t first_id) const override {
    compiler.note(fmt::format(
        "{}: compressed files are read in order, as a stream; resuming reads a file again from its "
        "start. Decompress them to shuffle the whole dataset",
        words().line));
    if (const std::string notes = streamed_->decoder->notes(); !notes.empty())
      compiler.note(fmt::format("{}: {}", words().line, notes));
    return std::make_unique<RecordFlow>(streamed_, compiler.next_source(first_id), words().line);
  }
  [[nodiscard]] Promise promise(const Node&, const Delivery&) const override {
    return {{}, 0, false};
  }
  [[nodiscard]] std::uint64_t id_space(const Node&) const override { return kStreamIds; }

 private:
  const StreamedPtr streamed_;
};

Compression named_compression(const std::string& word, const std::string& name) {
  for (const Compression kind :
       {Compression::none, Compression::gzip, Compression::zlib, Compression::zstd})
    if (name == compression_word(kind)) return kind;
  throw ConfigError(fmt::format("{}: compression \"{}\" is not known", word, printable(name)), {},
                    "auto, none, gzip, zlib or zstd");
}

Compression compression_of_file(Io& io, const std::string& word, const FileHandle& file,
                                const std::string& wanted) {
  if (wanted != "auto") return named_compression(word, wanted);
  std::string begin(std::min<std::uint64_t>(file.bytes(), 8), '\0');
  if (const auto done =
          io.read_at(file, 0, std::as_writable_bytes(std::span(begin.data(), begin.size())));
      !done) {
    Where where;
    where.file = file.path();
    throw IoError(fmt::format("{}: {}", word, done.failure().message), where);
  }
  return compression_of(begin, false);
}

Json written(const RecordArguments& arguments) {
  Json json = arguments.others;
  json["paths"] = arguments.paths;
  json["index"] = arguments.options.index;
  json["compression"] = arguments.options.compression;
  json["record_bytes_max"] = arguments.options.record_bytes_max;
  return json;
}

/// The first records of compressed files.
FirstRecords first_records(Io& io, const StreamedFiles& files) {
  FirstRecords first;
  first.file = files.files.front().handle->path();
  RecordStream stream(io, files);
  const std::size_t wanted = std::max<std::size_t>(files.kind.infer_records, 1);
  constexpr std::uint64_t kBytesMax = std::uint64_t{64} << 20;
  std::uint64_t bytes = 0;
  first.whole_file = true;
  while (auto record = stream.next()) {
    if (first.records.empty()) {
      first.file = files.files[record->file].handle->path();
      first.preface = stream.preface();
    }
    // What is wrong with a later record is for the loader to decide.
    if (record->failure && !first.records.empty()) break;
    if (record->failure) {
      Where where;
      where.file = files.files[record->file].handle->path();
      throw IoError(fmt::format("{}: {}", files.kind.word, record->failure->message), where,
                    record->failure->remedy);
    }
    first.records.emplace_back(record->bytes);
    bytes += record->bytes.size();
    if (first.records.size() < wanted && bytes < kBytesMax) continue;
    first.whole_file = false;
    break;
  }
  return first;
}

Dataset stream_dataset(Io& io, const RecordKind& kind, const RecordArguments& arguments,
                       std::vector<StreamedFiles::File> files) {
  auto streamed = std::make_shared<Streamed>();
  Digest digest;
  std::vector<std::string> paths;
  for (const auto& file : files) paths.push_back(file.handle->path());
  const std::size_t folder = shared_folder(paths).size();
  for (const auto& file : files) {
    digest.add(file.handle->path().substr(folder));
    digest.add(file.handle->bytes());
    if (!can_decompress(file.compression))
      throw ConfigError(
          fmt::format("{}: {} is compressed with {}, which this build cannot read", kind.word,
                      printable(file.handle->path()), compression_word(file.compression)),
          {}, "decompress it, or build penstock with the library");
  }
  streamed->digest = digest.text();
  streamed->files = {kind, std::move(files), arguments.options.record_bytes_max};
  streamed->decoder = kind.decoder(first_records(io, streamed->files));
  streamed->arguments = written(arguments);
  Node node;
  node.spec = streamed->decoder->spec();
  node.size = Cardinality::unknown();
  node.stream = true;
  node.verb = std::make_shared<const RecordStreamVerb>(std::move(streamed));
  return make_node(std::move(node));
}

void check_prefaces(Io& io, const RecordKind& kind, const RecordFiles& files,
                    const RecordDecoder& decoder) {
  if (!kind.has_preface) return;
  for (const RecordFiles::File& file : files.files()) {
    const auto accepted = decoder.accept(RecordFiles::preface_of(io, kind.word, file));
    if (accepted) continue;
    Where where;
    where.file = file.handle->path();
    throw ConfigError(fmt::format("{}: {}", kind.word, accepted.failure().message), where,
                      accepted.failure().remedy);
  }
}

}  // namespace

Dataset record_dataset(const RecordKind& kind, const RecordArguments& arguments) {
  Io& io = Io::real();
  const std::vector<FoundFile> found = find_files(io, kind.word, arguments.paths);
  std::vector<StreamedFiles::File> files;
  for (const FoundFile& file : found) {
    auto handle = std::make_shared<const FileHandle>(file.path, file.bytes, file.modified_ns);
    const Compression compression =
        compression_of_file(io, kind.word, *handle, arguments.options.compression);
    files.push_back({std::move(handle), compression});
  }
  const bool compressed = std::ranges::any_of(
      files, [](const auto& file) { return file.compression != Compression::none; });
  if (compressed) return stream_dataset(io, kind, arguments, std::move(files));
  const auto indexed = std::make_shared<const RecordFiles>(io, kind, found, arguments.options);
  auto decoder = kind.decoder(indexed->first_records(io, kind));
  check_prefaces(io, kind, *indexed, *decoder);
  return from_source(make_record_source({kind.word, indexed, std::move(decoder),
                                         arguments.options.record_bytes_max,
                                         std::make_shared<const Json>(written(arguments))}),
                     {});
}

RecordArguments parse_record_arguments(const Parsed& parsed) {
  RecordArguments arguments;
  arguments.paths = parsed.at("paths").get<std::vector<std::string>>();
  arguments.options.index = parsed.text("index");
  arguments.options.compression = parsed.text("compression");
  arguments.options.record_bytes_max = parsed.count("record_bytes_max");
  return arguments;
}

}  // namespace penstock
