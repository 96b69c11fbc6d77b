/*
 * fuzz_input.h: takes values from the front of a fuzzer's bytes. After the last byte every value is
 * 0.
 *
 * A message type is written as its number in the protocol, in two bytes. So the inputs of a corpus
 * keep their meaning when the catalogue, or a fuzzer's list of messages, grows.
 */
#ifndef TESTS_LIB_FUZZ_INPUT_H
#define TESTS_LIB_FUZZ_INPUT_H

#include "proto/msg.h"

struct fuzz_input {
    const uint8_t *at;
    size_t left;
};

uint8_t fuzz_byte(struct fuzz_input *in);

/* Two bytes, the higher one first. */
uint16_t fuzz_number(struct fuzz_input *in);

/* The message type with this number, if the list has it; otherwise a type of the list that depends
 * on the number, so that any bytes mean something. */
enum msg_type fuzz_type(struct fuzz_input *in, const enum msg_type *types, size_t count);

#endif
