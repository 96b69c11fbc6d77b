#include "state/snapshot/stream.h"

#include <string.h>

uint64_t stream_chunk(uint8_t *to, const uint8_t *from)
{
    memcpy(to, from, STATE_CHUNK_BYTES);
    return sum_of(to, STATE_CHUNK_BYTES);
}
