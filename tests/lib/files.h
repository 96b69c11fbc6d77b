/*
 * files.h: what a test does to a file that a program owns. A call that fails aborts the test.
 */
#ifndef TESTS_LIB_FILES_H
#define TESTS_LIB_FILES_H

#include "base/base.h"

#define FILES_MAX_BYTES (1024 * 1024)

struct file_bytes {
    size_t length;
    char bytes[FILES_MAX_BYTES];
};

void files_read(const char *path, struct file_bytes *ret_bytes);
void files_write(const char *path, const void *bytes, size_t length);
void files_patch(const char *path, size_t offset, const void *bytes, size_t length);
bool files_exist(const char *path);

/* The file holds exactly these bytes. */
bool files_hold(const char *path, const struct file_bytes *bytes);

/* Root may write a file that its mode forbids. true: root obeys modes from here on, until the call
 * with false. */
void files_obey_permissions(bool obey);

#endif
