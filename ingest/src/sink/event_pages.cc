// SPDX-License-Identifier: Apache-2.0
// Batches of records straight into pages of their tables.
#include "sink/event_pages.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace wbscope {
namespace {

constexpr std::size_t kMostSpare = 16;
// Made of a batch at a time: a short record can be a long row.
constexpr std::size_t kMostMade = 1u << 20;

std::unordered_map<std::string, std::uint32_t> roots_in(Database& db) {
  std::unordered_map<std::string, std::uint32_t> roots;
  Statement rows(db, "SELECT name, rootpage FROM main.sqlite_schema WHERE type = 'table'");
  while (rows.step()) {
    roots.emplace(rows.text(0), static_cast<std::uint32_t>(rows.integer(1)));
  }
  return roots;
}

void put_lead(const EventLead& lead, const LinkColumns& links, RecordEncoder& record) {
  record.integer(lead.ts);
  // The text of a kernel log tells neither.
  lead.cpu == EventLead::kNoCpu ? record.null() : record.integer(lead.cpu);
  lead.tid == EventLead::kNoTid ? record.null() : record.integer(lead.tid);
  record.integer(lead.buffer);
  if (links.has_prev_seq) {
    lead.prev_seq == EventLead::kNoSeq ? record.null() : record.integer(lead.prev_seq);
  }
  if (links.has_repeats_count) record.integer(lead.repeats);
}

}  // namespace

// A value behind the ones before it in the record of its row. Columns have the
// type of their fields' values, so that SQLite would convert none.
struct EventPages::Out {
  Kit& kit;

  void next() noexcept {}
  void integer(std::int64_t value) { kit.record.integer(value); }
  void text(std::string_view value) {
    if (is_utf8(value)) [[likely]] return kit.record.text(value);
    kit.counters.add(Counter::kReplacedText);
    kit.record.text(replace_invalid_utf8(value));
  }
  void blob(std::span<const std::byte> value) { kit.record.blob(value); }
  void null() { kit.record.null(); }
  [[nodiscard]] std::string& scratch() {
    kit.scratch.clear();
    return kit.scratch;
  }
  void made(const std::string& value) { kit.record.text(value); }
  void symbol(std::uint64_t address) { kit.addresses.insert(address); }
};

EventPages::EventPages(Database& db, const PagesOf& where, const EventCatalog& catalog,
                       ByteOrder order, const PrintkFormats& printk)
    : catalog_(catalog),
      order_(order),
      printk_(printk),
      tables_(catalog.events.size()),
      roots_(roots_in(db)),
      file_(where.path, where.name),
      queue_(file_, where.threads, [this](MadePages& made) {
        for (const std::uint64_t address : made.addresses) addresses_.insert(address);
      }) {
  if (where.budget != nullptr) file_.limit_size(*where.budget);
}

EventPages::~EventPages() = default;

void EventPages::add_table(std::uint32_t event, const LinkColumns& links) {
  const EventPlan& plan = catalog_.events[event];
  tables_[event].reset(new Table{.plan = plan,
                                 .links = links,
                                 .root = roots_.at(plan.table),
                                 .pages = TablePages(file_.page_size())});
  Table& table = *tables_[event];
  table.place = queue_.add_table(table.pages);
  table.has_symbols = std::ranges::any_of(plan.fields, &FieldPlan::is_symbol);
}

void EventPages::equip(EventBatch& batch) {
  const std::lock_guard lock(mutex_);
  if (spare_.empty()) return;
  batch = std::move(spare_.back());
  spare_.pop_back();
}

void EventPages::add(std::uint32_t event, EventBatch& batch) {
  Table& table = *tables_[event];
  const auto taken = std::make_shared<EventBatch>(std::exchange(batch, {}));
  queue_.add(table.place, taken->size(), [this, &table, taken, next = std::size_t{0}](
                                             MadePages& made) mutable {
    if (!make_pages(table, *taken, next, made)) return false;
    taken->clear();
    const std::lock_guard lock(mutex_);
    if (spare_.size() < kMostSpare) spare_.push_back(std::move(*taken));
    return true;
  });
}

std::unique_ptr<EventPages::Kit> EventPages::take_kit() {
  const std::lock_guard lock(mutex_);
  if (kits_.empty()) return std::make_unique<Kit>();
  auto kit = std::move(kits_.back());
  kits_.pop_back();
  return kit;
}

void EventPages::Addresses::insert(std::uint64_t address) {
  std::uint64_t& seen = in_front_[(address >> 2) & (in_front_.size() - 1)];
  if (seen == address) [[likely]] return;
  seen = address;
  if (all_.insert(address).second) in_order_.push_back(address);
}

std::vector<std::uint64_t> EventPages::Addresses::take() {
  if (in_order_.empty()) return {};
  std::ranges::fill(in_front_, 0);
  all_.clear();
  return std::exchange(in_order_, {});
}

bool EventPages::make_pages(Table& table, const EventBatch& batch, std::size_t& next,
                            MadePages& made) {
  auto kit = take_kit();
  const FieldReader<Out> reader({.order = order_,
                                 .long_bytes = catalog_.page.commit_bytes,
                                 .printk = printk_,
                                 .counters = kit->counters});
  Out out{.kit = *kit};
  while (next < batch.rows.size() && made.bytes.size() < kMostMade) {
    const auto& row = batch.rows[next++];
    kit->record.begin_row();
    put_lead(row.lead, table.links, kit->record);
    read_fields(reader, table.plan, batch.record(row), kit->counters, out);
    kit->record.null();  // seq
    table.pages.add(row.lead.seq, kit->record, made);
  }
  if (table.has_symbols) made.addresses = kit->addresses.take();
  kit->record.shrink();
  const std::lock_guard lock(mutex_);
  kits_.push_back(std::move(kit));
  return next == batch.rows.size();
}

void EventPages::finish(Counters& counters, AddressSet& addresses) {
  queue_.drain();
  for (const auto& table : tables_) {
    if (table) table->pages.finish(table->root, file_);
  }
  addresses = std::move(addresses_);
  file_.finish();
  for (const auto& kit : kits_) counters.merge(kit->counters);
  kits_.clear();
}

}  // namespace wbscope
