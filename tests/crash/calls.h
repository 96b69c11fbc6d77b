/*
 * calls.h: the calls that change a directory. The linker gives each one to the crash test
 * (__wrap_), which dies or fails there, or makes the real call (__real_). tests/CMakeLists.txt has
 * the same list (crash_calls). A test defines a __wrap_ function for each call that it lists.
 */
#ifndef TESTS_CRASH_CALLS_H
#define TESTS_CRASH_CALLS_H

#include <sys/types.h>

int __real_open(const char *path, int flags, ...);
int __real_mkdir(const char *path, mode_t mode);
int __real_mkdirat(int at, const char *name, mode_t mode);
int __real_openat(int at, const char *name, int flags, ...);
int __real_fallocate(int fd, int mode, off_t offset, off_t length);
ssize_t __real_write(int fd, const void *bytes, size_t length);
int __real_fsync(int fd);
int __real_renameat(int from_at, const char *from, int to_at, const char *to);
int __real_unlinkat(int at, const char *name, int flags);

int __wrap_open(const char *path, int flags, ...);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdirat(int at, const char *name, mode_t mode);
int __wrap_openat(int at, const char *name, int flags, ...);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t length);
ssize_t __wrap_write(int fd, const void *bytes, size_t length);
int __wrap_fsync(int fd);
int __wrap_renameat(int from_at, const char *from, int to_at, const char *to);
int __wrap_unlinkat(int at, const char *name, int flags);

#endif
