/*
 * s3_text.c: reads the XML that S3 answers, without a library: these answers have only elements,
 * texts and entities. Called by s3_call.c and s3_storage.c. Invariant: each span that leaves this
 * file lies within the answer, and each call moves on in the answer.
 */
#include "state/remote/s3_text.h"

#include "base/hex.h"

#include <string.h>

/* Finds the next element that begins, and moves the reader behind its start tag. its depth
 * counts the element itself and those around it. false: no element follows. */
bool s3_text_next(struct s3_reader *reader, struct s3_element *ret_element)
{
    struct span *rest = &reader->rest;

    for (;;) {
        const char *open = rest->length ? memchr(rest->at, '<', rest->length) : NULL;
        const char *end = rest->at + rest->length;
        const char *close = open ? memchr(open, '>', (size_t)(end - open)) : NULL;
        const char *next;
        struct span tag;

        if (!close)
            return false;
        tag = (struct span){ open + 1, (size_t)(close - open) - 1 };
        *rest = (struct span){ close + 1, (size_t)(end - close) - 1 };
        if (!tag.length || *tag.at == '?' || *tag.at == '!')
            continue;
        if (*tag.at == '/') {
            reader->depth -= reader->depth > 0;
            continue;
        }
        next = rest->length ? memchr(rest->at, '<', rest->length) : NULL;
        ret_element->depth = reader->depth + 1;
        ret_element->text = (struct span){ rest->at, 0 };
        if (tag.at[tag.length - 1] == '/') {
            tag.length--;
        } else {
            ret_element->text.length = next ? (size_t)(next - rest->at) : rest->length;
            reader->depth++;
        }
        ret_element->name = (struct span){ tag.at, 0 };
        while (ret_element->name.length < tag.length &&
               !strchr(" \t\r\n", tag.at[ret_element->name.length]))
            ret_element->name.length++;
        return true;
    }
}

/* Finds the text of the first element with this name at this depth; false: there is none. */
bool s3_text_find(struct span answer, const char *name, unsigned depth, struct span *ret_text)
{
    struct s3_reader reader = { .rest = answer };
    struct s3_element element;

    while (s3_text_next(&reader, &element))
        if (element.depth == depth && span_is(element.name, name)) {
            *ret_text = element.text;
            return true;
        }
    return false;
}

/* Writes a character as UTF-8. Returns the number of its bytes; 0: the code is not of a character.
 */
static size_t s3_put_character(uint64_t code, char into[4])
{
    if (!code || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return 0;
    if (code < 0x80) {
        into[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        into[0] = (char)(0xc0 | code >> 6);
        into[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        into[0] = (char)(0xe0 | code >> 12);
        into[1] = (char)(0x80 | (code >> 6 & 0x3f));
        into[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    into[0] = (char)(0xf0 | code >> 18);
    into[1] = (char)(0x80 | (code >> 12 & 0x3f));
    into[2] = (char)(0x80 | (code >> 6 & 0x3f));
    into[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

/* Writes the character of an entity, which is "amp", "#38" or "#x26". Returns the number of its
 * bytes; 0: there is no such entity. */
static size_t s3_decode_entity(struct span entity, char into[4])
{
    static const char *const names[] = { "amp", "lt", "gt", "quot", "apos" };
    static const char characters[] = "&<>\"'";
    bool hex = entity.length > 1 && entity.at[1] == 'x';
    uint64_t number = 0;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (span_is(entity, names[i])) {
            *into = characters[i];
            return 1;
        }
    if (entity.length > 9 || !entity.length || *entity.at != '#')
        return 0;
    for (size_t i = 1 + (size_t)hex; i < entity.length; i++) {
        int digit = hex_digit(entity.at[i]);

        if (digit < 0 || (!hex && digit > 9))
            return 0;
        number = number * (hex ? 16 : 10) + (uint64_t)digit;
    }
    return s3_put_character(number, into);
}

/* Writes a text of the answer with its entities replaced, and a NUL. false: it does not fit, or is
 * not valid. */
bool s3_text_decode(struct span text, char *into, size_t size)
{
    size_t used = 0;

    for (size_t i = 0; i < text.length; i++) {
        char character[4] = { text.at[i] };
        size_t length = 1;

        if (!text.at[i])
            return false;
        if (text.at[i] == '&') {
            const char *end = memchr(text.at + i, ';', text.length - i);
            struct span entity = { text.at + i + 1, end ? (size_t)(end - text.at) - i - 1 : 0 };

            length = end ? s3_decode_entity(entity, character) : 0;
            i += entity.length + 1;
        }
        if (!length || used + length >= size)
            return false;
        memcpy(into + used, character, length);
        used += length;
    }
    if (!size)
        return false;
    into[used] = '\0';
    return true;
}
