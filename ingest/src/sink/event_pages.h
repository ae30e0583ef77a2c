// SPDX-License-Identifier: Apache-2.0
// EventPages: batches of records straight into pages of their tables, by
// several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
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
  const WriteBudget* budget = nullptr;  // how long the file may get
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
  // Until all rows are in the file. addresses: becomes those that they hold.
  void finish(Counters& counters, AddressSet& addresses);

 private:
  struct Table {
    const EventPlan& plan;
    LinkColumns links;
    std::uint32_t root;
    TablePages pages;
    std::size_t place = 0;  // in queue_
    bool has_symbols = false;
  };
  // Of the rows of some pages, each once, as they came.
  class Addresses {
   public:
    void insert(std::uint64_t address);
    [[nodiscard]] std::vector<std::uint64_t> take();

   private:
    std::vector<std::uint64_t> in_front_ = std::vector<std::uint64_t>(512);
    std::unordered_set<std::uint64_t> all_;
    std::vector<std::uint64_t> in_order_;
  };
  // What a thread needs for a batch.
  struct Kit {
    RecordEncoder record;
    std::string scratch;
    Counters counters;
    Addresses addresses;
  };
  struct Out;

  // From row `next` on; false when there is more of the batch.
  [[nodiscard]] bool make_pages(Table& table, const EventBatch& batch, std::size_t& next,
                                MadePages& made);
  [[nodiscard]] std::unique_ptr<Kit> take_kit();

  const EventCatalog& catalog_;
  ByteOrder order_;
  const PrintkFormats& printk_;
  std::vector<std::unique_ptr<Table>> tables_;  // by event
  std::mutex mutex_;
  std::vector<std::unique_ptr<Kit>> kits_;
  std::vector<EventBatch> spare_;
  std::unordered_map<std::string, std::uint32_t> roots_;
  AddressSet addresses_;  // in the order of the pages, whatever the threads
  PageFile file_;
  PageQueue queue_;  // ends first
};

}  // namespace wbscope
