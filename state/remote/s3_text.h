/*
 * s3_text.h: the XML of S3's answers, which is foreign input: its elements in their order, without
 * a tree in memory.
 *
 *     struct s3_reader reader = { .rest = answer };
 *     while (s3_text_next(&reader, &element))
 *         if (element.depth == S3_DEPTH_ITEM && span_is(element.name, "Key")) ...
 */
#ifndef STATE_REMOTE_S3_TEXT_H
#define STATE_REMOTE_S3_TEXT_H

#include "base/text.h"

/* The depth of an element: how many elements are around it, and the element itself. */
#define S3_DEPTH_TOP  1 /* the element around all others */
#define S3_DEPTH_PART 2 /* a part of the answer, such as the token for the next page of a list */
#define S3_DEPTH_ITEM 3 /* a part of an item of a list, such as the key of an object */

struct s3_reader {
    struct span rest; /* the part of the answer that was not read yet */
    unsigned depth;   /* elements that have begun and not ended */
};

/* An element that begins. Both spans are borrowed from the answer. */
struct s3_element {
    struct span name; /* the name of the element, without attributes */
    struct span text; /* the text behind the start tag up to the next '<', still encoded */
    unsigned depth;   /* S3_DEPTH_TOP, ... */
};

/* Finds the next element; false: there is none, or the rest of the text is not XML. */
bool s3_text_next(struct s3_reader *reader, struct s3_element *ret_element);

/* Finds the first element of this name at this depth; false: there is none. */
bool s3_text_find(struct span answer, const char *name, unsigned depth, struct span *ret_text);

/* Writes the text with its entities ("&amp;", "&#10;") replaced, and a NUL. False: the result is
 * longer than size - 1 bytes or has a NUL, or an entity is unknown. */
bool s3_text_decode(struct span text, char *into, size_t size);

#endif
