// Sources of files of records, and writing them, in the native module.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "areas.h"
#include "nulls.h"
#include "owning.h"
#include "penstock/csv.h"
#include "penstock/fixed_records.h"
#include "penstock/json_lines.h"
#include "penstock/litdata.h"
#include "penstock/mds.h"
#include "penstock/npy_files.h"
#include "penstock/tar.h"
#include "penstock/text_files.h"
#include "penstock/tfrecord.h"
#include "penstock/write_records.h"
#include "values.h"

namespace penstock::python {
namespace {

using Paths = std::vector<nb::bytes>;

std::vector<std::string> strings_of(const Paths& paths) {
  std::vector<std::string> all;
  for (const nb::bytes& path : paths) all.emplace_back(path.c_str(), path.size());
  return all;
}

/// Calls a function of users, which may be slow, while a dataset is defined; signals are seen too.
template <typename... Values>
void show_progress(const Held& callable, Values... values) {
  look_for_signals();
  if (!callable) return;
  with_interpreter([&] { nb::borrow(callable.get())(values...); });
}

RecordFileOptions options_of(const nb::dict& given) {
  RecordFileOptions options;
  const auto index = nb::cast<nb::bytes>(given["index"]);
  options.index = {index.c_str(), index.size()};
  options.compression = nb::cast<std::string>(given["compression"]);
  options.record_bytes_max = nb::cast<std::uint64_t>(given["record_bytes_max"]);
  const nb::object progress = given["progress"];
  const Held callable = progress.is_none() ? Held() : hold(progress);
  options.progress = [callable](std::uint64_t done, std::uint64_t total) {
    show_progress(callable, done, total);
  };
  return options;
}

/// Defines a dataset, which blocks while files are examined.
template <typename Make>
OwningDataset examined(Make make) {
  return owning([&] {
    const Unlocked unlocked;
    return make();
  });
}

using FeatureParts =
    std::tuple<std::string, nb::object, std::vector<std::int64_t>, nb::object, bool, bool>;

std::vector<ExampleFeature> features_of(const std::vector<FeatureParts>& given) {
  std::vector<ExampleFeature> features;
  for (const auto& [name, dtype, shape, missing, sequence, raw] : given) {
    ExampleFeature feature{name, dtype_of(dtype), shape, {}, sequence, raw};
    if (!missing.is_none()) feature.missing = tensor_of(missing);
    features.push_back(std::move(feature));
  }
  return features;
}

std::map<std::string, Dtype> dtypes_of(const nb::dict& given) {
  std::map<std::string, Dtype> dtypes;
  for (const auto& [name, dtype] : given) dtypes[nb::cast<std::string>(name)] = dtype_of(dtype);
  return dtypes;
}

char letter_of(nb::handle value) {
  return nb::cast<std::string>(value).front();
}

CsvOptions csv_options(const nb::dict& given, const nb::dict& files) {
  CsvOptions options;
  options.columns = nb::cast<std::vector<std::string>>(given["columns"]);
  options.types = dtypes_of(nb::cast<nb::dict>(given["types"]));
  options.nulls = nulls_of(nb::cast<nb::dict>(given["nulls"]));
  options.header = nb::cast<bool>(given["header"]);
  options.names = nb::cast<std::vector<std::string>>(given["names"]);
  options.delimiter = letter_of(given["delimiter"]);
  options.quote = letter_of(given["quote"]);
  options.comment = letter_of(given["comment"]);
  options.floats = dtype_of(given["floats"]);
  options.missing = nb::cast<std::vector<std::string>>(given["missing"]);
  options.infer_records = nb::cast<std::uint64_t>(given["infer_records"]);
  options.files = options_of(files);
  return options;
}

JsonLinesOptions json_options(const nb::dict& given, const nb::dict& files) {
  JsonLinesOptions options;
  for (const auto& [name, dtype, shape] :
       nb::cast<std::vector<std::tuple<std::string, nb::object, std::vector<std::int64_t>>>>(
           given["fields"]))
    options.fields.push_back({name, dtype_of(dtype), shape});
  options.floats = dtype_of(given["floats"]);
  options.nulls = nulls_of(nb::cast<nb::dict>(given["nulls"]));
  options.raw = nb::cast<bool>(given["raw"]);
  options.infer_records = nb::cast<std::uint64_t>(given["infer_records"]);
  options.files = options_of(files);
  return options;
}

void bind_binary(nb::module_& module) {
  module.def(
      "from_tfrecord",
      [](const Paths& paths, const std::optional<std::vector<FeatureParts>>& features, bool raw,
         const std::string& split, const nb::dict& files) {
        TfrecordOptions options;
        if (features) options.features = features_of(*features);
        options.raw = raw;
        options.split = split;
        options.files = options_of(files);
        return examined([&, all = strings_of(paths)] { return from_tfrecord(all, options); });
      },
      nb::arg("paths"), nb::arg("features").none(), nb::arg("raw"), nb::arg("split"),
      nb::arg("files"));
  module.def(
      "from_tar",
      [](const Paths& paths, const std::vector<std::pair<std::string, std::string>>& fields,
         const std::vector<std::pair<std::string, nb::object>>& dtypes, bool key,
         const nb::dict& files) {
        TarOptions options;
        options.fields = fields;
        for (const auto& [name, dtype] : dtypes) options.dtypes.emplace_back(name, dtype_of(dtype));
        options.key = key;
        options.files = options_of(files);
        return examined([&, all = strings_of(paths)] { return from_tar(all, options); });
      },
      nb::arg("paths"), nb::arg("fields"), nb::arg("dtypes"), nb::arg("key"), nb::arg("files"));
  module.def(
      "from_records",
      [](const Paths& paths, std::uint64_t record_bytes, std::uint64_t header_bytes,
         std::uint64_t footer_bytes, const std::string& partial, nb::handle dtype,
         const std::vector<std::int64_t>& shape) {
        FixedRecordOptions options{header_bytes, footer_bytes, partial, {}, shape};
        if (!dtype.is_none()) options.dtype = dtype_of(dtype);
        return examined(
            [&, all = strings_of(paths)] { return from_records(all, record_bytes, options); });
      },
      nb::arg("paths"), nb::arg("record_bytes"), nb::arg("header_bytes"), nb::arg("footer_bytes"),
      nb::arg("partial"), nb::arg("dtype").none(), nb::arg("shape"));
  module.def(
      "from_npy",
      [](const Paths& paths, const std::vector<std::string>& fields,
         std::optional<std::uint64_t> bytes_max) {
        const NpyFileOptions options{fields, bytes_max};
        return examined([&, all = strings_of(paths)] { return from_npy(all, options); });
      },
      nb::arg("paths"), nb::arg("fields"), nb::arg("bytes_max").none());
}

void bind_folders(nb::module_& module) {
  module.def(
      "from_litdata",
      [](const nb::bytes& folder, const std::vector<std::string>& fields,
         const std::map<std::string, Shape>& shapes, std::uint64_t length) {
        const LitDataOptions options{fields, shapes, length};
        return examined([&, path = std::string(folder.c_str(), folder.size())] {
          return from_litdata(path, options);
        });
      },
      nb::arg("folder"), nb::arg("fields"), nb::arg("shapes"), nb::arg("length"));
  module.def(
      "from_mds",
      [](const nb::bytes& folder, const std::vector<std::string>& columns,
         const std::map<std::string, Shape>& shapes) {
        const MdsOptions options{columns, shapes};
        return examined([&, path = std::string(folder.c_str(), folder.size())] {
          return from_mds(path, options);
        });
      },
      nb::arg("folder"), nb::arg("columns"), nb::arg("shapes"));
}

void bind_text(nb::module_& module) {
  module.def(
      "from_text",
      [](const Paths& paths, const nb::dict& files) {
        const RecordFileOptions options = options_of(files);
        return examined([&, all = strings_of(paths)] { return from_text(all, options); });
      },
      nb::arg("paths"), nb::arg("files"));
  module.def(
      "from_csv",
      [](const Paths& paths, const nb::dict& given, const nb::dict& files) {
        const CsvOptions options = csv_options(given, files);
        return examined([&, all = strings_of(paths)] { return from_csv(all, options); });
      },
      nb::arg("paths"), nb::arg("options"), nb::arg("files"));
  module.def(
      "from_jsonl",
      [](const Paths& paths, const nb::dict& given, const nb::dict& files) {
        const JsonLinesOptions options = json_options(given, files);
        return examined([&, all = strings_of(paths)] { return from_jsonl(all, options); });
      },
      nb::arg("paths"), nb::arg("options"), nb::arg("files"));
}

nb::dict as_dict(const WrittenRecords& written) {
  nb::dict dict;
  nb::list files;
  for (const std::string& file : written.files) files.append(str_of(file));
  dict["files"] = files;
  dict["samples"] = written.samples;
  dict["bytes"] = written.bytes;
  dict["skipped"] = written.skipped;
  dict["found"] = written.found;
  return dict;
}

}  // namespace

void bind_record_files(nb::module_& module) {
  bind_binary(module);
  bind_folders(module);
  bind_text(module);
  module.def(
      "write_records",
      [](const OwningDataset& dataset, const nb::bytes& folder, const nb::dict& given) {
        check_may_run();
        WriteRecordsOptions options;
        options.format = nb::cast<std::string>(given["format"]);
        options.shards = nb::cast<std::uint64_t>(given["shards"]);
        options.shard_bytes = nb::cast<std::uint64_t>(given["shard_bytes"]);
        if (nb::cast<bool>(given["skip"])) options.loader.on_error = OnError::skip;
        options.loader.while_waiting = look_for_signals;
        const nb::object progress = given["progress"];
        const Held callable = progress.is_none() ? Held() : hold(progress);
        options.progress = [callable](std::uint64_t done, std::optional<std::uint64_t> total) {
          show_progress(callable, done, total.value_or(0));
        };
        WrittenRecords written;
        {
          const Unlocked unlocked;
          written = write_records(dataset, {folder.c_str(), folder.size()}, options);
        }
        return as_dict(written);
      },
      nb::arg("dataset"), nb::arg("folder"), nb::arg("options"));
}

}  // namespace penstock::python
