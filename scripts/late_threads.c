/*===- late_threads.c - Threads that begin, wake and end late ------------===
 *
 * For LD_PRELOAD (starts.py): sleeps at random where threads hand over to one
 * another, as on a machine that has no core for them.
 *
 *===----------------------------------------------------------------------===*/

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static _Atomic uint64_t state;

/* SplitMix64. */
static uint64_t draw(void) {
  uint64_t x = atomic_fetch_add(&state, 0x9e3779b97f4a7c15u);
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

/* Once in `often` calls, gives the core away, or sleeps for up to `longest`
   microseconds. */
static void pause_sometimes(unsigned often, unsigned longest) {
  uint64_t drawn = draw();
  if (drawn % often)
    return;
  drawn >>= 20;
  struct timespec time = {0, (long)((drawn >> 1) % longest) * 1000};
  if (drawn & 1)
    sched_yield();
  else
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

__attribute__((constructor)) static void begin(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  state = (uint64_t)now.tv_nsec * 1000003u + (uint64_t)getpid();
}

__attribute__((destructor)) static void end(void) { pause_sometimes(2, 20000); }

/* Defines `real`, the function that this one hides. */
#define REAL(found, ...)                                                       \
  static int (*real)(__VA_ARGS__);                                             \
  if (!real)                                                                   \
  real = (int (*)(__VA_ARGS__))(found)
/* Condition variables have an older version, of another size. */
#define NEXT(name) dlsym(RTLD_NEXT, #name)
#define NEXT_CONDITION(name) dlvsym(RTLD_NEXT, #name, "GLIBC_2.3.2")

struct Start {
  void *(*body)(void *);
  void *argument;
};

static void *run(void *given) {
  struct Start start = *(struct Start *)given;
  free(given);
  pause_sometimes(2, 30000);
  void *result = start.body(start.argument);
  pause_sometimes(2, 5000);
  return result;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                   void *(*body)(void *), void *argument) {
  REAL(NEXT(pthread_create), pthread_t *, const pthread_attr_t *,
       void *(*)(void *), void *);
  struct Start *start = malloc(sizeof(*start));
  *start = (struct Start){body, argument};
  int code = real(thread, attributes, run, start);
  if (code)
    free(start);
  pause_sometimes(2, 5000);
  return code;
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
  REAL(NEXT(pthread_mutex_lock), pthread_mutex_t *);
  pause_sometimes(4096, 300);
  return real(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex) {
  REAL(NEXT(pthread_mutex_unlock), pthread_mutex_t *);
  int code = real(mutex);
  pause_sometimes(4096, 300);
  return code;
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
  REAL(NEXT_CONDITION(pthread_cond_wait), pthread_cond_t *, pthread_mutex_t *);
  int code = real(condition, mutex);
  pause_sometimes(4, 2000);
  return code;
}

int pthread_cond_broadcast(pthread_cond_t *condition) {
  REAL(NEXT_CONDITION(pthread_cond_broadcast), pthread_cond_t *);
  pause_sometimes(8, 1000);
  int code = real(condition);
  pause_sometimes(8, 1000);
  return code;
}
