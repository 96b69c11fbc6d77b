/*
 * json_text.h: JSON in the files of a checkpoint, which are foreign input: read by jansson, with a
 * bound for the memory that a short text can ask for.
 */
#ifndef STATE_CHECKPOINT_JSON_TEXT_H
#define STATE_CHECKPOINT_JSON_TEXT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#include <jansson.h>

/* Reads an object, with at most values_max values in it. A name that comes twice in an object is an
 * error. The caller frees *ret_root with json_decref. HVD_E_CORRUPT, HVD_E_LIMIT, HVD_E_NOMEM;
 * `path` begins the error text. */
int json_text_load(const char *path, const char *text, size_t length, size_t values_max,
                   json_t **ret_root, struct hvd_err *err) MUST_CHECK;

/* Appends the text as a JSON string, with its quotes. */
int json_text_quote(struct buf *out, const char *text) MUST_CHECK;

/* Reads an integer in [0, max]; false: the value is not such an integer. `value` may be NULL, as
 * for a member that an object does not have. */
bool json_text_u64(const json_t *value, uint64_t max, uint64_t *ret_number);

/* Copies a string of at most max bytes without control characters into the arena. 0, HVD_E_CORRUPT
 * or HVD_E_NOMEM. */
int json_text_copy(const json_t *value, size_t max, struct arena *arena,
                   const char **ret_text) MUST_CHECK;

#endif
