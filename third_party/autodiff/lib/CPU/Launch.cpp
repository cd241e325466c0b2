//===- Launch.cpp - Grids over threads ------------------------------------===//
//
// A pool of threads with large stacks, since tiles are on the stack. The
// launching thread works, too, if its own stack, which may be small, suffices.
//
//===----------------------------------------------------------------------===//

#include "Runtime.h"

#include "autodiff/CPU/Kernel.h"
#include "autodiff/Support/Mutation.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <pthread.h>
#include <sched.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace llvm;
using namespace mlir::autodiff::cpu;
namespace mutation = mlir::autodiff::mutation;

namespace {

/// One launch, as its threads see it.
struct Job {
  EntryPoint entry;
  void **arguments;
  uint32_t grid[3];
  uint64_t count;
  /// How many programs a thread takes at a time.
  uint64_t chunk;
  LaunchState launch;
  std::atomic<uint64_t> next{0};
  /// Threads that may still join, and threads at work.
  uint32_t places = 0;
  uint32_t working = 0;

  void run() {
    ProgramContext context = {};
    context.launch = &launch;
    for (int axis = 0; axis < 3; ++axis)
      context.gridSize[axis] = grid[axis];
    while (true) {
      uint64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
      if (begin >= count)
        return;
      uint64_t end = mutation::isMade("cpu-launch:programs beyond the grid")
                         ? begin + chunk
                         : std::min(begin + chunk, count);
      for (uint64_t program = begin; program < end; ++program) {
        context.programId[0] = program % grid[0];
        context.programId[1] = program / grid[0] % grid[1];
        context.programId[2] = program / grid[0] / grid[1];
        entry(arguments, &context);
      }
    }
  }
};

/// Threads that wait for jobs. One job runs at a time.
class Pool {
public:
  static Pool &get() {
    // Never destroyed: its threads may outlive everything. A forked child does
    // not have the threads, and starts a pool of its own.
    static std::atomic<Pool *> instance{nullptr};
    static std::mutex mutex;
    Pool *pool = instance.load(std::memory_order_acquire);
    if (pool && (pool->owner == getpid() ||
                 mutation::isMade("cpu-launch:threads of a parent")))
      return *pool;
    std::lock_guard<std::mutex> lock(mutex);
    pool = instance.load(std::memory_order_relaxed);
    if (!pool || pool->owner != getpid()) {
      pool = new Pool;
      instance.store(pool, std::memory_order_release);
    }
    return *pool;
  }

  /// Runs the job on `threads` threads with at least `stack` bytes each, and on
  /// the calling one if it `joins`.
  Error run(Job &job, uint32_t threads, uint64_t stack, bool joins) {
    std::lock_guard<std::mutex> turn(launches);
    std::unique_lock<std::mutex> lock(mutex);
    if (stack > stackSize && !mutation::isMade("cpu-launch:stacks as they are"))
      stop(lock, stack);
    while (workers < threads)
      if (Error error = start())
        return error;
    job.places = threads;
    current = &job;
    ++generation;
    wake.notify_all();
    if (joins) {
      lock.unlock();
      job.run();
      lock.lock();
    }
    done.wait(lock, [&] {
      return job.working == 0 &&
             job.next.load(std::memory_order_relaxed) >= job.count;
    });
    current = nullptr;
    return Error::success();
  }

private:
  static void *main(void *self) {
    static_cast<Pool *>(self)->work();
    return nullptr;
  }

  Error start() {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int code = pthread_attr_setstacksize(&attributes, stackSize);
    pthread_t thread;
    if (code == 0)
      code = pthread_create(&thread, &attributes, main, this);
    pthread_attr_destroy(&attributes);
    if (code != 0)
      return createStringError(
          "cannot start a thread with a stack of %llu MiB",
          static_cast<unsigned long long>(stackSize >> 20));
    ++workers;
    return Error::success();
  }

  /// Ends all threads; new ones get stacks of at least `stack` bytes.
  void stop(std::unique_lock<std::mutex> &lock, uint64_t stack) {
    stopping = true;
    wake.notify_all();
    done.wait(lock, [&] { return workers == 0; });
    stopping = false;
    stackSize = PowerOf2Ceil(stack);
  }

  void work() {
    std::unique_lock<std::mutex> lock(mutex);
    uint64_t seen = generation - (current ? 1 : 0);
    while (true) {
      wake.wait(lock, [&] { return stopping || generation != seen; });
      if (stopping)
        break;
      seen = generation;
      Job *job = current;
      if (!job || job->places == 0)
        continue;
      --job->places;
      ++job->working;
      lock.unlock();
      job->run();
      lock.lock();
      if (--job->working == 0)
        done.notify_all();
    }
    --workers;
    done.notify_all();
  }

  pid_t owner = getpid();
  std::mutex launches;
  std::mutex mutex;
  std::condition_variable wake, done;
  Job *current = nullptr;
  uint64_t generation = 0;
  uint32_t workers = 0;
  bool stopping = false;
  /// Reserved, not committed: pages that are never touched cost nothing.
  uint64_t stackSize = 64ull << 20;
};

} // namespace

/// How much of the launching thread's stack a kernel may use, in bytes.
static constexpr uint64_t callerStack = 256u << 10;

/// The number of threads that the environment or the machine allows.
static uint32_t getDefaultThreads() {
  static const uint32_t threads = [] {
    if (const char *text = std::getenv("TRITON_AUTODIFF_CPU_THREADS"))
      if (int value = std::atoi(text); value > 0)
        return static_cast<uint32_t>(value);
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
      return static_cast<uint32_t>(CPU_COUNT(&set));
    return std::max(1u, std::thread::hardware_concurrency());
  }();
  return threads;
}

Error mlir::autodiff::cpu::launch(const Kernel &kernel, uint32_t gx,
                                  uint32_t gy, uint32_t gz, void **arguments,
                                  uint32_t threads) {
  uint64_t count = static_cast<uint64_t>(gx) * gy * gz;
  if (count == 0)
    return Error::success();
  if (threads == 0)
    threads = getDefaultThreads();
  threads = std::min<uint64_t>(threads, count);

  Job job;
  job.entry = kernel.getEntry();
  job.arguments = arguments;
  job.grid[0] = gx;
  job.grid[1] = gy;
  job.grid[2] = gz;
  job.count = count;
  job.chunk = std::max<uint64_t>(1, count / (8ull * threads));
  bool joins = kernel.getStackSize() <= callerStack;
  if (joins && threads == 1)
    job.run();
  // Includes the frames of library functions.
  else if (Error error =
               Pool::get().run(job, threads - (joins ? 1 : 0),
                               kernel.getStackSize() + (1u << 20), joins))
    return error;
  if (!job.launch.failure.empty())
    return createStringError("%s", job.launch.failure.c_str());
  return Error::success();
}
