/*
 * inside.h: what the files of meet share. All of it belongs to meet's thread, but for what
 * stands under the mutex.
 *
 *     a line we dial:        WAITS ──► DIALS ──► ASKS ──► MET
 *                              ▲─────────┴────────┘ it broke: again, a little later
 *     one that comes to us:  STRANGER ──► PARKED ──► MET
 *                               └───────────────────►
 */
#ifndef COLLECTIVES_MEET_INSIDE_H
#define COLLECTIVES_MEET_INSIDE_H

#include "base/list.h"
#include "base/vec.h"
#include "collectives/meet/meet.h"

#include <poll.h>
#include <pthread.h>

enum line_stage { LINE_WAITS, LINE_DIALS, LINE_ASKS, LINE_STRANGER, LINE_PARKED, LINE_MET };

struct meet_line {
    struct list place; /* in meet->lines */
    struct meet *meet;
    enum line_stage stage;
    int fd;              /* -1: WAITS */
    size_t polled;       /* its place in meet->polled; 0: none */
    int64_t deadline_us; /* WAITS: the next try; STRANGER, PARKED: not longer than this */
    unsigned tries;
    struct meet_party *party; /* not of STRANGER and PARKED */
    struct party_peer *peer;
    struct meet_frame hello; /* PARKED */
    bool bye_heard;
    uint8_t in[MEET_FRAME_MAX];
    size_t in_length;
    struct buf out;
};

struct party_peer {
    uint32_t rank;
    uint64_t incarnation;
    struct meet_contact contact;
    uint8_t address[MEET_ADDRESS_MAX];
    size_t address_length;
    bool dialled, met;
    struct meet_line *line; /* NULL: none (any more) */
};

struct meet_party {
    struct list place; /* in meet->arrivals, then meet->parties */
    struct meet *meet;
    struct meet_spec spec; /* its peers are in ours */
    struct party_peer *peers;
    bool told_all, left; /* what was ordered has been begun */
    int64_t deadline_us; /* of a leave */

    bool told, bye, bye_said, leaving, politely; /* under the mutex */
    struct meet_frame notice;
};

struct meet {
    int listener, wake;
    pthread_t thread;
    struct meet_contact contact;
    char contact_text[MEET_CONTACT_MAX];
    struct list lines, parties;
    struct polled VEC(struct pollfd) polled;
    size_t line_count, stranger_count, parked_count;
    int64_t rests_until_us;   /* the listener; 0 */
    int64_t starves_since_us; /* for want of descriptors; 0: it does not */
    uint64_t newest;          /* the highest round that anybody has joined */

    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t changed;
    struct list arrivals;
    bool closing;
};

/* line.c. NULL: out of memory, and the fd, given, is closed. */
struct meet_line *line_create(struct meet *meet, enum line_stage stage, int fd);
void line_free(struct meet_line *line);
void line_say(struct meet_line *line, const struct meet_frame *frame);
void line_flush(struct meet_line *line);
short line_events(const struct meet_line *line);
void line_ready(struct meet_line *line, short events, int64_t now_us);
void line_due(struct meet_line *line, int64_t now_us);
void line_dial(struct meet_line *line, int64_t now_us);

/* party.c */
void party_begin(struct meet_party *party, int64_t now_us);
void party_obey(struct meet_party *party, int64_t now_us);
bool party_is_done(const struct meet_party *party, int64_t now_us);
void party_end(struct meet_party *party); /* frees it */
void party_free(struct meet_party *party);
void party_met(struct meet_party *party, struct party_peer *peer, struct meet_line *line,
               const struct meet_frame *frame);
void party_missed(struct meet_line *line, int code, const char *why);
void party_heard(struct meet_line *line, const struct meet_frame *frame);
void party_parted(struct meet_line *line);
void party_judge(struct meet_line *line);     /* that is PARKED */
void party_starves(struct meet_party *party); /* who would dial us is not let in */
#define MEET_STARVES "no descriptor is left here for its connection; raise the limit (ulimit -n)"

/* socket.c: sockets that never wait. */
int meet_listen(struct meet_contact *contact, int *ret_fd, struct hvd_err *err) MUST_CHECK;
int meet_accept(int listener);
int meet_dial(const struct meet_contact *contact); /* the socket, on its way, or -1 with errno */

#endif
