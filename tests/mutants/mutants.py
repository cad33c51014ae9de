"""Bugs of one logical line each, and the tests that must detect them.

Each right line occurs exactly once in its file. run.py replaces each line in turn and requires a
test to fail: the property test unless another one is named.
"""

from typing import NamedTuple


class Mutant(NamedTuple):
    name: str
    file: str
    right: str
    wrong: str
    kind: str = "property"  # property, gtest, pytest, train or scenario
    tests: str = ""  # a GoogleTest filter, or test files and names for pytest
    scenario: str = ""  # the rows of docs/scenarios.md whose promise this breaks


def _of(kind: str, tests: str, *rows: tuple[str, ...], scenario: str = "") -> list[Mutant]:
    return [Mutant(*row, kind, tests, scenario) for row in rows]


def _promise(rows: str, *row: str) -> Mutant:
    """Every test of each of these scenarios must notice it, in C++ and in Python."""
    return Mutant(*row, "scenario", "", rows)


PROPERTY = [
    Mutant("last remainder row to the wrong share", "src/order/cut.h",
     "return rows / shares + (share < rows % shares ? 1 : 0);",
     "return rows / shares + (shares - 1 - share < rows % shares ? 1 : 0);"),
    Mutant("pass missing from the key", "src/verb/shuffle.cc",
     "Permutation(size, {key.seed, turn.pass, turn.round}).apply(out);",
     "Permutation(size, {key.seed, 0, turn.round}).apply(out);"),
    Mutant("position counted at prefetch", "src/run/window.h",
     "std::uint64_t delivered() const { return delivered_.load(); }",
     "std::uint64_t delivered() const { return opened_.load(); }"),
    Mutant("slab reused one batch early", "src/run/step_in_flight.cc",
     "batches.emplace_back(std::move(share.batch));",
     "batches.emplace_back("
     "std::shared_ptr<const BatchData>(std::shared_ptr<void>(), share.batch.get()));"),
    Mutant("missing-count decremented before the write", "src/run/step_worker.cc",
     "finish(piece, compute(piece, context), task);",
     "finish(piece, {}, task), static_cast<void>(compute(piece, context));"),
    Mutant("restore after a change of G off by one", "src/feed/iterator_state.cc",
     "{state.step, state.position, batch}", "{state.step, state.position + 1, batch}"),
    Mutant("repeat ignoring its round", "src/verb/repeat.cc",
     "nested_round(ask.turn.round, rounds, round), ask.turn.lap}",
     "nested_round(ask.turn.round, rounds, 0), ask.turn.lap}"),
    Mutant("occurrence missing from the random key", "src/plan/map_stage.cc",
     "key.rng(out.identity.occurrence[row],", "key.rng(0,"),
    Mutant("a fixed order reshuffled all the same", "src/verb/shuffle.cc",
     "std::ranges::copy(ask.positions, out.begin());\n"
     "    const Turn turn = key.reshuffle ? ask.turn : Turn{};",
     "std::ranges::copy(ask.positions, out.begin());\n    const Turn turn = ask.turn;"),
    Mutant("a cache that keeps another turn", "src/verb/cache_stage.cc",
     "const Ask first_turn{{0, 0},", "const Ask first_turn{{0, 1},"),
    Mutant("drop keeps the tail", "src/order/steps.cc",
     "(tail != Tail::drop && count % batch != 0 ? 1 : 0)", "(count % batch != 0 ? 1 : 0)"),
    Mutant("shard that always starts at 0", "src/verb/shard.cc",
     "out[i] = first + stride * ask.positions[i];", "out[i] = stride * ask.positions[i];"),
    Mutant("the end of an epoch is not the start of the next", "src/feed/iterator_state.cc",
     "ended = at_end();\n    state.position", "state.position"),
    Mutant("ids of a concatenation start again", "src/verb/concatenate.cc",
     "first_id += part->verb->id_space(*part);", "first_id += 0;"),
    Mutant("the end of a stream counted as a step", "src/feed/iterator_state.cc",
     "ended = run_ && !run_->stopped() &&", "ended = run_ && run_->stopped() &&"),
    Mutant("a block's anchor taken after the pull", "src/plan/buffered_cursor.h",
     "if (!inside) input_->save(now);\n    write_anchor(inside ? before_ : now, anchor);",
     "input_->save(now);\n    write_anchor(now, anchor);"),
    Mutant("replay that decodes", "src/verb/batch.cc",
     "compiler.flow_before_maps(node.input(), first_id, deferred);",
     "compiler.flow(node.input(), first_id);"),
    Mutant("a ledger row kept in its share", "src/sample/batch_data.cc",
     "if (failed(flags[row]) && facts_.slots == 0 && !(keep_one && row == 0)) continue;",
     "if (flags[row] > kRowMasked) continue;"),
    Mutant("a window that reaches across its edge", "src/verb/shuffle.cc",
     "spec, options_.window.value(),", "spec, options_.window.value() + 1,"),
    Mutant("blocks in the order of the first pass", "src/order/block_order.cc",
     "{seed_of(key.seed, kBlocks), key.pass, key.round}",
     "{seed_of(key.seed, kBlocks), 0, key.round}"),
    Mutant("a window of blocks rounded down", "src/order/block_order.h",
     "window / block + (window % block != 0 ? 1 : 0);", "(window < block ? 1 : 0);"),
    Mutant("skip that forgets its count", "src/verb/skip.cc",
     "out[i] = first + ask.positions[i];", "out[i] = first - 1 + ask.positions[i];"),
    Mutant("a slice that saves the wrong number", "src/plan/slice_flow.h",
     "{slice_.count == UINT64_MAX ? &before_ : &left_, 1}", "{&left_, 1}"),
    Mutant("a cache whose occurrences start again", "src/verb/cache_stage.cc",
     "nested_round(turn.occurrence(), at_.rounds, kept.identity.occurrence[row]);",
     "nested_round(0 * turn.occurrence(), at_.rounds, kept.identity.occurrence[row]);"),
    Mutant("rows that are lent are lent again", "src/plan/indexed_flow.cc",
     "position_ += rows;\n    return {&ahead_rows_, first};", "return {&ahead_rows_, first};"),
]

KERNELS = [
    *_of("gtest", "*Unfilter*", (
        "Paeth takes another neighbor on a tie", "src/kernel/unfilter.cc",
        "return threshold <= low ? high : upper;", "return threshold < low ? high : upper;")),
    *_of("gtest", "*Resample*:ImageOps*:Decode*:Picture*", (
        "a resize that is half a pixel off", "src/kernel/axis.cc",
        "const double center = (static_cast<double>(pixel) + 0.5) * scale;",
        "const double center = static_cast<double>(pixel) * scale;")),
    *_of("gtest", "*Resample*:ImageOpsTest.Resize*", (
        "a resize without antialiasing", "src/kernel/axis.cc",
        "(request.antialias || request.filter == Filter::area) ? std::max(1.0, scale) : 1.0;",
        "request.filter == Filter::area ? std::max(1.0, scale) : 1.0;")),
    *_of("gtest", "*Resample*", (
        "fixed-point weights that do not add up", "src/kernel/axis.cc",
        "const long rounded = std::lround(end);", "const long rounded = static_cast<long>(end);")),
    *_of("gtest", "*Pixel*", (
        "pixels stored without rounding", "src/kernel/pixels.cc",
        "return static_cast<T>(std::min(std::max(value, 0.0F), kMost) + 0.5F);",
        "return static_cast<T>(std::min(std::max(value, 0.0F), kMost));")),
]

IMAGES = [
    *_of("gtest", "*Png*", (
        "a chunk whose CRC is not looked at", "src/codec/png.cc",
        "length + 4)) == big32(bytes, chunk.at + 8 + length);", "length + 4)) != 0;")),
    *_of("gtest", "*Bmp*", (
        "a BMP upside down", "src/codec/bmp.cc",
        "const std::int64_t row = header.top_down ? part.y : header.height - 1 - part.y;",
        "const std::int64_t row = header.top_down ? header.height - 1 - part.y : part.y;")),
    *_of("gtest", "*Image*:*Picture*", (
        "a crop of a mirrored image from the wrong side", "src/op/picture.cc",
        "const Region inside = unmirrored(region, width(), height(), mirror_x_, mirror_y_);",
        "const Region inside = unmirrored(region, width(), height(), false, mirror_y_);")),
    *_of("gtest", "*Image*", (
        "two flips that do not cancel", "src/op/picture.cc",
        "mirror_x_ = mirror_x_ != horizontal;", "mirror_x_ = mirror_x_ || horizontal;")),
    *_of("gtest", "*Image*", (
        "a center crop off by one", "src/op/crop.cc",
        "{(picture.width() - width_) / 2, (picture.height() - height_) / 2, width_, height_}",
        "{(picture.width() - width_) / 2, (picture.height() - height_ + 1) / 2, width_, height_}")),
    *_of("gtest", "*Image*", (
        "a flip that is never drawn", "src/op/flip.cc",
        "picture.flip(horizontal_ && horizontal, vertical_ && vertical);",
        "picture.flip(horizontal_ && horizontal && vertical, vertical_ && vertical);")),
    *_of("gtest", "MixingTest.*", (
        "mixed labels that do not follow the pixels", "src/op/mixing.cc",
        "mixed[c] = static_cast<float>(kept) * own[c] + static_cast<float>(1 - kept) * other[c];",
        "mixed[c] = static_cast<float>(kept) * other[c] + static_cast<float>(1 - kept) * own[c];")),
]

REPLICAS = [
    *_of("gtest", "*Reduce*:Scenario.b_custom_mean:*Strategy*", (
        "a mean that divides by the number of replicas", "src/replica/reduce.cc",
        "count += part.count;", "count += 1;")),
    *_of("gtest", "*Reduce*:*Strategy*", (
        "a padded row in the mean of an axis", "src/replica/reduce.cc",
        "for (std::size_t inner = 0; rows.valid(row) && inner < split.inner; ++inner)",
        "for (std::size_t inner = 0; inner < split.inner; ++inner)")),
    *_of("gtest", "*Team*:*Strategy*", (
        "replicas in different collectives", "src/replica/team.cc",
        "if (its.doing == Doing::waiting && its.word != members_[member].word)",
        "if (its.doing == Doing::waiting && its.word.empty())")),
    *_of("gtest", "*Feed*", (
        "an epoch that is a step too long", "src/replica/feed.cc",
        "if (epoch_steps_ == *steps_) {\n    end_epoch();",
        "if (epoch_steps_ > *steps_) {\n    end_epoch();")),
    *_of("gtest", "*Feed*", (
        "a state of a feed that forgets its epoch", "src/replica/feed.cc",
        "State::Epochs{epoch_ + 1, 0}", "State::Epochs{epoch_, 0}")),
]

READING = [
    *_of("gtest", "*Fetch*", (
        "a read that was dropped stays in the budget", "src/run/fetcher.cc",
        "options.budget->give_back(bytes_of(ticket->read));", "")),
    *_of("gtest", "*Fetch*", (
        "reads queued beyond the limit", "src/run/fetcher.cc",
        "if (shared_->stopping || shared_->held + bytes > options_.bytes_max) return;",
        "if (shared_->stopping) return;")),
]

TRAINING = [
    *_of("train", "*SameWeights*:*Bucket*", (
        "a replica's gradient left out", "train/src/gradient_buckets.cc",
        "for (std::size_t r = 1; r < flats_.size(); ++r)",
        "for (std::size_t r = 2; r < flats_.size(); ++r)")),
    *_of("train", "*SameWeights*", (
        "gradients that are not cleared", "train/src/gradient_buckets.cc",
        "for (torch::Tensor& flat : flats_[replica]) flat.zero_();", "")),
    *_of("train", "*Checkpoint*", (
        "a checkpoint whose checksums are not compared", "train/src/checkpoint.cc",
        "if (crc32c(text) != listed.crc32c)\n", "if (text.empty())\n")),
]

WORKERS = [
    *_of("pytest", "python/tests/test_scenarios.py::test_d_worker_killed", (
        "a block whose worker died is not computed again", "python/bindings/worker_call.cc",
        "if (deaths < kDeathsMax) return", "if (deaths < 1) return"),
         scenario="d_worker_killed"),
    *_of("gtest", "*Worker*", (
        "a request is sent to a worker that died", "python/bindings/worker_client.cc",
        "if (worker.process->ended()) {", "if (worker.process->id() < 0) {"), (
        "a worker is busy in the other slot", "python/bindings/worker_schedule.cc",
        "slot_ = slot;", "slot_ = 1 - slot;"), (
        "an answer that nobody wants is taken for that of the next request",
        "python/bindings/worker_client.cc",
        "if (!request.sent || message.number != request.number) {", "if (!request.sent) {"), (
        "a worker process that died owes an answer", "python/bindings/worker_schedule.cc",
        "if (running && (unanswered ||", "if ((unanswered ||")),
]

SCENARIOS = [
    *_of("gtest", "Scenario.a000_sequence_even", (
        "an index asked twice at the end", "src/source/sequence.cc",
        "{ again = sequence_->get(index); }",
        "{ again = sequence_->get(index), again = sequence_->get(index); }"),
         scenario="a000_sequence_even"),
    *_of("gtest", "Scenario.a001_take", (
        "take of one step more", "src/order/steps.cc",
        "part->count = std::min(left, wanted);", "part->count = std::min(left, wanted + 1);"),
         scenario="a001_take"),
    *_of("gtest", "Scenario.a004_map_arity", (
        "the arity of a function is not compared", "src/op/user_fn.cc",
        "if (input.fields.size() != fn_.inputs.size())",
        "if (input.fields.size() < fn_.inputs.size())"),
         scenario="a004_map_arity"),
    *_of("gtest", "Scenario.d_getitem_raises", (
        "the user's exception is lost", "src/base/guarded.h",
        "row()};\n    if (may_pass(error.code())) failure.kind",
        "row()};\n    failure.cause = nullptr;\n    if (may_pass(error.code())) failure.kind"),
         scenario="d_getitem_raises"),
    *_of("gtest", "Scenario.d_other_width", (
        "rows of another width are let through", "src/source/sequence.cc",
        "if (row != *wanted)", "if (row.fields.size() != wanted->fields.size())"),
         scenario="d_other_width"),
    *_of("gtest", "Scenario.d_blocked", (
        "a long wait is not reported", "src/run/stall.h",
        "if (waited < after_) return false;", "if (waited.count() >= 0) return false;"),
         scenario="d_blocked"),
    *_of("gtest", "Scenario.d_resume_size", (
        "a state of several kilobytes", "src/feed/state.cc", "return fields.dump();",
        "return fields.dump(100);"),
         scenario="d_resume_size"),
    *_of("pytest", "python/tests/test_scenarios.py::test_d_ctrl_c", (
        "a wait that does not look for Ctrl-C", "python/bindings/interpreter.cc",
        "if (PyErr_CheckSignals() != 0) throw nb::python_error();", ""),
         scenario="d_ctrl_c"),
]

PROMISES = [
    _promise("a000_sequence_uneven a000_sequence_odd_batch a001_batch_100_by_16 "
             "a002_run_undistributed b_custom_mean d_ragged_last",
             "a mean of means", "src/replica/reduce.cc",
             "count += part.count;\n      if (part.is_sum) {",
             "count += 1;\n      if (part.count > 0) {"),
    _promise("a001_finite_generator b_ghost_step",
             "the end of a stream is its last step once more", "src/feed/iterator.h",
             "if (!batches) {\n      go_to(epoch_ + 1,",
             "if (!batches && streamed() && step_ == run_->delivered()) return replay(step_++ - 1);"
             "\n    if (!batches) {\n      go_to(epoch_ + 1,"),
    _promise("b_validation c_workers_epochs",
             "an epoch that ended is not followed by another", "src/feed/iterator.h",
             "if (!batches) {\n      go_to(epoch_ + 1, 0, plan_.data()->geometry);",
             "if (!batches) {"),
    _promise("b_103_by_16 b_tail_of_one",
             "every share has the same loss scale", "src/sample/batch.cc",
             "return facts.loss_scale().value() * rounding;", "return rounding;"),
    _promise("b_custom_global",
             "a step is always counted as full", "src/sample/batch.cc",
             "return data_->facts().step_rows;",
             "return data_->layout().rows_max * data_->facts().shares;"),
    _promise("b_cut_rule",
             "every share as large as the first", "src/order/cut.h",
             "return rows / shares + (share < rows % shares ? 1 : 0);",
             "return std::min((rows + shares - 1) / shares, rows - first(share));"),
    _promise("b_peek",
             "a stream loses its first step", "src/run/sequencer.cc",
             "cursor_ = plan_->program.stream->open({pass_, 0});",
             "cursor_ = plan_->program.stream->open({pass_, 0});\n"
             "  (void)cursor_->pull(*std::make_unique<PulledStep>(), pulling);"),
    _promise("d_resume_random",
             "each plan draws numbers of its own", "src/plan/map_stage.cc",
             "const RandomKey key{place_.seed,",
             "const RandomKey key{place_.seed + reinterpret_cast<std::uintptr_t>(this),"),
    _promise("d_resume_replicas d_resume_fit",
             "a state restores its epoch only", "src/feed/iterator_state.cc",
             "const Geometry& fresh = plan_.data()->geometry;\n  const auto refuse",
             "const Geometry& fresh = plan_.data()->geometry;\n"
             "  if (state.step > 0) return go_to(state.epoch, 0, fresh);\n  const auto refuse"),
    _promise("a002_shard_by_replica",
             "a replica outside of run", "src/replica/strategy.cc",
             "if (running_replica == nullptr)\n    throw ConfigError(\n        \"replica: no",
             "static Replica nobody;\n  if (running_replica == nullptr) return nobody;\n"
             "  if (running_replica == nullptr)\n    throw ConfigError(\n        \"replica: no"),
    _promise("a000_double_batch",
             "batches of batches without a warning", "src/verb/batch.cc",
             "if (!element.known || element.fields.size() < 2) return std::nullopt;",
             "if (element.fields.size() < 1000) return std::nullopt;"),
    _promise("a004_threads",
             "each pipeline has a pool of its own", "src/base/pool.cc",
             "if (!pool) {\n    pool = std::make_shared<Pool>(",
             "if (pool.use_count() >= 0) {\n    pool = std::make_shared<Pool>("),
]

LENGTHS = [
    *_of("gtest", "PadRowsTest.*:PaddedBatchTest.*",
         ("left padding that is right", "src/sample/packed_field.cc",
          "rule.side == PadSide::left ? wanted.front() - shape->front() : 0",
          "rule.side == PadSide::left ? 0 : 0")),
    *_of("gtest", "RaggedTest.*",
         ("sizes that differ forgotten by the next batch", "src/run/step_in_flight.cc",
          "if (!spec) return;\n  for (const Share& share : shares_) share.batch->open(spec);",
          "(void)spec;"),
         ("a row of other sizes dropped", "src/sample/rows.cc",
          "column.others[row] = other ? leaf.kept() : Tensor();",
          "column.others[row] = Tensor();")),
    *_of("gtest", "BucketTest.*",
         ("a boundary in two buckets", "src/run/resolve.cc",
          "length >= range.low && length < range.high",
          "length >= range.low && length <= range.high"),
         ("every bucket has ids of its own", "src/verb/concatenate.cc",
          "if (!buckets_) first_id += part->verb->id_space(*part);",
          "first_id += part->verb->id_space(*part);")),
    *_of("gtest", "PackTest.*:PackingTest.*",
         ("no label where a row ends", "src/verb/packed_rows.cc",
          "labels.back() = next;", "labels.back() = kNoLabel;"),
         ("documents in the same order in every epoch", "src/verb/pack.cc",
          "const Turn own = key_.reshuffle ? turn : Turn{};",
          "const Turn own = turn.pass > 1000 ? turn : Turn{};"),
         ("a document cut that would fit", "src/order/packing.cc",
          "const auto found = spaces.lower_bound({piece.count, 0});",
          "const auto found = spaces.lower_bound({piece.count / 2, 0});"),
         ("a row as one document predicts nothing at its seams", "src/verb/packed_rows.cc",
          "before = own.front();", "before = kNoLabel;")),
    *_of("gtest", "StreamBucketsTest.*",
         ("a chunk without samples is the end", "src/verb/bucket_stream.cc",
          "while (next_ == lengths_.size() && !ended_)",
          "if (next_ == lengths_.size() && !ended_)"),
         ("a sample waits for one more", "src/verb/bucket_stream.cc",
          "arrived_ - buckets_[i].first > *own_.settings.window",
          "arrived_ - buckets_[i].first > *own_.settings.window + 1"),
         ("saved positions of waiting samples dropped", "src/verb/bucket_stream.cc",
          "return bucket.rows > 0 && bucket.first >= chunks_[i].first && bucket.first < end;",
          "return bucket.rows > 1000 && bucket.first >= chunks_[i].first && bucket.first < end;")),
    *_of("gtest", "PaddedMapTest.*",
         ("a whole batch padded with zeros", "src/run/compute.cc",
          "rule == nullptr ? FieldPadding{} : *rule",
          "rule == nullptr ? *rule : FieldPadding{}")),
    *_of("gtest", "WindowVerbTest.*",
         ("one window too few", "src/verb/window.cc",
          "samples < span() ? 0 : (samples - span()) / shift + 1",
          "samples <= span() ? 0 : (samples - span()) / shift + 1")),
    *_of("gtest", "ArrowTest.*",
         ("the offset of a slice ignored", "src/source/arrow_column.cc",
          "offset += array->offset;", "offset += 0;"),
         ("nulls of inner lists ignored", "src/source/arrow_column.cc",
          "if (items > 0 && values.is_null(number / items)) return true;",
          "if (items < 0 && values.is_null(number / items)) return true;")),
    *_of("gtest", "ArrowFileEncoderTest.*:WriteRecordsTest.*",
         ("record batches not aligned", "src/record/arrow_metadata.cc",
          "table.resize(table.size() + arrow_padded(end) - end);",
          "table.resize(table.size() + 0 * end);"),
         ("the last row of an Arrow file lost", "src/record/arrow_file_encoder.cc",
          "if (rows_ > 0) append_batch(out);", "if (rows_ > 1) append_batch(out);"),
         ("the columns of the first samples only", "src/feed/write_records.cc",
          "dataset_.sample(*total_ * i / count)", "dataset_.sample(i)"),
         ("rows that are not written yet not counted", "src/feed/write_records.cc",
          "draft->bytes() + encoder_->pending_bytes() >= options_.shard_bytes",
          "draft->bytes() >= options_.shard_bytes")),
]

AUDIO = [
    *_of("gtest", "AudioResampleTest.*",
         ("too little context for the filter", "src/codec/audio_resample.cc",
          "constexpr std::int64_t kContext = 256;", "constexpr std::int64_t kContext = 32;")),
    *_of("gtest", "AudioHeaderTest.*:OggPagesTest.*",
         ("a truncated WAV accepted", "src/codec/audio_header.cc",
          "chunk->data.size() < chunk->claimed && chunk->claimed < kSizeUnknown",
          "chunk->data.size() < chunk->claimed && chunk->claimed > kSizeUnknown"),
         ("checksums of pages ignored", "src/codec/ogg_pages.cc",
          "if (ogg_checksum(left.first(size)) != little32(left, kChecksum))",
          "if (ogg_checksum(left.first(size)) != ogg_checksum(left.first(size)))")),
    *_of("gtest", "AudioDecodeTest.*",
         ("every row of a block cropped like the first", "src/op/audio_decode.cc",
          "Rng rng = (*context.rng)(row);", "Rng rng = (*context.rng)(0 * row);"),
         ("padding not zero", "src/op/audio_decode.cc",
          "std::fill(end, out + plan.padded * plan.channels, 0.0F);",
          "std::fill(end, out + plan.padded * plan.channels, 1.0F);"),
         ("the sum of the channels", "src/op/audio_decode.cc",
          "static_cast<float>(sum / from)", "static_cast<float>(sum)")),
]

MUTANTS = [*PROPERTY, *LENGTHS, *AUDIO, *KERNELS, *IMAGES, *REPLICAS, *READING, *TRAINING,
           *WORKERS, *SCENARIOS, *PROMISES]
