/*===- OldGlibc.c - The library runs with glibc 2.28 ------------------------===
 *
 * The linker binds a function to the newest version of it that the machine
 * that builds has, and the dynamic linker of an older distribution refuses the
 * library then. Functions that have not changed but in name are bound to their
 * first version here; what older releases lack is made of what they have.
 * MLIR's archives call these definitions, which nobody else sees.
 *
 *===----------------------------------------------------------------------===*/

#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>

/* Declares `old_name`, the version of `name` that every glibc has. */
#define OLD(result, name, parameters)                                          \
  __asm__(".symver old_" #name ", " #name "@GLIBC_2.2.5");                     \
  extern result old_##name parameters

/* Defines `name` by it. */
#define FORWARD(result, name, parameters, arguments)                           \
  OLD(result, name, parameters);                                               \
  result name parameters { return old_##name arguments; }

/* libm: the later versions do not set errno by way of a hook. */
FORWARD(double, exp, (double x), (x))
FORWARD(double, exp2, (double x), (x))
FORWARD(double, log, (double x), (x))
FORWARD(double, log2, (double x), (x))
FORWARD(double, pow, (double x, double y), (x, y))
FORWARD(double, hypot, (double x, double y), (x, y))

/* libpthread and libdl, which were libraries of their own. */
FORWARD(int, pthread_create,
        (pthread_t * thread, const pthread_attr_t *attributes,
         void *(*start)(void *), void *argument),
        (thread, attributes, start, argument))
FORWARD(int, pthread_join, (pthread_t thread, void **result), (thread, result))
FORWARD(int, pthread_detach, (pthread_t thread), (thread))
FORWARD(int, pthread_once, (pthread_once_t * once, void (*call)(void)),
        (once, call))
FORWARD(int, pthread_attr_setstacksize,
        (pthread_attr_t * attributes, size_t size), (attributes, size))
FORWARD(int, pthread_sigmask,
        (int how, const sigset_t *restrict set, sigset_t *restrict old),
        (how, set, old))
FORWARD(int, pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock))
FORWARD(int, pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock))
FORWARD(int, pthread_rwlock_unlock, (pthread_rwlock_t * lock), (lock))
__asm__(".symver old_pthread_setname_np, pthread_setname_np@GLIBC_2.12");
extern int old_pthread_setname_np(pthread_t thread, const char *name);
int pthread_setname_np(pthread_t thread, const char *name) {
  return old_pthread_setname_np(thread, name);
}
/* libstdc++ asks with its address whether there are threads. */
typedef void (*Destructor)(void *);
FORWARD(int, __pthread_key_create, (pthread_key_t * key, Destructor destroy),
        (key, destroy))

FORWARD(void *, dlopen, (const char *file, int mode), (file, mode))
FORWARD(void *, dlsym,
        (void *restrict handle, const char *restrict symbol), (handle, symbol))
FORWARD(int, dlclose, (void *handle), (handle))
FORWARD(char *, dlerror, (void), ())
FORWARD(int, dladdr, (const void *address, Dl_info *info), (address, info))

/* Calls of these were wrapped by the C library's static part. */
OLD(int, __xstat, (int version, const char *path, void *status));
OLD(int, __lxstat, (int version, const char *path, void *status));
OLD(int, __fxstat, (int version, int file, void *status));
OLD(int, __xmknod,
    (int version, const char *path, mode_t mode, dev_t *device));

enum { kStatVersion = 1, kMknodVersion = 0 };

int stat(const char *restrict path, struct stat *restrict status) {
  return old___xstat(kStatVersion, path, status);
}
int lstat(const char *restrict path, struct stat *restrict status) {
  return old___lxstat(kStatVersion, path, status);
}
int fstat(int file, struct stat *status) {
  return old___fxstat(kStatVersion, file, status);
}
int stat64(const char *restrict path, struct stat64 *restrict status) {
  return old___xstat(kStatVersion, path, status);
}
int lstat64(const char *restrict path, struct stat64 *restrict status) {
  return old___lxstat(kStatVersion, path, status);
}
int fstat64(int file, struct stat64 *status) {
  return old___fxstat(kStatVersion, file, status);
}
int mknod(const char *path, mode_t mode, dev_t device) {
  return old___xmknod(kMknodVersion, path, mode, &device);
}

/* Whether reference counts may do without atomic operations: never. */
char __libc_single_threaded = 0;

/* For statistics of LLVM that nothing here asks for. */
struct mallinfo2 mallinfo2(void) {
  struct mallinfo2 nothing = {0};
  return nothing;
}

uint32_t arc4random(void) {
  uint32_t value;
  while (getrandom(&value, sizeof(value), 0) != sizeof(value))
    ;
  return value;
}
