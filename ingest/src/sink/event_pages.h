// SPDX-License-Identifier: Apache-2.0
// EventPages: batches of records straight into pages of their tables, by
// several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/counters.h"
#include "format/event_catalog.h"
#include "sink/database.h"
#include "sink/event_batch.h"
#include "sink/page_queue.h"
#include "sink/symbols.h"

namespace wbscope {

// Where the pages go.
struct PagesOf {
  std::string path;      // of the database
  std::string name;      // what error messages call it
  unsigned threads = 1;  // that make pages
};

class EventPages {
 public:
  // Pre: the tables are made and committed, and nothing is written by SQLite up
  // to finish(). The references outlive it.
  EventPages(Database& db, const PagesOf& where, const EventCatalog& catalog, ByteOrder order,
             const PrintkFormats& printk);
  ~EventPages();
  EventPages(const EventPages&) = delete;
  EventPages& operator=(const EventPages&) = delete;

  // The event has a table.
  void add_table(std::uint32_t event, const LinkColumns& links);
  // Gives an empty batch memory that another one had.
  void equip(EventBatch& batch);
  // Takes the records and leaves an empty batch. Raises: Error, of an earlier one too.
  void add(std::uint32_t event, EventBatch& batch);
  // Until all rows are in the file.
  void finish(Counters& counters, AddressSet& addresses);

 private:
  struct Table {
    const EventPlan& plan;
    LinkColumns links;
    std::uint32_t root;
    TablePages pages;
    std::size_t place = 0;  // in queue_
    bool has_symbols = false;
    std::unique_ptr<AddressSet> addresses;
  };
  // What a thread needs for a batch.
  struct Kit {
    RecordEncoder record;
    std::string scratch;
    Counters counters;
  };
  struct Out;

  void make_pages(Table& table, const EventBatch& batch, MadePages& made);
  [[nodiscard]] std::unique_ptr<Kit> take_kit();

  Database& db_;
  const EventCatalog& catalog_;
  ByteOrder order_;
  const PrintkFormats& printk_;
  std::vector<std::unique_ptr<Table>> tables_;  // by event
  std::mutex mutex_;
  std::vector<std::unique_ptr<Kit>> kits_;
  std::vector<EventBatch> spare_;
  PageFile file_;
  PageQueue queue_;  // ends first
};

}  // namespace wbscope
