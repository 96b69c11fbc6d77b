/*
 * part_json.c: the header of a safetensors file (struct part), printed and parsed. Called by
 * part.c, which writes such files, and by read.c. Invariant: a header that was accepted describes
 * each byte of the file exactly once.
 */
#include "base/mem.h"
#include "base/text.h"
#include "proto/commit.h"
#include "state/checkpoint/json_text.h"
#include "state/checkpoint/part_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define METADATA        "__metadata__"
#define METADATA_COMMIT "hvd.commit"
#define HEADER_ALIGN    8
/* The most JSON values of one entry in a header, and of everything else. */
#define VALUES_PER_ENTRY 16
#define VALUES_REST      1024

/* The types in the order of enum hvd_dtype, with the names of safetensors. */
static const struct part_type {
    const char *name;
    size_t bytes;
} part_types[] = {
    {"U8",    1},
    { "I8",   1},
    { "I32",  4},
    { "I64",  8},
    { "F16",  2},
    { "BF16", 2},
    { "F32",  4},
    { "F64",  8},
    { "I16",  2},
    { "U16",  2},
    { "U32",  4},
    { "U64",  8},
    { "BOOL", 1}
};

void part_init(struct part *part)
{
    *part = (struct part){ .commit = 0 };
    arena_init(&part->memory, 2 * (size_t)LIMIT_PART_HEADER_BYTES);
}

void part_release(struct part *part)
{
    if (!part)
        return;
    VEC_RELEASE(part);
    arena_release(&part->memory);
    part_init(part);
}

_Static_assert(ARRAY_SIZE(part_types) == HVD_BOOL + 1, "a row for each type");

/* Returns the name of a type: 0 is bytes of no known type, the other types are 1 + enum
 * hvd_dtype. */
const char *part_type_name(uint32_t type)
{
    if (type == 0)
        return part_types[HVD_UINT8].name;
    return type <= ARRAY_SIZE(part_types) ? part_types[type - 1].name : NULL;
}

/* Returns the size of one element of the type; 1 for bytes of no known type. */
size_t part_type_bytes(uint32_t type)
{
    return type > 0 && type <= ARRAY_SIZE(part_types) ? part_types[type - 1].bytes : 1;
}

/* Finds a type by its name in safetensors; false: no type has this name, or `name` is NULL. */
bool part_type_named(const char *name, uint32_t *ret_type)
{
    for (uint32_t i = 0; name && i < ARRAY_SIZE(part_types); i++)
        if (!strcmp(part_types[i].name, name)) {
            *ret_type = i + 1;
            return true;
        }
    return false;
}

/* Writes a commit as text: its round and its index in the round, "12.5". */
const char *part_commit_text(uint64_t commit, char text[PART_COMMIT_MAX])
{
    snprintf(text, PART_COMMIT_MAX, "%" PRIu64 ".%" PRIu32, COMMIT_ROUND_OF(commit),
             COMMIT_PLACE_OF(commit));
    return text;
}

/* Reads a commit as part_commit_text writes it. The text is written again and compared, so "012.5"
 * is refused. */
bool part_commit_read(const char *text, uint64_t *ret_commit)
{
    struct span rest = { text, strlen(text) };
    char again[PART_COMMIT_MAX];
    struct span part;
    uint64_t round, place;

    if (!span_next(&rest, '.', &part) ||
        text_parse_u64(part, 0, UINT32_MAX, "a round", &round, NULL) ||
        text_parse_u64(rest, 0, UINT32_MAX, "a commit", &place, NULL) ||
        strcmp(part_commit_text(COMMIT_FIRST_OF(round) | place, again), text) != 0)
        return false;
    *ret_commit = COMMIT_FIRST_OF(round) | place;
    return true;
}

/* Appends one entry of the header, and a comma before it. */
static int print_entry(const struct part_entry *entry, struct buf *out, struct hvd_err *err)
{
    size_t unit = part_type_bytes(entry->type);
    int rc;

    if (!strcmp(entry->name, METADATA) || !part_type_name(entry->type))
        return err_set(err, HVD_E_INVAL,
                       "entry \"%s\": a checkpoint cannot hold an entry of this name or type; give "
                       "the entry another name or type",
                       entry->name);
    if (entry->bytes % unit)
        return err_set(err, HVD_E_INVAL,
                       "entry \"%s\": its %" PRIu64 " bytes are not a multiple of %zu, the bytes "
                       "of its type %s; register it with its real type",
                       entry->name, entry->bytes, unit, part_type_name(entry->type));
    rc = buf_append(out, ",", 1);
    if (!rc)
        rc = json_text_quote(out, entry->name);
    if (!rc)
        rc = buf_printf(out,
                        ":{\"dtype\":\"%s\",\"shape\":[%" PRIu64 "],\"data_offsets\":[%" PRIu64
                        ",%" PRIu64 "]}",
                        part_type_name(entry->type), entry->bytes / unit, entry->offset,
                        entry->offset + entry->bytes);
    return rc;
}

/* Appends the header, from its 8 bytes of length on, whose value is known only at the end. `part`
 * has the entries with their offsets, and gets header_bytes. */
static int print_header(struct part *part, struct buf *out, struct hvd_err *err)
{
    const size_t begin = out->length;
    const struct part_entry *entry;
    char commit[PART_COMMIT_MAX];
    uint64_t length;
    int rc = buf_append(out, "\0\0\0\0\0\0\0\0", 8);

    if (!rc)
        rc = buf_printf(out, "{\"" METADATA "\":{\"" METADATA_COMMIT "\":\"%s\"}",
                        part_commit_text(part->commit, commit));
    VEC_EACH (entry, part) {
        if (!rc)
            rc = print_entry(entry, out, err);
    }
    if (!rc)
        rc = buf_append(out, "}", 1);
    while (!rc && (out->length - begin) % HEADER_ALIGN)
        rc = buf_append(out, " ", 1);
    if (rc)
        return rc;
    length = out->length - begin - 8;
    for (size_t i = 0; i < 8; i++)
        out->data[begin + i] = (char)(uint8_t)(length >> 8 * i);
    part->header_bytes = out->length - begin;
    return 0;
}

/* Lays the entries out in a file, and appends the header of that file to `out`. After a failure
 * `out` is as it was before. */
int part_print(const struct part_sources *sources, struct part *part, struct buf *out,
               struct hvd_err *err)
{
    const size_t begin = out->length;
    int rc;

    part_init(part);
    part->commit = sources->commit;
    rc = VEC_RESERVE(part, sources->count, LIMIT_MANIFEST_ENTRIES);
    /* The largest types first: the bytes of each entry then begin at a multiple of its type. */
    for (size_t unit = 8; !rc && unit > 0; unit /= 2)
        for (size_t i = 0; !rc && i < sources->count; i++) {
            const struct part_source *source = &sources->items[i];

            if (part_type_bytes(source->type) != unit)
                continue;
            part->items[part->count++] =
                (struct part_entry){ source->name, source->bytes, part->data_bytes, source->type,
                                     source->at };
            part->data_bytes += source->bytes;
            if (source->bytes > LIMIT_STATE_BYTES || part->data_bytes > LIMIT_STATE_BYTES)
                rc = HVD_E_LIMIT;
        }
    if (!rc)
        rc = print_header(part, out, err);
    if (!rc && part->header_bytes > LIMIT_PART_HEADER_BYTES)
        rc = HVD_E_LIMIT;
    if (!rc)
        return 0;
    out->length = begin;
    part_release(part);
    if (rc == HVD_E_INVAL)
        return rc;
    return err_set(err, rc,
                   rc == HVD_E_NOMEM
                       ? "no memory for the header of a checkpoint file with %zu entries; free "
                         "memory on this host"
                       : "%zu entries are too many for one file of a checkpoint (a header of 64 "
                         "MiB, LIMIT_PART_HEADER_BYTES), or their sum is larger than "
                         "LIMIT_STATE_BYTES; register fewer or smaller entries",
                   sources->count);
}

/* Returns the length of the whole header, its first 8 bytes included; 0: the length in the file is
 * not possible. */
uint64_t part_header_bytes(const uint8_t first[8], uint64_t file_bytes)
{
    uint64_t length = 0;

    for (size_t i = 0; i < 8; i++)
        length |= (uint64_t)first[i] << 8 * i;
    if (length < 2 || length > LIMIT_PART_HEADER_BYTES - 8 || file_bytes < 8 ||
        length > file_bytes - 8)
        return 0;
    return length + 8;
}

/* Reads one entry of the header. Returns why the entry is refused; NULL: the entry is accepted. */
static const char *part_parse_entry(const json_t *value, uint64_t data_bytes,
                                    struct part_entry *entry)
{
    const json_t *shape = json_object_get(value, "shape");
    const json_t *offsets = json_object_get(value, "data_offsets");
    uint64_t bytes, end, count;
    size_t i;
    json_t *it;

    if (!part_type_named(json_string_value(json_object_get(value, "dtype")), &entry->type))
        return "a type that this version does not know";
    if (json_array_size(offsets) != 2 ||
        !json_text_u64(json_array_get(offsets, 0), data_bytes, &entry->offset) ||
        !json_text_u64(json_array_get(offsets, 1), data_bytes, &end) || end < entry->offset)
        return "offsets outside of the file";
    entry->bytes = end - entry->offset;
    bytes = part_type_bytes(entry->type);
    if (!json_is_array(shape))
        return "no shape";
    json_array_foreach(shape, i, it)
    {
        if (!json_text_u64(it, data_bytes, &count) || __builtin_mul_overflow(bytes, count, &bytes))
            return "a shape larger than the file";
    }
    return bytes == entry->bytes ? NULL : "a shape that does not fit the bytes of the entry";
}

/* For qsort: by offset; of entries with one offset, those without bytes first. */
static int part_by_offset(const void *left, const void *right)
{
    const struct part_entry *a = left;
    const struct part_entry *b = right;

    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* Reads all members of the header, and sorts the entries by offset. Returns why the header is
 * refused; NULL: *ret_rc is the result, which is 0 or a code. */
static const char *parse_members(json_t *root, struct part *part, int *ret_rc)
{
    const char *wrong = NULL;
    uint64_t end = 0;
    const struct part_entry *entry;
    const char *name;
    json_t *value;

    *ret_rc = VEC_RESERVE(part, json_object_size(root), LIMIT_MANIFEST_ENTRIES + 1);
    json_object_foreach(root, name, value)
    {
        struct part_entry made = { .name = NULL };
        const char *commit = json_string_value(json_object_get(value, METADATA_COMMIT));
        json_t *key;

        if (*ret_rc || wrong)
            return wrong;
        if (!strcmp(name, METADATA)) {
            if (commit && !part_commit_read(commit, &part->commit))
                wrong = "a commit that is not a pair of numbers";
            continue;
        }
        key = json_string(name);
        *ret_rc = key ? json_text_copy(key, LIMIT_MANIFEST_NAME_BYTES, &part->memory, &made.name)
                      : HVD_E_NOMEM;
        json_decref(key);
        if (!*ret_rc)
            wrong = part_parse_entry(value, part->data_bytes, &made);
        part->items[part->count++] = made;
    }
    if (*ret_rc || wrong)
        return wrong;
    if (part->count > 1)
        qsort(part->items, part->count, sizeof(*part->items), part_by_offset);
    VEC_EACH (entry, part) {
        if (entry->offset != end)
            wrong = "entries that overlap or leave a gap";
        end = entry->offset + entry->bytes;
    }
    return wrong || end == part->data_bytes ? wrong : "bytes that belong to no entry";
}

/* Parses the header of a file: `text` is the JSON after the first 8 bytes. The entries must fill
 * the rest of the file. */
int part_parse(const char *name, const char *text, size_t length, uint64_t file_bytes,
               struct part *ret_part, struct hvd_err *err)
{
    const size_t values = (size_t)LIMIT_MANIFEST_ENTRIES * VALUES_PER_ENTRY + VALUES_REST;
    const char *wrong;
    struct part part;
    json_t *root = NULL;
    int rc;

    if (length > LIMIT_PART_HEADER_BYTES - 8 || file_bytes < 8 || file_bytes - 8 < length)
        return err_set(err, HVD_E_CORRUPT,
                       "%s: the header is longer than the file, or than 64 MiB "
                       "(LIMIT_PART_HEADER_BYTES); choose another checkpoint (--from-checkpoint)",
                       name);
    rc = json_text_load(name, text, length, values, &root, err);
    if (rc)
        return rc;
    part_init(&part);
    part.header_bytes = length + 8;
    part.data_bytes = file_bytes - part.header_bytes;
    wrong = parse_members(root, &part, &rc);
    json_decref(root);
    if (wrong || rc == HVD_E_CORRUPT)
        rc = err_set(err, HVD_E_CORRUPT,
                     "%s: the header has %s; choose another checkpoint (--from-checkpoint)", name,
                     wrong ? wrong : "a name that no entry may have");
    else if (rc)
        err_set(err, rc,
                "%s: the entries of the header cannot be read: %s; choose another checkpoint "
                "(--from-checkpoint), or free memory on this host",
                name, err_text(rc));
    if (rc)
        part_release(&part);
    else
        *ret_part = part;
    return rc;
}
