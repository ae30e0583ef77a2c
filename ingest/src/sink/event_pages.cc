// SPDX-License-Identifier: Apache-2.0
// Batches of records straight into pages of their tables.
#include "sink/event_pages.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace wbscope {
namespace {

constexpr std::size_t kMostSpare = 16;
constexpr std::size_t kAddressesInFront = 512;  // of each table

std::uint32_t root_of(Database& db, const std::string& table) {
  Statement row(db, "SELECT rootpage FROM main.sqlite_schema WHERE type = 'table' AND name = ?");
  row.bind_text(1, table);
  if (!row.step()) db.fail();
  return static_cast<std::uint32_t>(row.integer(0));
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
  if (links.has_is_repeat) record.integer(lead.is_repeat ? 1 : 0);
}

}  // namespace

// A value behind the ones before it in the record of its row. Columns have the
// type of their fields' values, so that SQLite would convert none.
struct EventPages::Out {
  Kit& kit;
  AddressSet* addresses;  // null: no field holds any

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
  void symbol(std::uint64_t address) {
    if (addresses != nullptr) addresses->insert(address);
  }
};

EventPages::EventPages(Database& db, const PagesOf& where, const EventCatalog& catalog,
                       ByteOrder order, const PrintkFormats& printk)
    : db_(db),
      catalog_(catalog),
      order_(order),
      printk_(printk),
      tables_(catalog.events.size()),
      file_(where.path, where.name),
      queue_(file_, where.threads) {}

EventPages::~EventPages() = default;

void EventPages::add_table(std::uint32_t event, const LinkColumns& links) {
  const EventPlan& plan = catalog_.events[event];
  tables_[event].reset(new Table{.plan = plan,
                                 .links = links,
                                 .root = root_of(db_, plan.table),
                                 .pages = TablePages(file_.page_size()),
                                 .addresses = {}});
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
  queue_.add(table.place, taken->size(), [this, &table, taken](MadePages& made) {
    make_pages(table, *taken, made);
    taken->clear();
    const std::lock_guard lock(mutex_);
    if (spare_.size() < kMostSpare) spare_.push_back(std::move(*taken));
  });
}

std::unique_ptr<EventPages::Kit> EventPages::take_kit() {
  const std::lock_guard lock(mutex_);
  if (kits_.empty()) return std::make_unique<Kit>();
  auto kit = std::move(kits_.back());
  kits_.pop_back();
  return kit;
}

void EventPages::make_pages(Table& table, const EventBatch& batch, MadePages& made) {
  if (table.has_symbols && !table.addresses) {
    table.addresses = std::make_unique<AddressSet>(kAddressesInFront);
  }
  auto kit = take_kit();
  const FieldReader<Out> reader({.order = order_,
                                 .long_bytes = catalog_.page.commit_bytes,
                                 .printk = printk_,
                                 .counters = kit->counters});
  Out out{.kit = *kit, .addresses = table.addresses.get()};
  for (const auto& row : batch.rows) {
    kit->record.begin_row();
    put_lead(row.lead, table.links, kit->record);
    read_fields(reader, table.plan, batch.record(row), kit->counters, out);
    kit->record.null();  // seq
    table.pages.add(row.lead.seq, kit->record, made);
  }
  const std::lock_guard lock(mutex_);
  kits_.push_back(std::move(kit));
}

void EventPages::finish(Counters& counters, AddressSet& addresses) {
  queue_.drain();
  for (const auto& table : tables_) {
    if (!table) continue;
    table->pages.finish(table->root, file_);
    if (!table->addresses) continue;
    for (const std::uint64_t address : table->addresses->all()) addresses.insert(address);
  }
  file_.finish();
  for (const auto& kit : kits_) counters.merge(kit->counters);
  kits_.clear();
}

}  // namespace wbscope
