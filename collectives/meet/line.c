#include "base/limits.h"
#include "base/mem.h"
#include "collectives/meet/inside.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RETRY_US      5000 /* doubled with each try, up to */
#define RETRY_MAX_US  200000

#define STARVED_TRIES 10 /* without a descriptor: more than a second */

struct meet_line *line_create(struct meet *meet, enum line_stage stage, int fd)
{
    struct meet_line *line = mem_zalloc(sizeof(*line));

    /* Room for its place among those that are polled, beside the two that always are. */
    meet->polled.count = meet->line_count + 2;
    if (!line || VEC_RESERVE(&meet->polled, 1, LIMIT_WORKERS)) {
        mem_free(line);
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    line->meet = meet;
    line->stage = stage;
    line->fd = fd;
    buf_init(&line->out, 4 * (size_t)MEET_FRAME_MAX);
    list_append(&meet->lines, &line->place);
    meet->line_count++;
    if (stage == LINE_STRANGER)
        meet->stranger_count++;
    return line;
}

static void hang_up(struct meet_line *line)
{
    if (line->fd >= 0)
        close(line->fd);
    line->fd = -1;
    line->polled = 0;
    line->in_length = 0;
    buf_clear(&line->out);
}

void line_free(struct meet_line *line)
{
    hang_up(line);
    if (line->peer && line->peer->line == line)
        line->peer->line = NULL;
    if (line->stage == LINE_STRANGER)
        line->meet->stranger_count--;
    if (line->stage == LINE_PARKED)
        line->meet->parked_count--;
    line->meet->line_count--;
    list_remove(&line->place);
    buf_release(&line->out);
    mem_free(line);
}

/* ---- out ---- */

void line_flush(struct meet_line *line)
{
    while (line->out.length) {
        ssize_t sent = send(line->fd, line->out.data, line->out.length, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EAGAIN)
            return;
        if (sent < 0) { /* reading will show it */
            buf_clear(&line->out);
            return;
        }
        buf_consume(&line->out, (size_t)sent);
    }
}

/* What cannot be said for want of memory is said by hanging up. */
void line_say(struct meet_line *line, const struct meet_frame *frame)
{
    if (meet_frame_append(frame, &line->out))
        (void)shutdown(line->fd, SHUT_RDWR);
    else
        line_flush(line);
}

/* ---- dialling ---- */

static void again_later(struct meet_line *line, int64_t now_us)
{
    int64_t wait_us = RETRY_US << (line->tries < 6 ? line->tries : 6);

    hang_up(line);
    line->stage = LINE_WAITS;
    line->tries++;
    line->deadline_us = now_us + (wait_us < RETRY_MAX_US ? wait_us : RETRY_MAX_US);
}

/* It listens before anybody is told where: who is not there any more has died. */
static void dial_failed(struct meet_line *line, int fault, int64_t now_us)
{
    if (fault == ECONNREFUSED)
        party_missed(line, HVD_E_LOST, "it does not listen any more");
    else if ((fault == EMFILE || fault == ENFILE) && line->tries >= STARVED_TRIES)
        party_missed(line, HVD_E_LIMIT, MEET_STARVES);
    else
        again_later(line, now_us);
}

void line_dial(struct meet_line *line, int64_t now_us)
{
    line->fd = meet_dial(&line->peer->contact);
    line->stage = LINE_DIALS;
    if (line->fd < 0)
        dial_failed(line, errno, now_us);
}

static void dialled(struct meet_line *line, int64_t now_us)
{
    const struct meet_spec *spec = &line->party->spec;
    const struct party_peer *peer = line->peer;
    struct meet_frame hello = { .kind = MEET_HELLO };
    socklen_t length = sizeof(int);
    int fault = 0;

    if (getsockopt(line->fd, SOL_SOCKET, SO_ERROR, &fault, &length) || fault) {
        dial_failed(line, fault, now_us);
        return;
    }
    memcpy(hello.secret, peer->contact.secret, sizeof(hello.secret));
    hello.round = spec->round;
    hello.from = spec->incarnation;
    hello.to = peer->incarnation;
    hello.roster = spec->roster;
    memcpy(hello.address, peer->address, peer->address_length);
    hello.address_length = peer->address_length;
    line->stage = LINE_ASKS;
    line_say(line, &hello);
}

/* ---- in ---- */

/* Takes as long whatever is wrong. */
static bool knows_secret(const struct meet *meet, const struct meet_frame *hello)
{
    uint8_t difference = 0;

    for (size_t i = 0; i < MEET_SECRET_BYTES; i++)
        difference |= (uint8_t)(meet->contact.secret[i] ^ hello->secret[i]);
    return !difference;
}

/* False: the line is gone. */
static bool hear(struct meet_line *line, const struct meet_frame *frame, int64_t now_us)
{
    switch (line->stage) {
    case LINE_ASKS:
        if (frame->kind == MEET_WELCOME) {
            party_met(line->party, line->peer, line, frame);
            return true;
        }
        party_missed(line, frame->kind == MEET_REFUSED ? frame->code : HVD_E_PROTO,
                     frame->kind == MEET_REFUSED ? frame->text : "it broke the protocol");
        return false;
    case LINE_STRANGER:
        if (frame->kind != MEET_HELLO || !knows_secret(line->meet, frame))
            break;
        line->meet->stranger_count--;
        line->meet->parked_count++;
        line->stage = LINE_PARKED;
        line->hello = *frame;
        line->deadline_us = now_us + LIMIT_MEET_PARKED_US;
        party_judge(line);
        return false;
    case LINE_MET:
        if (frame->kind != MEET_NOTICE && frame->kind != MEET_BYE)
            break;
        party_heard(line, frame);
        return true;
    default: break;
    }
    if (line->stage == LINE_MET)
        party_parted(line);
    else
        line_free(line);
    return false;
}

/* False: the line is gone, or waits. */
static bool hear_all(struct meet_line *line, int64_t now_us)
{
    struct meet_frame frame;
    size_t used;
    int rc;

    while ((rc = meet_frame_read(line->in, line->in_length, &frame, &used)) == 1) {
        line->in_length -= used;
        memmove(line->in, line->in + used, line->in_length);
        if (!hear(line, &frame, now_us))
            return false;
    }
    if (!rc)
        return true;
    frame.kind = MEET_HELLO; /* as wrong as any */
    memset(frame.secret, 0, sizeof(frame.secret));
    (void)hear(line, &frame, now_us);
    return false;
}

static void broke(struct meet_line *line, int64_t now_us)
{
    if (line->stage == LINE_ASKS)
        again_later(line, now_us);
    else if (line->stage == LINE_MET)
        party_parted(line);
    else
        line_free(line);
}

static void read_all(struct meet_line *line, int64_t now_us)
{
    for (;;) {
        ssize_t got =
            recv(line->fd, line->in + line->in_length, sizeof(line->in) - line->in_length, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return;
        if (got <= 0) {
            broke(line, now_us);
            return;
        }
        line->in_length += (size_t)got;
        if (line->stage == LINE_PARKED) { /* it has given up: it had nothing to say yet */
            line_free(line);
            return;
        }
        if (!hear_all(line, now_us))
            return;
    }
}

short line_events(const struct meet_line *line)
{
    if (line->stage == LINE_DIALS)
        return POLLOUT;
    return (short)(POLLIN | (line->out.length ? POLLOUT : 0));
}

void line_ready(struct meet_line *line, short events, int64_t now_us)
{
    if (line->stage == LINE_DIALS) {
        dialled(line, now_us);
        return;
    }
    if (events & POLLOUT)
        line_flush(line);
    if (events & (POLLIN | POLLERR | POLLHUP))
        read_all(line, now_us);
}

void line_due(struct meet_line *line, int64_t now_us)
{
    if (line->stage == LINE_WAITS)
        line_dial(line, now_us);
    else
        line_free(line);
}
