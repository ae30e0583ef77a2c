// SPDX-License-Identifier: Apache-2.0
// Merger: reads all CPUs in parallel and gives their wanted records in order
// of time.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "pipeline/cpu_stream.h"
#include "pipeline/worker_pool.h"

namespace wbscope {

// Memory is bounded: each stream has at most two blocks, and a stream whose
// blocks are both full is not read on until one has been used up.
class Merger {
 public:
  // false: enough. A span in place of the block, whose bytes(ref) it is, would be
  // written and read again for each record, half a call's time.
  using OnRecord = std::function<bool(const CpuStream& stream, const RecordRef& ref,
                                      const RecordBlock& block)>;
  using OnTick = std::function<void()>;  // now and then; may throw to stop

  Merger(std::vector<std::unique_ptr<CpuStream>> streams, WorkerPool& pool);
  ~Merger() { stop(); }
  Merger(const Merger&) = delete;
  Merger& operator=(const Merger&) = delete;

  // Records of equal time come in the order of the streams, as trace-cmd
  // report prints them. Returns false when on_record had enough: what the
  // streams say then covers more than was given. Raises: what the reading
  // threads raised.
  bool run(const OnRecord& on_record, const OnTick& on_tick);

  // Waits for reads that are under way, and starts no others.
  void stop();

  [[nodiscard]] const std::vector<std::unique_ptr<CpuStream>>& streams() const noexcept {
    return streams_;
  }
  [[nodiscard]] std::uint64_t consumed() const;

 private:
  struct Lane {
    RecordBlock blocks[2];
    bool full[2] = {false, false};
    bool filling = false;
    bool ended = false;
    int reading = 0;  // block that the merge reads
    std::size_t next = 0;
    std::uint64_t consumed = 0;
  };

  void start_fill(std::size_t lane, int block);
  // Makes the lane's current block one with records left; false at its end.
  bool advance(std::size_t lane, const OnTick& on_tick);

  std::vector<std::unique_ptr<CpuStream>> streams_;
  WorkerPool& pool_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr failure_;
  std::size_t under_way_ = 0;
  bool stopping_ = false;
};

}  // namespace wbscope
