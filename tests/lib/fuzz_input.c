/*
 * fuzz_input.c: takes bytes, numbers and message types from the input of a fuzzer. It never reads
 * past the end of the input; the sanitizers would report that.
 */
#include "tests/lib/fuzz_input.h"

#include "base/panic.h"

uint8_t fuzz_byte(struct fuzz_input *in)
{
    if (!in->left)
        return 0;
    in->left--;
    return *in->at++;
}

uint16_t fuzz_number(struct fuzz_input *in)
{
    unsigned high = fuzz_byte(in);

    return (uint16_t)(high << 8 | fuzz_byte(in));
}

enum msg_type fuzz_type(struct fuzz_input *in, const enum msg_type *types, size_t count)
{
    uint16_t number = fuzz_number(in);

    ASSERT(count > 0);
    for (size_t i = 0; i < count; i++)
        if (types[i] == (enum msg_type)number)
            return types[i];
    return types[number % count];
}
