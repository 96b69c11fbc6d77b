/*
 * test_seal_record.c: records that are sealed and opened, and all that may happen to them on the
 * way.
 */
#include "base/mem.h"
#include "seal/record.h"
#include "tests/lib/test.h"

#include <string.h>

#define COUNT  40
#define REKEYS 7 /* records under one key: COUNT records use several keys */

struct line {
    struct record_stream *seals, *opens;
    uint8_t *record; /* RECORD_MAX bytes */
};

static int line_open(struct line *line, enum seal_mode mode)
{
    const uint8_t key[SEAL_KEY_BYTES] = "the key of this line";
    int rc = HVD_E_NOMEM;

    *line = (struct line){ .record = mem_alloc(RECORD_MAX) };
    if (line->record)
        rc = record_stream_create(key, mode, true, REKEYS, &line->seals);
    if (!rc)
        rc = record_stream_create(key, mode, false, REKEYS, &line->opens);
    return rc;
}

static void line_close(struct line *line)
{
    record_stream_free(line->seals);
    record_stream_free(line->opens);
    mem_free(line->record);
    *line = (struct line){ .record = NULL };
}

static uint8_t byte_at(size_t number, size_t at)
{
    return (uint8_t)(number * 13 + at * 7 + at / 251);
}

static int seal_one(struct line *line, size_t number, size_t length, size_t *ret_bytes)
{
    for (size_t i = 0; i < length; i++)
        line->record[RECORD_HEAD_BYTES + i] = byte_at(number, i);
    return record_seal(line->seals, line->record, length, ret_bytes);
}

static int open_one(struct line *line, size_t *ret_length)
{
    int rc = record_open_head(line->opens, line->record, ret_length);

    return rc || !*ret_length
               ? rc
               : record_open_data(line->opens, line->record + RECORD_HEAD_BYTES, *ret_length);
}

static bool has_bytes(const struct line *line, size_t number, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (line->record[RECORD_HEAD_BYTES + i] != byte_at(number, i))
            return false;
    }
    return true;
}

/* Over several keys. */
TEST(what_is_sealed_opens)
{
    static const size_t lengths[] = { 0, 1, 15, 16, 17, 4096, RECORD_DATA_BYTES };
    struct line line = { .record = NULL };

    for (int mode = SEAL_AUTHENTICATED; mode < SEAL_MODE_COUNT; mode++) {
        CHECK_OK(t, line_open(&line, (enum seal_mode)mode));
        for (size_t i = 0; i < COUNT; i++) {
            size_t length = lengths[i % ARRAY_SIZE(lengths)], bytes, told;

            CHECK_OK(t, seal_one(&line, i, length, &bytes));
            CHECK_INT(t, bytes, ==, RECORD_HEAD_BYTES + length + (length ? 16u : 0u));
            /* only GMAC leaves the data as they are */
            if (length > 15)
                CHECK(t, has_bytes(&line, i, length) == (mode == SEAL_AUTHENTICATED));
            CHECK_OK(t, open_one(&line, &told));
            CHECK_INT(t, told, ==, length);
            CHECK(t, has_bytes(&line, i, length));
        }
        CHECK_INT(t, record_stream_number(line.opens), ==, COUNT);
        line_close(&line);
    }
out:
    line_close(&line);
}

/* One bit of each byte of a record, at least. */
TEST(no_changed_bit_opens)
{
    struct line line = { .record = NULL };
    size_t bytes, told;

    for (size_t bit = 0; bit < 8 * (RECORD_HEAD_BYTES + 20 + RECORD_TAG_BYTES); bit += 5) {
        CHECK_OK(t, line_open(&line, bit % 2 ? SEAL_ENCRYPTED : SEAL_AUTHENTICATED));
        CHECK_OK(t, seal_one(&line, 1, 20, &bytes));
        line.record[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CHECK_CODE(t, open_one(&line, &told), HVD_E_PROTO);
        line_close(&line);
    }
out:
    line_close(&line);
}

/* Dropped: the record before this one does not come. Repeated, moved: another one comes first. */
TEST(no_other_record_opens)
{
    uint8_t first[RECORD_HEAD_BYTES + 20 + RECORD_TAG_BYTES];
    struct line line = { .record = NULL };
    size_t bytes, told;

    for (int empty = 0; empty < 2; empty++) {
        size_t length = empty ? 0 : 20;

        CHECK_OK(t, line_open(&line, SEAL_ENCRYPTED));
        CHECK_OK(t, seal_one(&line, 0, length, &bytes));
        CHECK_OK(t, seal_one(&line, 1, length, &bytes));
        CHECK_CODE(t, open_one(&line, &told), HVD_E_PROTO);
        line_close(&line);
        CHECK_OK(t, line_open(&line, SEAL_AUTHENTICATED));
        CHECK_OK(t, seal_one(&line, 0, length, &bytes));
        memcpy(first, line.record, bytes);
        CHECK_OK(t, open_one(&line, &told));
        memcpy(line.record, first, bytes);
        CHECK_CODE(t, open_one(&line, &told), HVD_E_PROTO);
        line_close(&line);
    }
out:
    line_close(&line);
}

/* A record of another direction or round has another key. */
TEST(foreign_records_do_not_open)
{
    const uint8_t other[SEAL_KEY_BYTES] = "the key of another line";
    struct record_stream *foreign = NULL;
    struct line line = { .record = NULL };
    size_t bytes, told;

    CHECK_OK(t, line_open(&line, SEAL_AUTHENTICATED));
    CHECK_OK(t, record_stream_create(other, SEAL_AUTHENTICATED, true, REKEYS, &foreign));
    memset(line.record, 0, RECORD_HEAD_BYTES + 20);
    CHECK_OK(t, record_seal(foreign, line.record, 20, &bytes));
    CHECK_CODE(t, open_one(&line, &told), HVD_E_PROTO);
out:
    record_stream_free(foreign);
    line_close(&line);
}

TEST(a_length_that_is_too_long)
{
    struct line line = { .record = NULL };
    size_t told;

    CHECK_OK(t, line_open(&line, SEAL_AUTHENTICATED));
    memset(line.record, 0xff, RECORD_HEAD_BYTES);
    CHECK_CODE(t, open_one(&line, &told), HVD_E_PROTO);
out:
    line_close(&line);
}
