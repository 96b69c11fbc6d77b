#include "collectives/meet/words.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

#define HEAD_BYTES 3 /* the kind, and the length of the rest */

/* ---- writing ---- */

struct writer {
    uint8_t bytes[MEET_FRAME_MAX];
    size_t length;
};

static void put(struct writer *writer, const void *bytes, size_t length)
{
    memcpy(writer->bytes + writer->length, bytes, length);
    writer->length += length;
}

static void put_number(struct writer *writer, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        writer->bytes[writer->length++] = (uint8_t)(value >> (8 * i));
}

static void put_body(struct writer *writer, const struct meet_frame *frame)
{
    switch (frame->kind) {
    case MEET_HELLO:
        put_number(writer, MEET_VERSION, 2);
        put(writer, frame->secret, sizeof(frame->secret));
        put_number(writer, frame->round, 8);
        put_number(writer, frame->from, 8);
        put_number(writer, frame->to, 8);
        put_number(writer, frame->roster, 8);
        put(writer, frame->address, frame->address_length);
        break;
    case MEET_WELCOME: put(writer, frame->address, frame->address_length); break;
    case MEET_REFUSED:
    case MEET_NOTICE:
        put_number(writer, (uint32_t)frame->code, 4);
        put_number(writer, frame->rank, 4);
        put(writer, frame->text, strnlen(frame->text, sizeof(frame->text) - 1));
        break;
    case MEET_BYE: break;
    }
}

int meet_frame_append(const struct meet_frame *frame, struct buf *buf)
{
    struct writer writer = { .length = HEAD_BYTES };
    size_t body;

    if (frame->address_length > MEET_ADDRESS_MAX)
        return HVD_E_LIMIT;
    put_body(&writer, frame);
    body = writer.length - HEAD_BYTES;
    writer.bytes[0] = (uint8_t)frame->kind;
    writer.bytes[1] = (uint8_t)body;
    writer.bytes[2] = (uint8_t)(body >> 8);
    return buf_append(buf, writer.bytes, writer.length);
}

/* ---- reading ---- */

struct reader {
    const uint8_t *at;
    size_t left;
    bool bad;
};

static void get(struct reader *reader, void *bytes, size_t length)
{
    if (reader->left < length) {
        reader->bad = true;
        return;
    }
    if (length)
        memcpy(bytes, reader->at, length);
    reader->at += length;
    reader->left -= length;
}

static uint64_t get_number(struct reader *reader, size_t bytes)
{
    uint8_t raw[8] = { 0 };
    uint64_t value = 0;

    get(reader, raw, bytes);
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)raw[i] << (8 * i);
    return value;
}

/* All that is left. */
static size_t get_rest(struct reader *reader, void *bytes, size_t max)
{
    size_t length = reader->left;

    if (length > max) {
        reader->bad = true;
        return 0;
    }
    get(reader, bytes, length);
    return length;
}

static int get_hello(struct reader *reader, struct meet_frame *frame)
{
    if (get_number(reader, 2) != MEET_VERSION)
        return reader->bad ? HVD_E_PROTO : HVD_E_VERSION;
    get(reader, frame->secret, sizeof(frame->secret));
    frame->round = get_number(reader, 8);
    frame->from = get_number(reader, 8);
    frame->to = get_number(reader, 8);
    frame->roster = get_number(reader, 8);
    frame->address_length = get_rest(reader, frame->address, sizeof(frame->address));
    return 0;
}

static int get_body(struct reader *reader, struct meet_frame *frame)
{
    switch (frame->kind) {
    case MEET_HELLO: return get_hello(reader, frame);
    case MEET_WELCOME:
        frame->address_length = get_rest(reader, frame->address, sizeof(frame->address));
        return 0;
    case MEET_REFUSED:
    case MEET_NOTICE:
        frame->code = (int)(int32_t)(uint32_t)get_number(reader, 4);
        frame->rank = (uint32_t)get_number(reader, 4);
        frame->text[get_rest(reader, frame->text, sizeof(frame->text) - 1)] = '\0';
        return frame->code >= 0 ? HVD_E_PROTO : 0;
    case MEET_BYE: return 0;
    }
    return HVD_E_PROTO;
}

int meet_frame_read(const uint8_t *bytes, size_t length, struct meet_frame *ret_frame,
                    size_t *ret_used)
{
    struct meet_frame frame = { .rank = MEET_NOBODY };
    struct reader reader;
    size_t body;
    int rc;

    if (length < HEAD_BYTES)
        return 0;
    body = (size_t)bytes[1] | (size_t)bytes[2] << 8;
    if (bytes[0] < MEET_HELLO || bytes[0] > MEET_BYE || body > MEET_FRAME_MAX - HEAD_BYTES)
        return HVD_E_PROTO;
    if (length < HEAD_BYTES + body)
        return 0;
    frame.kind = (enum meet_kind)bytes[0];
    reader = (struct reader){ bytes + HEAD_BYTES, body, false };
    rc = get_body(&reader, &frame);
    if (rc)
        return rc;
    if (reader.bad || reader.left)
        return HVD_E_PROTO;
    *ret_frame = frame;
    *ret_used = HEAD_BYTES + body;
    return 1;
}

/* ---- contacts ---- */

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_secret(struct span text, uint8_t secret[MEET_SECRET_BYTES])
{
    if (text.length != 2 * (size_t)MEET_SECRET_BYTES)
        return false;
    for (size_t i = 0; i < MEET_SECRET_BYTES; i++) {
        int high = digit(text.at[2 * i]), low = digit(text.at[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        secret[i] = (uint8_t)(high * 16 + low);
    }
    return true;
}

/* The last colon is the port's; an address that has others stands in brackets. */
static bool read_host(struct span text, struct meet_contact *contact)
{
    if (text.length > 2 && text.at[0] == '[' && text.at[text.length - 1] == ']')
        text = (struct span){ text.at + 1, text.length - 2 };
    else if (memchr(text.at, ':', text.length))
        return false;
    if (!text.length || text.length >= sizeof(contact->host))
        return false;
    memcpy(contact->host, text.at, text.length);
    contact->host[text.length] = '\0';
    return strspn(contact->host, "0123456789abcdefABCDEF.:") == text.length;
}

int meet_contact_read(const char *text, struct meet_contact *ret_contact, struct hvd_err *err)
{
    struct meet_contact contact = { .port = 0 };
    const char *slash = strrchr(text, '/');
    const char *colon = slash;
    char quoted[TEXT_QUOTE_MAX];
    uint64_t port;

    while (colon && colon > text && *colon != ':')
        colon--;
    if (slash && *colon == ':' &&
        read_host((struct span){ text, (size_t)(colon - text) }, &contact) &&
        !text_parse_u64((struct span){ colon + 1, (size_t)(slash - colon - 1) }, 1, UINT16_MAX,
                        "port", &port, NULL) &&
        read_secret((struct span){ slash + 1, strlen(slash + 1) }, contact.secret)) {
        contact.port = (uint16_t)port;
        *ret_contact = contact;
        return 0;
    }
    /* Not its end: that is the secret. */
    return err_set(err, HVD_E_INVAL, "%s is no contact; it must be IP:PORT/SECRET",
                   text_quote(text, strcspn(text, "/"), quoted));
}

void meet_contact_write(const struct meet_contact *contact, char text[MEET_CONTACT_MAX])
{
    bool colons = strchr(contact->host, ':') != NULL;
    int at = snprintf(text, MEET_CONTACT_MAX, "%s%s%s:%u/", colons ? "[" : "", contact->host,
                      colons ? "]" : "", (unsigned)contact->port);

    for (size_t i = 0; i < MEET_SECRET_BYTES; i++, at += 2)
        (void)snprintf(text + at, MEET_CONTACT_MAX - (size_t)at, "%02x", contact->secret[i]);
}
