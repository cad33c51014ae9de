#include "feed/own_shares.h"

#include <fmt/format.h>

#include "plan/plan_data.h"

namespace penstock {

std::optional<World> own_world(const LoaderOptions& options) {
  if (!options.shares) return find_world();
  if (options.shares_from.empty()) return std::nullopt;
  World world;
  world.rank = world.data_rank = options.shares->first;
  world.size = world.data_size = options.shares->total;
  world.source = options.shares_from;
  return world;
}

std::string own_shares_text(const Plan& plan, const World& world) {
  if (world.data_size == 1 || world.data_rank != 0) return {};
  std::string part = fmt::format("share {} of {} of each batch", world.data_rank, world.data_size);
  if (const auto samples = plan.samples(); samples && samples->is_counted())
    part =
        fmt::format("about {} of the {} samples of each epoch",
                    (samples->count() + world.data_size - 1) / world.data_size, samples->count());
  return fmt::format(
      "this process is rank {} of {} ({}), so this Loader serves {}; every rank must loop over its "
      "own Loader. To read all samples in one process (for example to evaluate on rank 0 only), "
      "pass world=1 (C++: shares = Shares{{}})",
      world.rank, world.size, world.source, part);
}

Plan plan_for(const Dataset& dataset, const LoaderOptions& options) {
  if (options.shares) {
    const auto found = own_world(options);
    return Plan(
        dataset.resolve(options.while_waiting),
        {.shares = *options.shares, .tail = options.tail, .world = found ? found->text() : ""});
  }
  const World world = find_world();
  Plan plan(dataset.resolve(options.while_waiting),
            {.shares = {world.data_size, world.data_rank, 1},
             .tail = options.tail,
             .world = world.text()});
  if (world.data_size > 1) refuse_drawn_seed(*plan.data(), world.data_size);
  return plan;
}

LoaderOptions without_plan(LoaderOptions options) {
  // Under a launcher the training loop is the user's, and cannot skip a collective.
  if (!options.empty) options.empty = options.shares ? Empty::deliver : Empty::refuse;
  options.shares.reset();
  options.shares_from.clear();
  options.tail.reset();
  return options;
}

}  // namespace penstock
