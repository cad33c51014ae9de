// Dataset in the native module; penstock.dataset adds names and checks.
#include "penstock/dataset.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "areas.h"
#include "callee.h"
#include "collate.h"
#include "functions.h"
#include "generators.h"
#include "op/op.h"
#include "owning.h"
#include "sequences.h"
#include "tails.h"
#include "texts.h"
#include "values.h"
#include "verb/map.h"
#include "worker_ops.h"
#include "workers.h"

namespace penstock::python {
namespace {

using OptionalTail = std::optional<std::string>;
using OwningOp = Owning<OpCall>;

Dataset from_generator(nb::handle factory, const std::string& name, nb::handle spec,
                       bool takes_epoch, bool has_cursor) {
  const Factory made{Callee(factory), takes_epoch, has_cursor, {}};
  const SourceOptions options{name, optional_spec(spec)};
  if (has_cursor)
    return Dataset::from_generator(
        [made](GeneratorStart start) { return SavedIterator(made, start); }, options);
  return Dataset::from_generator(
      [made](GeneratorStart start) { return PulledIterator(made, start); }, options);
}

Dataset from_index(std::uint64_t size, nb::handle fn, const std::string& name, nb::handle spec) {
  return Dataset::from_index(size,
                             [call = Callee(fn)](std::uint64_t index) {
                               return with_interpreter([&] {
                                 return sample_made(call_user(call.get(), nb::make_tuple(index)));
                               });
                             },
                             {name, optional_spec(spec)});
}

Dataset from_sequence(nb::handle object, const std::string& name, nb::handle spec, bool pure,
                      bool check) {
  return Dataset::from_sequence(std::make_shared<UserSequence>(object),
                                {name, optional_spec(spec), pure, check});
}

/// Path (None: of all other fields), value, whether on the left, length and multiple.
using PaddingRules = std::vector<std::tuple<std::optional<std::string>, double, bool,
                                            std::optional<std::int64_t>, std::int64_t>>;

Padding padding_of(const PaddingRules& rules) {
  Padding padding;
  padding.only_named = true;
  for (const auto& [path, value, left, length, multiple_of] : rules) {
    const FieldPadding rule{value, left ? PadSide::left : PadSide::right, length, multiple_of};
    if (path) {
      padding.fields.emplace_back(*path, rule);
    } else {
      padding.all = rule;
      padding.only_named = false;
    }
  }
  return padding;
}

/// How samples are put into buckets, from Python.
struct BucketArguments {
  std::string field;
  std::optional<PaddingRules> rules;
  OptionalTail tail;
  bool drop = false;
  bool pad_to_boundary = false;
  std::optional<std::uint64_t> window;
};

BucketOptions bucket_options(const BucketArguments& from, nb::handle length) {
  BucketOptions options;
  options.field = from.field;
  if (!length.is_none())
    options.length = [call = SampleCall(length, {})](const Sample& sample) {
      return call(sample, nullptr, [](const nb::object& made) {
        nb::object number = nb::steal(PyNumber_Index(made.ptr()));
        if (!number.is_valid()) throw nb::python_error();
        return nb::cast<std::int64_t>(number);
      });
    };
  options.padding = from.rules ? std::optional<Padding>(padding_of(*from.rules)) : std::nullopt;
  options.pad_to_boundary = from.pad_to_boundary;
  options.tail = tail_of_name(from.tail);
  options.drop_remainder = from.drop;
  options.window = from.window;
  return options;
}

struct MapArguments {
  std::string title;  // for people
  std::string name;   // in digests
  std::uint64_t seed = 0;
  bool keyed = false;
  bool random = false;
};

Dataset map_samples(const Dataset& self, nb::handle fn, const MapArguments& arguments,
                    nb::handle spec, bool row_wise, const WorkerSetup* workers) {
  const SampleCall call(fn, {arguments.keyed, arguments.random, arguments.title});
  const MapOptions options{arguments.name, arguments.seed, optional_spec(spec), row_wise};
  SampleFn function{call.random(), [call](const Sample& in, Rng& rng) {
                      return call(in, call.random() ? &rng : nullptr,
                                  [](const nb::object& value) { return sample_made(value); });
                    }};
  auto op = make_sample_op(std::move(function), options);
  if (workers != nullptr) op = worker_sample_op(std::move(op), python_worker_pool(*workers));
  return add_map(self, std::move(op), options.seed);
}

/// Each whole sample, of any shape, as the bytes that `pack` returns for it.
Dataset packed(const Dataset& self, nb::handle pack) {
  const MapOptions options{"packed", 0, ElementSpec::single(Dtype::bytes), false};
  return self.map(
      [call = hold(pack)](const Sample& in) {
        return with_interpreter(
            [&] { return sample_of(call_user(call.get(), nb::make_tuple(to_python(in)))); });
      },
      options);
}

/// `fn(state, element)` returns a pair: the next state and the output.
Dataset scan(const Dataset& self, nb::handle initial, nb::handle fn, const std::string& name,
             nb::handle spec) {
  const auto run = [call = SampleCall(fn, {})](const Sample& state, const Sample& element) {
    return call(Sample::tuple({state, element}), nullptr, [](const nb::object& made) {
      if (!nb::isinstance<nb::tuple>(made) || nb::len(made) != 2)
        throw ConfigError(
            fmt::format("scan: the function must return a tuple (next state, output), not {}",
                        nb::cast<std::string>(nb::repr(made.type()))));
      return std::pair(sample_of(made[0]), sample_of(made[1]));
    });
  };
  return self.scan(sample_of(initial), run, {name, optional_spec(spec)});
}

bool truth(const nb::object& value) {
  const int held = PyObject_IsTrue(value.ptr());
  if (held < 0) throw nb::python_error();
  return held == 1;
}

/// Calls `verb(predicate, options)` with `fn` converted to its form.
template <typename Verb>
Dataset with_predicate(nb::handle fn, const MapArguments& arguments, Verb verb) {
  const SampleCall call(fn, {arguments.keyed, arguments.random, arguments.title});
  if (call.random())
    return verb([call](const Sample& in, Rng& rng) { return call(in, &rng, truth); });
  return verb([call](const Sample& in) { return call(in, nullptr, truth); });
}

Dataset filter(const Dataset& self, nb::handle fn, const MapArguments& arguments, bool mask) {
  const FilterOptions options{arguments.name, arguments.seed, mask};
  return with_predicate(fn, arguments, [&](auto test) { return self.filter(test, options); });
}

Dataset take_while(const Dataset& self, nb::handle fn, const MapArguments& arguments) {
  const FilterOptions options{arguments.name, arguments.seed, false};
  return with_predicate(fn, arguments, [&](auto test) { return self.take_while(test, options); });
}

Dataset select(const Dataset& self, nb::handle fn, const MapArguments& arguments) {
  const FilterOptions options{arguments.name, arguments.seed, false};
  return with_predicate(fn, arguments, [&](auto test) { return self.select(test, options); });
}

/// A function of one sample that returns a dataset.
auto expander(nb::handle fn) {
  return [call = SampleCall(fn, {})](const Sample& in) {
    return call(in, nullptr, [](const nb::object& made) {
      const nb::object inner =
          nb::hasattr(made, "_native") ? nb::object(made.attr("_native")) : made;
      if (!nb::isinstance<OwningDataset>(inner))
        throw ConfigError("the function of flat_map or interleave must return a Dataset", {},
                          "wrap arrays in from_tensor_slices, iterators in from_generator");
      // The engine uses it longer than the result of the function lives.
      const auto& dataset = nb::cast<const OwningDataset&>(inner);
      dataset.owned.pin();
      return static_cast<const Dataset&>(dataset);
    });
  };
}

Dataset shuffle(const Dataset& self, std::optional<std::uint64_t> seed, bool drawn,
                bool reshuffle_each_epoch, std::optional<std::uint64_t> window,
                std::optional<std::uint64_t> blocks) {
  ShuffleOptions options;
  options.seed = drawn ? Seed::random() : Seed(seed.value_or(0));
  options.reshuffle_each_epoch = reshuffle_each_epoch;
  options.window = window;
  options.blocks = blocks;
  return self.shuffle(options);
}

/// A verb without functions of its own.
template <typename... Arguments>
auto verb(Dataset (Dataset::*method)(Arguments...) const) {
  return [method](const OwningDataset& self, std::decay_t<Arguments>... arguments) {
    return owning([&] { return (self.*method)(std::move(arguments)...); }, self);
  };
}

/// `function(self, ...)` as a verb.
template <typename... Arguments>
auto verb(Dataset (*function)(const Dataset&, Arguments...)) {
  return [function](const OwningDataset& self, Arguments... arguments) {
    return owning([&] { return function(self, std::forward<Arguments>(arguments)...); }, self);
  };
}

/// `function(...)` as a source.
template <typename... Arguments>
auto source(Dataset (*function)(Arguments...)) {
  return [function](Arguments... arguments) {
    return owning([&] { return function(std::forward<Arguments>(arguments)...); });
  };
}

std::int64_t cardinality(const Dataset& self) {
  const Cardinality size = self.cardinality();
  if (size.is_endless()) return -1;
  return size.is_unknown() ? -2 : static_cast<std::int64_t>(size.count());
}

nb::object sample(const Dataset& self, std::uint64_t number) {
  Sample made;
  {
    const Unlocked unlocked;
    const InThisProcess here;
    made = self.resolve(look_for_signals).sample(number);
  }
  return to_python(made);
}

void bind_sources(nb::module_& module) {
  module.def("range", [](std::int64_t start, std::int64_t stop, std::int64_t step) {
    return owning([&] { return Dataset::range(start, stop, step); });
  });
  module.def(
      "from_tensors",
      [](nb::handle value, const std::string& name) {
        return owning([&] { return Dataset::from_tensors(sample_of(value), {name, {}}); });
      },
      nb::arg("value").none(), nb::arg("name"));
  module.def(
      "from_tensor_slices",
      [](nb::handle value, const std::string& name) {
        return owning([&] {
          if (has_texts(value)) return text_slices(value, name);
          return Dataset::from_tensor_slices(sample_of(value), {name, {}});
        });
      },
      nb::arg("value").none(), nb::arg("name"));
  module.def("from_generator", source(from_generator), nb::arg("factory"), nb::arg("name"),
             nb::arg("spec").none(), nb::arg("takes_epoch"), nb::arg("has_cursor"));
  module.def("from_index", source(from_index), nb::arg("size"), nb::arg("fn"), nb::arg("name"),
             nb::arg("spec").none());
  module.def("from_sequence", source(from_sequence), nb::arg("sequence"), nb::arg("name"),
             nb::arg("spec").none(), nb::arg("pure"), nb::arg("check"));
  module.def("zip", [](const std::vector<OwningDataset>& parts, bool strict) {
    OwningDataset zipped =
        owning([&] { return Dataset::zip({parts.begin(), parts.end()}, {strict}); });
    for (const OwningDataset& part : parts) zipped.owned.add(part.owned);
    return zipped;
  });
  module.def("truncate", [](std::int64_t length, const std::string& path, bool last) {
    return truncate(length, path, last ? Keep::last : Keep::first);
  });
  module.def("cast",
             [](nb::handle dtype, const std::string& path) { return cast(dtype_of(dtype), path); });
  module.def(
      "vector_op",
      [](nb::handle fn, const std::string& name, nb::handle spec, const WorkerSetup* workers) {
        CalleeCollector collector;
        OpCall call = vector_op(fn, name, optional_spec(spec));
        if (workers != nullptr)
          call = OpCall(worker_vector_op(call.op(), python_worker_pool(*workers)));
        return OwningOp(std::move(call), collector.take());
      },
      nb::arg("fn"), nb::arg("name"), nb::arg("spec").none(), nb::arg("workers").none());
  module.def(
      "collate_op",
      [](nb::handle fn, const std::string& name, nb::handle spec, const WorkerSetup* workers) {
        CalleeCollector collector;
        OpCall call(collate_op(fn, name, optional_spec(spec),
                               workers != nullptr ? python_worker_pool(*workers) : nullptr));
        return OwningOp(std::move(call), collector.take());
      },
      nb::arg("fn"), nb::arg("name"), nb::arg("spec").none(), nb::arg("workers").none());
  module.def("probe", [](nb::handle fn, const Dataset& input) {
    return to_python(probed_spec(fn, input.element_spec()));
  });
}

using DatasetClass = nb::class_<OwningDataset, Dataset>;

void bind_functions_of(DatasetClass& dataset) {
  dataset.def("map", verb(map_samples), nb::arg("fn"), nb::arg("arguments"), nb::arg("spec").none(),
              nb::arg("row_wise"), nb::arg("workers").none());
  dataset.def("packed", verb(packed));
  dataset.def("scan", verb(scan), nb::arg("initial_state").none(), nb::arg("fn"), nb::arg("name"),
              nb::arg("spec").none());
  dataset.def(
      "map_op",
      [](const OwningDataset& self, nb::handle op) {
        const auto& call = nb::cast<const OpCall&>(op);
        OwningDataset made = owning([&] { return self.map(call); }, self);
        if (nb::isinstance<OwningOp>(op)) made.owned.add(nb::cast<const OwningOp&>(op).owned);
        return made;
      },
      nb::sig("def map_op(self, op: OpCall, /) -> Dataset"));
  dataset.def("filter", verb(filter));
  dataset.def("take_while", verb(take_while));
  dataset.def("select", verb(select));
  dataset.def(
      "flat_map",
      [](const OwningDataset& self, nb::handle fn, const std::string& name, nb::handle spec) {
        return owning([&] { return self.flat_map(expander(fn), {name, optional_spec(spec)}); },
                      self);
      },
      nb::arg("fn"), nb::arg("name"), nb::arg("spec").none());
  dataset.def(
      "interleave",
      [](const OwningDataset& self, nb::handle fn, std::uint64_t cycle, std::uint64_t block,
         const std::string& name, nb::handle spec) {
        return owning(
            [&] {
              return self.interleave(expander(fn), {cycle, block, name, optional_spec(spec)});
            },
            self);
      },
      nb::arg("fn"), nb::arg("cycle"), nb::arg("block"), nb::arg("name"), nb::arg("spec").none());
}

void bind_order_of(DatasetClass& dataset) {
  dataset.def("shuffle", verb(shuffle), nb::arg("seed").none(), nb::arg("drawn"),
              nb::arg("reshuffle"), nb::arg("window").none(), nb::arg("blocks").none());
  dataset.def("split", [](const OwningDataset& self, double fraction, std::uint64_t seed) {
    auto [first, rest] = self.split(fraction, seed);
    return std::pair(OwningDataset(std::move(first), self.owned),
                     OwningDataset(std::move(rest), self.owned));
  });
  dataset.def("repeat", verb(&Dataset::repeat));
  dataset.def("take", verb(&Dataset::take));
  dataset.def("skip", verb(&Dataset::skip));
  dataset.def("shard", verb(&Dataset::shard));
  dataset.def("concatenate", [](const OwningDataset& self, const OwningDataset& next) {
    return owning([&] { return self.concatenate(next); }, self, next);
  });
  dataset.def("enumerate", verb(&Dataset::enumerate));
}

/// Verbs that count lengths.
void bind_lengths_of(DatasetClass& dataset) {
  dataset.def(
      "bucket_by_length",
      [](const OwningDataset& self, const std::vector<std::int64_t>& boundaries,
         const std::vector<std::int64_t>& sizes, const BucketArguments& arguments,
         nb::handle length) {
        return owning(
            [&] {
              return self.bucket_by_length(boundaries, sizes, bucket_options(arguments, length));
            },
            self);
      },
      nb::arg("boundaries"), nb::arg("batch_sizes"), nb::arg("arguments"),
      nb::arg("length").none());
  dataset.def(
      "batch_by_tokens",
      [](const OwningDataset& self, std::int64_t max_tokens,
         const std::vector<std::int64_t>& boundaries, const BucketArguments& arguments) {
        return owning(
            [&] {
              return self.batch_by_tokens(max_tokens, bucket_options(arguments, nb::none()),
                                          boundaries);
            },
            self);
      },
      nb::arg("max_tokens"), nb::arg("boundaries"), nb::arg("arguments"));
  dataset.def(
      "window",
      [](const OwningDataset& self, std::uint64_t size, const std::optional<std::uint64_t>& shift,
         std::uint64_t stride, bool drop) {
        return owning([&] { return self.window(size, {shift, stride, drop}); }, self);
      },
      nb::arg("size"), nb::arg("shift").none(), nb::arg("stride"), nb::arg("drop_remainder"));
  dataset.def(
      "pack",
      [](const OwningDataset& self, std::int64_t length, bool best_fit,
         const std::optional<std::int64_t>& separator, int too_long, std::int64_t pad,
         const std::string& field, const std::string& mask, bool one_document, bool cu_seqlens) {
        return owning(
            [&] {
              return self.pack(length, {best_fit ? PackHow::best_fit : PackHow::stream, separator,
                                        static_cast<LongDocument>(too_long), pad, field, mask,
                                        one_document ? PackAttention::row : PackAttention::document,
                                        cu_seqlens});
            },
            self);
      },
      nb::arg("length"), nb::arg("best_fit"), nb::arg("separator").none(), nb::arg("too_long"),
      nb::arg("pad"), nb::arg("field"), nb::arg("mask"), nb::arg("one_document"),
      nb::arg("cu_seqlens"));
}

void bind_batches_of(DatasetClass& dataset) {
  dataset.def(
      "batch",
      [](const OwningDataset& self, std::int64_t size, const OptionalTail& tail, bool drop) {
        return owning([&] { return self.batch(size, {tail_of_name(tail), drop}); }, self);
      },
      nb::arg("size"), nb::arg("tail").none(), nb::arg("drop_remainder"));
  dataset.def(
      "padded_batch",
      [](const OwningDataset& self, std::int64_t size, const PaddingRules& rules,
         const OptionalTail& tail, bool drop) {
        return owning(
            [&] { return self.padded_batch(size, {padding_of(rules), tail_of_name(tail), drop}); },
            self);
      },
      nb::arg("size"), nb::arg("rules"), nb::arg("tail").none(), nb::arg("drop_remainder"));
  dataset.def("unbatch", verb(&Dataset::unbatch));
  dataset.def(
      "rebatch",
      [](const OwningDataset& self, std::int64_t size, const OptionalTail& tail, bool drop) {
        return owning([&] { return self.rebatch(size, {tail_of_name(tail), drop}); }, self);
      },
      nb::arg("size"), nb::arg("tail").none(), nb::arg("drop_remainder"));
  dataset.def(
      "cache",
      [](const OwningDataset& self, const nb::bytes& folder, std::optional<std::uint64_t> bytes,
         bool automatic, bool spill) {
        return owning(
            [&] {
              CacheOptions options;
              options.bytes_max = bytes.value_or(UINT64_MAX);
              options.folder = {folder.c_str(), folder.size()};
              if (automatic) options.place = CachePlace::automatic;
              if (spill) options.when_full = WhenFull::spill;
              const Unlocked unlocked;
              return self.cache(options);
            },
            self);
      },
      nb::arg("folder"), nb::arg("bytes_max").none(), nb::arg("automatic"), nb::arg("spill"));
  dataset.def(
      "save",
      [](const OwningDataset& self, const nb::bytes& folder, std::uint32_t files, bool overwrite) {
        const std::string path(folder.c_str(), folder.size());
        const Unlocked unlocked;
        self.save(path, {files, overwrite}, look_for_signals);
      },
      nb::arg("folder"), nb::arg("files"), nb::arg("overwrite"));
  dataset.def("prefetch", [](const OwningDataset& self, std::uint64_t steps, std::uint64_t bytes) {
    return owning([&] { return self.prefetch({steps, bytes}); }, self);
  });
  dataset.def(
      "with_options",
      [](const OwningDataset& self, const std::string& name, std::optional<unsigned> threads,
         std::optional<std::uint64_t> bytes) {
        return owning([&] { return self.with_options({name, threads, bytes}); }, self);
      },
      nb::arg("name"), nb::arg("threads").none(), nb::arg("lookahead_bytes").none());
}

}  // namespace

void bind_dataset(nb::module_& module) {
  nb::class_<OpCall>(module, "OpCall", "An op of the catalogue with its arguments.");
  nb::class_<OwningOp, OpCall>(module, "FunctionOp", nb::type_slots(owning_slots<OwningOp>()));
  nb::class_<MapArguments>(module, "MapArguments")
      .def("__init__",
           [](MapArguments* self, const std::string& title, const std::string& name,
              std::uint64_t seed, bool keyed,
              bool random) { new (self) MapArguments{title, name, seed, keyed, random}; })
      .def_ro("keyed", &MapArguments::keyed)
      .def_ro("random", &MapArguments::random);
  nb::class_<BucketArguments>(module, "BucketArguments")
      .def(
          "__init__",
          [](BucketArguments* self, const std::string& field,
             const std::optional<PaddingRules>& rules, const OptionalTail& tail, bool drop,
             bool pad_to_boundary, const std::optional<std::uint64_t>& window) {
            new (self) BucketArguments{field, rules, tail, drop, pad_to_boundary, window};
          },
          nb::arg("field"), nb::arg("rules").none(), nb::arg("tail").none(),
          nb::arg("drop_remainder"), nb::arg("pad_to_boundary"), nb::arg("window").none());
  nb::class_<WorkerSetup>(module, "WorkerSetup", "What worker processes are started with.")
      .def("__init__", [](WorkerSetup* self, const std::vector<std::string>& command,
                          const nb::bytes& setup, const std::string& title, unsigned workers) {
        new (self) WorkerSetup{{command, {setup.c_str(), setup.size()}, title}, workers};
      });
  nb::class_<Dataset>(module, "Graph", "A dataset without its functions.");
  DatasetClass dataset(module, "Dataset", nb::type_slots(owning_slots<OwningDataset>()));
  bind_functions_of(dataset);
  bind_order_of(dataset);
  bind_batches_of(dataset);
  bind_lengths_of(dataset);
  dataset.def("resolve", [](const OwningDataset& self) {
    return owning(
        [&] {
          const Unlocked unlocked;
          return self.resolve(look_for_signals);
        },
        self);
  });
  dataset.def("cardinality", cardinality);
  dataset.def("element_spec", [](const Dataset& self) { return to_python(self.element_spec()); });
  dataset.def("spec_text", [](const Dataset& self) { return self.element_spec().text(); });
  dataset.def("arity", [](const Dataset& self) -> std::int64_t {
    const ElementSpec& spec = self.element_spec();
    if (!spec.known) return -1;
    return spec.structure.kind == Structure::Kind::tuple
               ? static_cast<std::int64_t>(spec.structure.children.size())
               : 1;
  });
  dataset.def("batched", &Dataset::batched);
  dataset.def("streamed", &Dataset::streamed);
  dataset.def("digests", [](const Dataset& self) {
    const Digests digests = self.digests();
    return std::pair(digests.order, digests.values);
  });
  dataset.def("describe", &Dataset::describe);
  dataset.def("sample", sample);
  bind_sources(module);
}

}  // namespace penstock::python
