/*
 * files.h: what tests do to files behind a program's back. Whatever cannot be done aborts.
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

/* The file still holds these bytes, all of them and no more. */
bool files_hold(const char *path, const struct file_bytes *bytes);

/* Root may write what nobody may. From here on, until the matching call, it may not. */
void files_obey_permissions(bool obey);

#endif
