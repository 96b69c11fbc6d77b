/*
 * fuzz_record.c: what a device between two members may do to sealed records. The input says, for
 * each record that is made, how it is changed; only records that come as they were sent, in order,
 * may open, and the first other one is the last.
 */
#include "base/panic.h"
#include "seal/record.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define DATA_MAX 200

static uint8_t make_byte(size_t record, size_t at)
{
    return (uint8_t)(record * 31 + at * 7);
}

/* true: the record opened; its data must be those that were sealed. */
static bool try_open(struct record_stream *opens, uint8_t *bytes, size_t record, size_t length)
{
    size_t told;

    if (record_open_head(opens, bytes, &told))
        return false;
    ASSERT(told == length);
    if (told && record_open_data(opens, bytes + RECORD_HEAD_BYTES, told))
        return false;
    for (size_t i = 0; i < told; i++)
        ASSERT(bytes[RECORD_HEAD_BYTES + i] == make_byte(record, i));
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t bytes[RECORD_HEAD_BYTES + DATA_MAX + RECORD_TAG_BYTES], twice[sizeof(bytes)];
    const uint8_t key[SEAL_KEY_BYTES] = "a key";
    struct record_stream *seals, *opens;
    bool whole = true;

    if (size < 1)
        return 0;
    ASSERT(!record_stream_create(key, data[0] % 2 ? SEAL_ENCRYPTED : SEAL_AUTHENTICATED, true, 3,
                                 &seals));
    ASSERT(!record_stream_create(key, data[0] % 2 ? SEAL_ENCRYPTED : SEAL_AUTHENTICATED, false, 3,
                                 &opens));
    /* three bytes for each record: its length, what is done with it, and where */
    for (size_t at = 1, record = 0; at + 3 <= size && whole; at += 3, record++) {
        size_t length = data[at] % (DATA_MAX + 1), made;
        uint8_t what = data[at + 1] % 4, where = data[at + 2];

        for (size_t i = 0; i < length; i++)
            bytes[RECORD_HEAD_BYTES + i] = make_byte(record, i);
        ASSERT(!record_seal(seals, bytes, length, &made) && made <= sizeof(bytes));
        memcpy(twice, bytes, sizeof(bytes));
        if (what == 1) { /* dropped: the next one must not open */
            ASSERT(!record_seal(seals, bytes, 0, &made));
            ASSERT(!try_open(opens, bytes, record, 0));
            break;
        }
        if (what == 2)
            bytes[where % made] ^= (uint8_t)(1 + where / made);
        whole = try_open(opens, bytes, record, length);
        ASSERT(whole == (what != 2));
        if (what == 3) { /* repeated */
            ASSERT(!try_open(opens, twice, record, length));
            whole = false;
        }
    }
    record_stream_free(seals);
    record_stream_free(opens);
    return 0;
}
