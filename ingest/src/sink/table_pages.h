// SPDX-License-Identifier: Apache-2.0
// TablePages: the B-tree of one table, made of rows that come in the order of
// their numbers (https://sqlite.org/fileformat2.html, "B-tree Pages").
//
// Leaves fill one after the other; interior pages are made at the end. A leaf
// does not tell its own number, so that rows become pages before it is known
// where these will lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sink/page_file.h"
#include "sink/sqlite_record.h"

namespace wbscope {

// Whole pages without numbers yet.
struct MadePages {
  struct Leaf {
    std::size_t page;
    std::int64_t last_row;
  };
  struct Link {
    std::size_t at;    // where in bytes the number of a page is to stand
    std::size_t page;  // which one
  };
  std::vector<std::byte> bytes;
  std::vector<Leaf> leaves;
  std::vector<Link> links;  // to pages of rows that are longer than a page
  std::vector<std::uint64_t> addresses;  // of kernel code, that their rows hold
  // The leaf that is still being filled links to these pages: rows of the next
  // batch must wait for their numbers.
  bool is_waited_for = false;

  void clear() noexcept {
    bytes.clear();
    leaves.clear();
    links.clear();
    addresses.clear();
    is_waited_for = false;
  }
};

class TablePages {
 public:
  explicit TablePages(const PageSize& size);

  // Pre: row is greater than the one before.
  void add(std::int64_t row, const RecordEncoder& record, MadePages& made);
  // The pages of made have got their numbers, in the order in which they were
  // made: sets the links. Another thread may add rows to the next one meanwhile,
  // unless this one is_waited_for.
  void number(MadePages& made, const PageRun& run);

  // Writes the last leaf and the interior pages. root: an empty leaf that SQLite
  // made with the table. Pre: number() for all that was made.
  void finish(std::uint32_t root, PageFile& file);

 private:
  struct Child {
    std::int64_t last_row;
    std::uint32_t page;
  };

  void close_leaf(MadePages& made);
  void put_leaf(std::byte* page) const;
  void add_long(const RecordEncoder& record, std::size_t local, MadePages& made);
  void put_interior(std::span<const Child> children, std::byte* page) const;
  [[nodiscard]] std::vector<Child> parents(PageFile& file) const;

  PageSize size_;
  // The leaf that is being filled: its rows one after the other.
  std::vector<std::byte> cells_;
  std::size_t used_ = 0;
  std::vector<std::uint16_t> offsets_;
  std::vector<MadePages::Link> links_;  // `at` counts from the start of cells_
  std::int64_t last_row_ = 0;
  std::vector<Child> children_;
  std::vector<std::byte> long_record_;
};

}  // namespace wbscope
