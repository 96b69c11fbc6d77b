/*
 * test_frame.c: proto/frame: frames that are cut anywhere are read, and a wrong header is refused
 * before anything is allocated.
 */
#include "base/buf.h"
#include "base/limits.h"
#include "proto/catalog.h"
#include "proto/frame.h"
#include "tests/lib/fixture.h"

/* A frame with `length` bytes of 'x' as its body. */
static int put_frame(struct buf *out, unsigned type, uint8_t flags, size_t length)
{
    uint8_t header[FRAME_HEADER_BYTES];
    int rc;

    frame_write_header(header, (uint16_t)type, flags, (uint32_t)length);
    rc = buf_append(out, header, sizeof(header));
    for (size_t i = 0; !rc && i < length; i++)
        rc = buf_append(out, "x", 1);
    return rc;
}

static struct frame_reader reader;
static struct buf bytes;

static void begin(struct test *t)
{
    (void)t;
    buf_init(&bytes, 300000);
    frame_reader_init(&reader, LIMIT_FRAME_BODY_BYTES);
}

static void end(struct test *t)
{
    (void)t;
    frame_reader_release(&reader);
    buf_release(&bytes);
}
FIXTURE(begin, end)

static int feed(size_t from, size_t to, struct frame *ret_frame, struct hvd_err *err)
{
    const uint8_t *at = (const uint8_t *)buf_text(&bytes) + from;
    size_t length = to - from;

    return frame_feed(&reader, &at, &length, ret_frame, err);
}

TEST(reads_frames_however_they_are_cut)
{
    struct frame frame = { 0 };

    CHECK_OK(t, put_frame(&bytes, MSG_BEAT, 0, 5));
    CHECK_OK(t, put_frame(&bytes, MSG_LEFT, 0, 0));
    CHECK_OK(t, put_frame(&bytes, MSG_OUTPUT, 0, 700));
    for (size_t step = 1; step < bytes.length; step++) {
        static const unsigned types[] = { MSG_BEAT, MSG_LEFT, MSG_OUTPUT };
        static const size_t lengths[] = { 5, 0, 700 };
        size_t seen = 0;

        for (size_t from = 0; from < bytes.length; from += step) {
            size_t length = from + step < bytes.length ? step : bytes.length - from;
            const uint8_t *at = (const uint8_t *)bytes.data + from;

            while (length > 0) {
                int rc = frame_feed(&reader, &at, &length, &frame, NULL);

                if (rc == 0)
                    continue;
                CHECK_INT(t, rc, ==, 1);
                CHECK_INT(t, seen, <, 3);
                CHECK_INT(t, frame.type, ==, types[seen]);
                CHECK_INT(t, frame.length, ==, lengths[seen]);
                CHECK(t, !frame_reader_midway(&reader));
                seen++;
            }
        }
        CHECK_INT(t, seen, ==, 3);
    }
    frame_reader_release(NULL);
}

TEST(a_truncated_frame_is_midway)
{
    struct frame frame = { 0 };

    CHECK(t, !frame_reader_midway(&reader));
    CHECK_OK(t, put_frame(&bytes, MSG_BEAT, 0, 5));
    for (size_t cut = 1; cut < bytes.length; cut++) {
        frame_reader_release(&reader);
        frame_reader_init(&reader, LIMIT_FRAME_BODY_BYTES);
        CHECK_INT(t, feed(0, cut, &frame, NULL), ==, 0);
        CHECK(t, frame_reader_midway(&reader));
    }
}

/* Feeds a header whose byte `at` is replaced; the reader must refuse it with this code and text,
 * and stay broken. */
static void refuse(struct test *t, size_t at, uint8_t value, int code, const char *text)
{
    struct hvd_err err = { 0 };
    struct frame frame;

    buf_clear(&bytes);
    frame_reader_release(&reader);
    frame_reader_init(&reader, LIMIT_FRAME_BODY_BYTES);
    CHECK_OK(t, put_frame(&bytes, MSG_BEAT, 0, 0));
    bytes.data[at] = (char)value;
    CHECK_CODE(t, feed(0, bytes.length, &frame, &err), code);
    CHECK_HAS(t, err.text, text);
    CHECK_INT(t, reader.body.capacity, ==, 0);
    CHECK_OK(t, put_frame(&bytes, MSG_BEAT, 0, 0));
    CHECK_CODE(t, feed(FRAME_HEADER_BYTES, bytes.length, &frame, &err), code);
    CHECK_HAS(t, err.text, "broken");
}

TEST(wrong_magic_is_refused)
{
    for (size_t at = 0; at < 4; at++)
        refuse(t, at, 'G', HVD_E_PROTO, "check that the address and port");
}

TEST(another_major_is_refused)
{
    refuse(t, 4, PROTO_MAJOR + 1, HVD_E_VERSION, "install the same version");
    refuse(t, 4, 0, HVD_E_VERSION, "speaks protocol 0");
}

TEST(an_unknown_type_is_refused)
{
    refuse(t, 7, 0xff, HVD_E_PROTO, "is unknown");
}

TEST(an_oversized_length_is_refused_before_allocating)
{
    refuse(t, 11, 0xff, HVD_E_LIMIT, "BEAT has 4278190080 bytes; at most 32768");
    refuse(t, 9, 0x81, HVD_E_LIMIT, "BEAT has 33024 bytes; at most 32768");
}

TEST(the_connection_may_be_stricter_than_the_message)
{
    struct hvd_err err = { 0 };
    struct frame frame;

    frame_reader_init(&reader, 100);
    CHECK_OK(t, put_frame(&bytes, MSG_READY, 0, 101));
    CHECK_CODE(t, feed(0, bytes.length, &frame, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "READY has 101 bytes; at most 100");
    frame_reader_release(&reader);
    frame_reader_init(&reader, 100);
    frame_reader_set_max(&reader, 200);
    CHECK_INT(t, feed(0, bytes.length, &frame, &err), ==, 1);
}

TEST(a_skippable_unknown_is_passed_over)
{
    struct hvd_err err = { 0 };
    struct frame frame;

    frame_reader_init(&reader, 1000);
    CHECK_OK(t, put_frame(&bytes, 999, FRAME_MAY_SKIP, 900));
    CHECK_OK(t, put_frame(&bytes, 998, FRAME_MAY_SKIP, 0));
    CHECK_OK(t, put_frame(&bytes, MSG_BEAT, 0, 3));
    CHECK_INT(t, feed(0, 500, &frame, NULL), ==, 0);
    CHECK(t, frame_reader_midway(&reader));
    CHECK_INT(t, feed(500, bytes.length, &frame, NULL), ==, 1);
    CHECK_INT(t, frame.type, ==, MSG_BEAT);
    CHECK_OK(t, put_frame(&bytes, 999, FRAME_MAY_SKIP, 1001));
    CHECK_CODE(t, feed(bytes.length - 1013, bytes.length, &frame, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "a skipped message has 1001 bytes");
}

TEST(a_large_body_is_given_back)
{
    struct frame frame = { 0 };

    buf_init(&bytes, 300000);
    CHECK_OK(t, put_frame(&bytes, MSG_READY, 0, 200000));
    CHECK_INT(t, feed(0, bytes.length, &frame, NULL), ==, 1);
    CHECK_INT(t, reader.body.capacity, >=, 200000);
    CHECK_INT(t, feed(0, 1, &frame, NULL), ==, 0);
    CHECK_INT(t, reader.body.capacity, ==, 0);
}

/* A peer that announces much and sends little must not make the receiver allocate much. */
TEST(memory_grows_with_what_arrives)
{
    struct frame frame = { 0 };

    CHECK_OK(t, put_frame(&bytes, MSG_READY, 0, 1000));
    frame_write_header((uint8_t *)bytes.data, MSG_READY, 0, LIMIT_FRAME_BODY_BYTES);
    CHECK_INT(t, feed(0, bytes.length, &frame, NULL), ==, 0);
    CHECK_INT(t, reader.body.capacity, <=, 2048);
}
