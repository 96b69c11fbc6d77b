/*
 * json_text.c: reads JSON of checkpoints by jansson. Called by part_json.c and manifest_json.c.
 * Invariant: jansson sees no text whose values would take much more memory than the text: an empty
 * list of two bytes takes about a hundred. jansson 2.14 crashes when an allocation fails, so memory
 * for all values is asked for first.
 */
#include "state/checkpoint/json_text.h"

#include "base/mem.h"
#include "base/text.h"

#include <string.h>

/* The most memory that jansson takes for one value and its place in a list or object. */
#define VALUE_BYTES 192

/* Parses a text that must be a JSON object of at most `values_max` values. The memory for all
 * values is asked for first and given back, because jansson crashes when an allocation fails. */
int json_text_load(const char *path, const char *text, size_t length, size_t values_max,
                   json_t **ret_root, struct hvd_err *err)
{
    size_t values;
    bool within = false; /* true: `text[i]` stands inside a string */
    json_error_t error = { .line = 0 };
    json_t *root;
    void *room;

    /* A text has at most one value, and one more for each comma, bracket and brace outside of
     * strings. */
    values = 1;
    for (size_t i = 0; i < length; i++) {
        if (within && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            within = !within;
        else if (!within && (text[i] == ',' || text[i] == '[' || text[i] == '{'))
            values++;
    }
    if (values > values_max)
        return err_set(err, HVD_E_LIMIT,
                       "%s: the file has more than %zu values; choose another checkpoint "
                       "(--from-checkpoint), or use a newer hvd-elastic",
                       path, values_max);
    room = mem_alloc(values * VALUE_BYTES + 2 * length);
    if (!room)
        return err_set(err, HVD_E_NOMEM,
                       "%s: no memory to read this file; free memory on this host", path);
    mem_free(room);
    root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (!root && json_error_code(&error) == json_error_out_of_memory)
        return err_set(err, HVD_E_NOMEM,
                       "%s: no memory to read this file; free memory on this host", path);
    if (!root || !json_is_object(root)) {
        json_decref(root);
        return err_set(err, HVD_E_CORRUPT,
                       "%s: line %d: %.100s; choose another checkpoint (--from-checkpoint)", path,
                       error.line, root ? "the text is JSON, but not an object" : error.text);
    }
    *ret_root = root;
    return 0;
}

/* Appends a text as a JSON string. Control characters, the quote and the backslash become
 * \u00NN. */
int json_text_quote(struct buf *out, const char *text)
{
    int rc = buf_append(out, "\"", 1);

    while (!rc && *text) {
        size_t plain = strcspn(text, "\"\\\x01\x02\x03\x04\x05\x06\a\b\t\n\v\f\r\x0e\x0f\x10\x11"
                                     "\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f");

        rc = buf_append(out, text, plain);
        text += plain;
        if (!rc && *text)
            rc = buf_printf(out, "\\u%04x", (unsigned)(unsigned char)*text++);
    }
    return rc ? rc : buf_append(out, "\"", 1);
}

/* Reads a JSON integer in [0, max]; false: the value is something else, or NULL. */
bool json_text_u64(const json_t *value, uint64_t max, uint64_t *ret_number)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t)json_integer_value(value) > max)
        return false;
    *ret_number = (uint64_t)json_integer_value(value);
    return true;
}

/* Copies a JSON string into the arena. HVD_E_CORRUPT: the value is no string, has more than `max`
 * bytes, or has control characters. */
int json_text_copy(const json_t *value, size_t max, struct arena *arena, const char **ret_text)
{
    const char *text = json_string_value(value);
    size_t length = text ? strlen(text) : 0;
    char *copy;

    if (!text || length > max || !text_is_clean(text, length) || strpbrk(text, "\t\n"))
        return HVD_E_CORRUPT;
    copy = arena_alloc(arena, length + 1);
    if (!copy)
        return HVD_E_NOMEM;
    *ret_text = memcpy(copy, text, length + 1);
    return 0;
}
