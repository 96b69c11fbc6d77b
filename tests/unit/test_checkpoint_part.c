/*
 * test_checkpoint_part.c: state/checkpoint/part: a safetensors file out of memory, and its header
 * back; no number of a header is believed.
 */
#include "state/checkpoint/part.h"

#include "base/mem.h"
#include "proto/commit.h"
#include "proto/entry_type.h"
#include "state/checkpoint/part_internal.h"
#include "state/sum.h"
#include "tests/lib/files.h"
#include "tests/lib/fixture.h"

#include <stdio.h>
#include <string.h>

static struct checkpoint_store *storage;
static struct part_written written;
static struct part part;
static struct file_bytes file;
static struct hvd_err err;
static struct buf text;
static char *large;
static char dir[256];

static void begin(struct test *t)
{
    storage = NULL;
    large = NULL;
    err = (struct hvd_err){ .code = 0 };
    buf_init(&text, 1 << 20);
    buf_init(&written.sums, LIMIT_SAVED_SUMS_BYTES);
    part_init(&part);
    snprintf(dir, sizeof(dir), "%s", test_dir(t));
    CHECK_OK(t, checkpoint_store_open(dir, &storage, NULL));
}

static void end(struct test *t)
{
    (void)t;
    part_release(&part);
    buf_release(&text);
    buf_release(&written.sums);
    checkpoint_store_close(storage);
    mem_free(large);
}
FIXTURE(begin, end)

static uint64_t sum_at(size_t chunk)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < 8; i++)
        sum |= (uint64_t)(uint8_t)written.sums.data[chunk * 8 + i] << 8 * i;
    return sum;
}

/* The header is this text, and blanks up to a multiple of 8. */
TEST(a_file_is_safetensors)
{
    static const int32_t weights[] = { 1, 2, 3 };
    static const struct part_source sources[] = {
        {"note",     "abc",      3,               0               },
        { "w \"1\"", weights,    sizeof(weights), 1 + HVD_FLOAT32 },
        { "half",    "1234",     4,               1 + HVD_BFLOAT16},
        { "step",    "12345678", 8,               1 + HVD_INT64   },
        { "none",    "",         0,               1 + HVD_FLOAT64 },
    };
    static const char expected[] =
        "{\"__metadata__\":{\"hvd.commit\":\"12.5\"},"
        "\"step\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]},"
        "\"none\":{\"dtype\":\"F64\",\"shape\":[0],\"data_offsets\":[8,8]},"
        "\"w \\u00221\\u0022\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[8,20]},"
        "\"half\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[20,24]},"
        "\"note\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[24,27]}}";
    char path[300];
    uint64_t header;

    CHECK_OK(t, part_write(
                    storage, "commit-12.5/x",
                    &(struct part_sources){ COMMIT_FIRST_OF(12) | 5, sources, ARRAY_SIZE(sources) },
                    NULL, NULL, &written, NULL));
    snprintf(path, sizeof(path), "%s/commit-12.5/x", dir);
    files_read(path, &file);
    CHECK_INT(t, file.length, ==, written.bytes);
    CHECK_INT(t, written.sums.length, ==, 8);
    CHECK(t, sum_at(0) == sum_of(file.bytes, file.length));
    header = part_header_bytes((const uint8_t *)file.bytes, file.length);
    CHECK_INT(t, header % 8, ==, 0);
    CHECK_INT(t, header, ==, file.length - 27);
    CHECK(t, !strncmp(file.bytes + 8, expected, strlen(expected)));
    for (size_t i = 8 + strlen(expected); i < header; i++)
        CHECK_INT(t, file.bytes[i], ==, ' ');
    CHECK(t, !memcmp(file.bytes + header + 8, weights, sizeof(weights)));
    CHECK_OK(t, part_parse("x", file.bytes + 8, header - 8, file.length, &part, NULL));
    CHECK_INT(t, part.count, ==, 5);
    CHECK(t, part.commit == (COMMIT_FIRST_OF(12) | 5));
    CHECK_TEXT(t, part.items[2].name, "w \"1\"");
    CHECK_INT(t, part.items[2].offset, ==, 8);
    CHECK_INT(t, part.items[2].bytes, ==, 12);
    CHECK_INT(t, part.items[2].type, ==, 1 + HVD_FLOAT32);
    CHECK_INT(t, part.items[4].offset, ==, 24);
}

/* A type of hvd.h has its name in a file and its size, which is that of the entry's type. */
TEST(every_type_of_hvd_h)
{
    uint32_t type, again = 0;

    for (hvd_dtype dtype = HVD_UINT8; (type = entry_type_of(dtype)) != ENTRY_TYPE_BYTES; dtype++) {
        CHECK(t, part_type_name(type) != NULL);
        CHECK(t, part_type_named(part_type_name(type), &again));
        CHECK_INT(t, again, ==, type);
        CHECK_INT(t, part_type_bytes(type), ==, entry_type_bytes(type));
    }
    CHECK_INT(t, again, ==, 1 + HVD_BOOL);
    CHECK_TEXT(t, part_type_name(1 + HVD_BOOL), "BOOL");
    CHECK_TEXT(t, part_type_name(1 + HVD_UINT16), "U16");
    CHECK_TEXT(t, part_type_name(1 + HVD_INT16), "I16");
    CHECK_TEXT(t, part_type_name(1 + HVD_UINT32), "U32");
    CHECK_TEXT(t, part_type_name(1 + HVD_UINT64), "U64");
    CHECK(t, !part_type_name(2 + HVD_BOOL));
}

/* Sums are those of the chunks of the file, with the header. */
TEST(each_chunk_has_its_sum)
{
    const size_t bytes = 2 * STATE_CHUNK_BYTES + 5;
    struct part_source source = { "large", NULL, bytes, 0 };
    uint8_t *back;

    large = mem_zalloc(2 * bytes + 4096);
    CHECK(t, large != NULL);
    for (size_t i = 0; i < bytes; i++)
        large[i] = (char)(i * 7 + i / 251);
    source.at = large;
    CHECK_OK(t, part_write(storage, "x", &(struct part_sources){ 1, &source, 1 }, NULL, NULL,
                           &written, NULL));
    CHECK_INT(t, written.sums.length, ==, 3 * 8);
    back = (uint8_t *)large + bytes;
    CHECK_OK(t, checkpoint_store_read(storage, "x", 0, back, written.bytes, NULL));
    CHECK(t, sum_at(0) == sum_of(back, STATE_CHUNK_BYTES));
    CHECK(t, sum_at(1) == sum_of(back + STATE_CHUNK_BYTES, STATE_CHUNK_BYTES));
    CHECK(t,
          sum_at(2) == sum_of(back + 2 * STATE_CHUNK_BYTES, written.bytes - 2 * STATE_CHUNK_BYTES));
    CHECK(t, !memcmp(back + (written.bytes - bytes), large, bytes));
}

static bool stop_later(void *arg)
{
    int *left = arg;

    return --*left < 0;
}

TEST(a_file_that_is_no_longer_wanted_is_not_there)
{
    static const struct part_source source = { "a", "abc", 3, 0 };
    uint64_t bytes;
    int left = 1;

    CHECK_CODE(t,
               part_write(storage, "x", &(struct part_sources){ 1, &source, 1 }, stop_later, &left,
                          &written, NULL),
               HVD_E_REVOKED);
    CHECK_CODE(t, checkpoint_store_size(storage, "x", &bytes, NULL), HVD_E_NOTFOUND);
    CHECK(t, written.sums.data == NULL);
}

TEST(entries_that_have_no_place_in_a_file_are_refused)
{
    static const struct part_source wrong[] = {
        {"__metadata__", "abc", 3, 0              },
        { "odd",         "abc", 3, 1 + HVD_FLOAT16},
        { "new type",    "abc", 3, 60             },
    };

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        CHECK_CODE(t, part_print(&(struct part_sources){ 1, &wrong[i], 1 }, &part, &text, &err),
                   HVD_E_INVAL);
    CHECK_CODE(t,
               part_write(storage, "x", &(struct part_sources){ 1, &wrong[1], 1 }, NULL, NULL,
                          &written, &err),
               HVD_E_INVAL);
    CHECK_HAS(t, err.text, "/x: entry \"odd\": its 3 bytes are not a multiple of 2");
    CHECK_INT(t, text.length, ==, 0);
}

TEST(a_wrong_header_is_refused)
{
    static const struct {
        const char *text;
        uint64_t data;
        const char *why;
    } wrong[] = {
        {"",                                                                                      0, "line"                                  },
        { "[]",                                                                                   0, "the text is JSON, but not an object"   },
        { "{",                                                                                    0, "line 1"                                },
        { "{\"a\":1}",                                                                            0, "a type that this version does not know"},
        { "{\"a\":{\"dtype\":\"F8\",\"shape\":[1],\"data_offsets\":[0,1]}}",                      1, "a type that"                           },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,2]}}",                      1, "outside"                               },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,0]}}",                      1, "outside"                               },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[-1,1]}}",                     1, "outside"                               },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,1]}}",                    1, "outside"                               },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1.0]}}",                    1, "outside"                               },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":1,\"data_offsets\":[0,1]}}",                        1, "no shape"                              },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,1]}}",                      1, "larger than"                           },
        { "{\"a\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[0,1]}}",                     1, "not fit"                               },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",                      2, "no entry"                              },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",                      2, "a gap"                                 },
        { "{}",                                                                                   1, "no entry"                              },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
          "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",              1, "overlap"                               },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
          "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",              2, "duplicate"                             },
        { "{\"a\\nb\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",                  1, "a name"                                },
        { "{\"__metadata__\":{\"hvd.commit\":\"12\"}}",                                           0, "a commit"                              },
        { "{\"a\":{\"dtype\":\"F64\",\"shape\":[9223372036854775807,2],\"data_offsets\":[0,0]}}", 0,
         "larger than"                                                                                                                       },
    };

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        size_t length = strlen(wrong[i].text);

        CHECK_CODE(t,
                   part_parse("x", wrong[i].text, length, 8 + length + wrong[i].data, &part, &err),
                   HVD_E_CORRUPT);
        CHECK_HAS(t, err.text, wrong[i].why);
        CHECK(t, !strncmp(err.text, "x: ", 3));
    }
    CHECK_CODE(t, part_parse("x", "{}", 2, 9, &part, NULL), HVD_E_CORRUPT);
}

/* Other programs write shapes with several dimensions. */
TEST(a_foreign_header_is_taken)
{
    static const char header[] =
        "{\"b\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[1,25]},"
        "\"__metadata__\":{\"format\":\"pt\"},"
        "\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}   ";

    CHECK_OK(t, part_parse("x", header, strlen(header), 8 + strlen(header) + 25, &part, NULL));
    CHECK_INT(t, part.count, ==, 2);
    CHECK_INT(t, part.commit, ==, 0);
    CHECK_TEXT(t, part.items[0].name, "a");
    CHECK_TEXT(t, part.items[1].name, "b");
    CHECK_INT(t, part.items[1].bytes, ==, 24);
}

/* A text of two bytes for each value cannot ask for a hundred times its memory. */
TEST(a_header_of_too_many_values_is_refused)
{
    const size_t bytes = (size_t)8 << 20;

    large = mem_alloc(bytes);
    CHECK(t, large != NULL);
    memset(large, '[', bytes);
    CHECK_CODE(t, part_parse("x", large, bytes, 8 + bytes, &part, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "x: the file has more than");
}

TEST(the_length_of_a_header_is_not_believed)
{
    CHECK_INT(t, part_header_bytes((const uint8_t *)"\x02\0\0\0\0\0\0\0", 10), ==, 10);
    CHECK_INT(t, part_header_bytes((const uint8_t *)"\x02\0\0\0\0\0\0\0", 9), ==, 0);
    CHECK_INT(t, part_header_bytes((const uint8_t *)"\x02\0\0\0\0\0\0\0", 3), ==, 0);
    CHECK_INT(t, part_header_bytes((const uint8_t *)"\x01\0\0\0\0\0\0\0", 99), ==, 0);
    CHECK_INT(t, part_header_bytes((const uint8_t *)"\xff\xff\xff\xff\xff\xff\xff\xff", UINT64_MAX),
              ==, 0);
}
