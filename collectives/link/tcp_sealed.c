/*
 * tcp_sealed.c: sends messages to a peer in sealed (encrypted or authenticated) records, and opens
 * (decrypts or verifies) the records that the peer sends. Called by tcp_stream.c for a peer whose
 * handshake has agreed on records.
 *
 * Invariant: a byte reaches the inbox only after its record was opened, that is, proved to be the
 * peer's next record. A record that was changed, repeated, moved or added does not open, nor does
 * the record after a lost one. That ends the connection, so no receive gets wrong bytes.
 */
#include "collectives/link/tcp_sealed.h"

#include "base/mem.h"
#include "base/time.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define KEEPALIVE_US TIME_S /* a keepalive follows so long after the last record */

/* After this many records to or from one peer the bytes of the other peers are moved. */
#define RECORDS_AT_ONCE 4

/* One read asks for at least this many bytes, so it takes many small records. A larger read ends
 * behind the head of the next record. */
#define READ_LEAST ((size_t)8 * 1024)

/* An attacker may cut bytes out of a record; then the peer waits for the missing bytes, and takes
 * the bytes of the next records for them. KEEPALIVE_FILLS records without data fill the gap even of
 * the longest record: the peer then has a whole record, whose proof is wrong, and notices the loss.
 */
#define KEEPALIVE_FILLS (RECORD_MAX / RECORD_HEAD_BYTES + 2)

struct tcp_sealed {
    struct record_stream *seals, *opens; /* for the records of this side, and of the peer */
    /* the record that is being written: its length, and how much is written */
    size_t out_end, out_at;

    size_t in_end; /* how many bytes `in` holds; they begin with the head of the first record */
    size_t length; /* length of the first record's data; valid if head_open is true */
    bool head_open, data_open; /* true: head, data of the first record in `in` were opened */
    size_t taken;              /* how many bytes of the opened data the inbox has got */
    bool forged;               /* true: a record did not open */
    bool sent;                 /* true: a record with data was sealed */
    bool wrote;       /* true: a record with data was sealed since sealed_keep_alive was last
                       * called */
    int64_t alive_us; /* when sealed_keep_alive last saw or wrote a record; 0: never */
    /* how many times sealed_keep_alive has written since the last record with data */
    unsigned keepalives;
    struct sealed_forgery forgery;

    uint8_t out[RECORD_MAX];
    uint8_t in[RECORD_MAX + READ_LEAST];
};

/* Prepares to seal and open the records of a connection (tcp_sealed.h). */
int sealed_create(int fd, const uint8_t ours[SEAL_KEY_BYTES], const uint8_t theirs[SEAL_KEY_BYTES],
                  enum seal_mode mode, struct tcp_sealed **ret_sealed)
{
    struct tcp_sealed *sealed = mem_zalloc(sizeof(*sealed));
    int rc;

    if (!sealed)
        return HVD_E_NOMEM;
    socket_text(fd, sealed->forgery.ours, sealed->forgery.theirs);
    rc = record_stream_create(ours, mode, true /* this side sends */, RECORD_REKEY, &sealed->seals);
    if (!rc)
        rc = record_stream_create(theirs, mode, false /* the peer sends */, RECORD_REKEY,
                                  &sealed->opens);
    if (rc)
        sealed_free(sealed);
    else
        *ret_sealed = sealed;
    return rc;
}

void sealed_free(struct tcp_sealed *sealed)
{
    if (!sealed)
        return;
    record_stream_free(sealed->seals);
    record_stream_free(sealed->opens);
    mem_free(sealed);
}

/* ---- sending ---- */

/* true: the sealed record in `out` is not wholly written to the socket yet. */
bool sealed_writes(const struct tcp_sealed *sealed)
{
    return sealed->out_at < sealed->out_end;
}

/* Seals the next record in `out`: the next bytes of as many sends of the peer as fit. Without sends
 * the record has no data. */
static int seal_next(struct tcp_peer *peer)
{
    struct tcp_sealed *sealed = peer->sealed;
    size_t length = 0, part;

    LIST_EACH (it, &peer->sends) {
        struct tcp_request *request = CONTAINER_OF(it, struct tcp_request, place);
        uint8_t *to = sealed->out + RECORD_HEAD_BYTES;

        if (length == RECORD_DATA_BYTES)
            break;
        /* Copies the rest of the send's head, then the rest of its bytes, until the record is
         * full. */
        if (request->written < TCP_HEAD_BYTES) {
            part = TCP_HEAD_BYTES - request->written;
            part = part < RECORD_DATA_BYTES - length ? part : RECORD_DATA_BYTES - length;
            memcpy(to + length, request->head + request->written, part);
            request->written += part;
            length += part;
        }
        part = TCP_HEAD_BYTES + request->length - request->written;
        /* the record is full with a part of the head, or the send has no bytes left */
        if (request->written < TCP_HEAD_BYTES || !part)
            continue;
        part = part < RECORD_DATA_BYTES - length ? part : RECORD_DATA_BYTES - length;
        memcpy(to + length, request->bytes + (request->written - TCP_HEAD_BYTES), part);
        request->written += part;
        length += part;
    }
    sealed->out_at = 0;
    sealed->wrote |= length > 0;
    sealed->sent |= length > 0;
    return record_seal(sealed->seals, sealed->out, length, &sealed->out_end);
}

/* Writes the rest of the sealed record. false: the socket takes no more bytes for now (*ret_rc: 0),
 * or never again (*ret_rc: HVD_E_LOST). */
static bool write_record(struct tcp_peer *peer, int *ret_rc)
{
    struct tcp_sealed *sealed = peer->sealed;

    while (sealed_writes(sealed)) {
        ssize_t bytes = send(peer->fd, sealed->out + sealed->out_at,
                             sealed->out_end - sealed->out_at, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (bytes < 0 && errno == EINTR)
            continue;
        if (bytes < 0) {
            *ret_rc = errno == EAGAIN ? 0 : HVD_E_LOST;
            return false;
        }
        sealed->out_at += (size_t)bytes;
    }
    return true;
}

/* Seals and writes the peer's sends (tcp_sealed.h). A record that an earlier call could not write
 * wholly comes first, so the loop has one more pass than new records. */
int sealed_write(struct tcp_peer *peer)
{
    int rc = 0;

    for (int i = 0; i <= RECORDS_AT_ONCE; i++) {
        if (!write_record(peer, &rc))
            return rc;
        /* sends whose last byte was in the written record are done */
        while (!list_empty(&peer->sends)) {
            struct tcp_request *request = CONTAINER_OF(peer->sends.next, struct tcp_request, place);

            if (request->written < TCP_HEAD_BYTES + request->length)
                break;
            list_remove(&request->place);
        }
        if (list_empty(&peer->sends) || i == RECORDS_AT_ONCE)
            return 0;
        if (seal_next(peer))
            return HVD_E_LOST;
    }
    return 0;
}

/* Writes a record without data (a keepalive) when nothing was written for KEEPALIVE_US
 * (tcp_sealed.h). Returns at once if bytes wait to be written: their record will do what a
 * keepalive would do. */
int sealed_keep_alive(struct tcp_peer *peer, int64_t now_us)
{
    struct tcp_sealed *sealed = peer->sealed;
    size_t records = 1;
    int rc = 0;

    if (sealed->wrote || !sealed->alive_us) {
        sealed->wrote = false;
        sealed->keepalives = 0;
        sealed->alive_us = now_us;
    }
    if (now_us - sealed->alive_us < KEEPALIVE_US || sealed_writes(sealed) ||
        !list_empty(&peer->sends))
        return 0;
    sealed->alive_us = now_us;
    sealed->keepalives++;
    /* After 2, 4, 8, ... seconds without data, KEEPALIVE_FILLS records are written (their number is
     * explained above). A slow peer must open all of them, so most keepalives are one record. */
    if (sealed->sent && sealed->keepalives > 1 && !(sealed->keepalives & (sealed->keepalives - 1)))
        records = KEEPALIVE_FILLS;
    for (size_t i = 0; i < records && !rc && !sealed_writes(sealed); i++) {
        if (seal_next(peer))
            return HVD_E_LOST;
        (void)write_record(peer, &rc);
    }
    return rc;
}

/* ---- receiving ---- */

/* Notes which record did not open, for the error's text, and returns the code for a forged record.
 */
static int forged(struct tcp_sealed *sealed)
{
    sealed->forged = true;
    sealed->forgery.record = record_stream_number(sealed->opens);
    return HVD_E_PROTO;
}

/* Opens the records in `in`, one after another, and gives their data to the inbox. 0: the next
 * record is not complete, or the inbox takes no more until a receive is posted; others: see
 * sealed_read. */
int sealed_sort(struct tcp_peer *peer)
{
    struct tcp_sealed *sealed = peer->sealed;
    int rc;

    for (;;) {
        size_t whole = RECORD_HEAD_BYTES;

        if (!sealed->head_open) {
            if (sealed->in_end < RECORD_HEAD_BYTES)
                return 0;
            if (record_open_head(sealed->opens, sealed->in, &sealed->length))
                return forged(sealed);
            sealed->head_open = true;
            sealed->data_open = false;
            sealed->taken = 0;
        }
        if (sealed->length) {
            whole += sealed->length + RECORD_TAG_BYTES;
            if (sealed->in_end < whole)
                return 0;
            if (!sealed->data_open &&
                record_open_data(sealed->opens, sealed->in + RECORD_HEAD_BYTES, sealed->length))
                return forged(sealed);
            sealed->data_open = true;
            /* The inbox may take only a part of the opened data; it takes the rest when a receive
             * is posted. */
            while (sealed->taken < sealed->length) {
                const uint8_t *from = sealed->in + RECORD_HEAD_BYTES + sealed->taken;
                size_t left = sealed->length - sealed->taken, given = 0;
                struct iovec room[2];
                int pieces = inbox_room(&peer->inbox, room);

                for (int i = 0; i < pieces; i++) {
                    size_t part = left - given < room[i].iov_len ? left - given : room[i].iov_len;

                    if (part)
                        memcpy(room[i].iov_base, from + given, part);
                    given += part;
                }
                if (!given) /* a large message waits for its receive (inbox.h, HELD) */
                    return 0;
                sealed->taken += given;
                rc = inbox_fill(&peer->inbox, given);
                if (rc)
                    return rc;
            }
        }
        sealed->head_open = false;
        sealed->in_end -= whole;
        memmove(sealed->in, sealed->in + whole, sealed->in_end);
    }
}

/* Reads some records from the socket and gives their data to the inbox (tcp_sealed.h). First it
 * sorts what was read before, which the inbox may not have taken yet. */
int sealed_read(struct tcp_peer *peer)
{
    struct tcp_sealed *sealed = peer->sealed;
    int rc = sealed_sort(peer);

    for (int i = 0; i < RECORDS_AT_ONCE && !rc; i++) {
        /* Read up to the end of this record and of the next record's head; or READ_LEAST bytes, if
         * that is more. */
        size_t room = RECORD_HEAD_BYTES, least = sealed->in_end + READ_LEAST;
        ssize_t bytes;

        if (sealed->head_open)
            room += sealed->length + RECORD_TAG_BYTES + RECORD_HEAD_BYTES;
        room = room > least ? room : least;
        room = (room < sizeof(sealed->in) ? room : sizeof(sealed->in)) - sealed->in_end;

        /* the inbox has not taken all data of the opened record yet: read no more records */
        if (sealed->head_open && sealed->data_open)
            return 0;
        bytes = recv(peer->fd, sealed->in + sealed->in_end, room, 0);
        if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        if (bytes <= 0)
            return HVD_E_LOST;
        sealed->in_end += (size_t)bytes;
        rc = sealed_sort(peer);
        if ((size_t)bytes < room) /* the socket has no more bytes */
            return rc;
    }
    return rc;
}

/* Returns which record did not open and so ended the connection; NULL: none. */
const struct sealed_forgery *sealed_forgery_of(const struct tcp_sealed *sealed)
{
    return sealed->forged ? &sealed->forgery : NULL;
}
