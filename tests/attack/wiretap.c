/*
 * wiretap.c: an observer of the loopback, who sees each TCP segment by a packet socket (which needs
 * root), and may send words that it has seen again, as a stranger on connections of its own.
 *
 *     wiretap CAPTURE           writes what TCP carries to CAPTURE until SIGTERM
 *     wiretap CAPTURE replay    and replays each HELLO of meet, each greeting of a link and the
 *                               beginning of each TLS connection, at once and again and again, to
 *                               the port to which it went; in a network of its own only
 *     wiretap CAPTURE replay everywhere
 *                               on all interfaces: for a network of its own (tests/chaos)
 *
 * Each SOME replays it prints a line, and at its end how much it has seen, replayed, and how many
 * replays got an answer. The exit code is 1 when a replay got an answer after what every stranger
 * gets (the challenge; of TLS the server's part of the handshake), and 77 without the right to
 * listen. It ends with its parent.
 */
#include "base/time.h"
#include "os/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define WORDS_MAX     256
#define WORD_BYTES    4096
#define OPEN_MAX      64
#define AGAIN_US      (20 * TIME_MS)
#define SOME          20
#define PATIENCE_US   (10 * TIME_S)
#define ALERT_BYTES   64                          /* a TLS alert is no answer, and is not longer */
#define CAPTURE_BYTES ((size_t)256 * 1024 * 1024) /* the bound of the file */

enum kind { NO_WORD, PROVED, TLS };

struct word { /* a HELLO, a greeting, or the beginning of a TLS connection, and where it went */
    struct sockaddr_in to, from;
    enum kind kind;
    uint8_t bytes[WORD_BYTES];
    size_t length;
    size_t challenge; /* the length of the challenge that comes first there; TLS: 0 */
    size_t first;     /* TLS: so many bytes are said before the server answers */
};

struct thief { /* a connection on which a word is replayed */
    int fd;    /* -1: free */
    const struct word *word;
    size_t heard;
    bool said; /* the whole word */
    int64_t until_us;
};

static struct word words[WORDS_MAX];
static struct thief thieves[OPEN_MAX];
static size_t word_count, next_word;
static unsigned long long seen, replayed, answered, refused;
static volatile sig_atomic_t over;

static void on_signal(int signal)
{
    (void)signal;
    over = 1;
}

/* A HELLO: kind 1, its length, version 2. A greeting: "hvd", version 2, 58 bytes. A ClientHello: a
 * record of kind 22, a message of kind 1. */
static enum kind word_kind(const uint8_t *bytes, size_t length, size_t *ret_challenge)
{
    *ret_challenge = 0;
    if (length > 60 && length < WORD_BYTES && bytes[0] == 1 &&
        (size_t)(bytes[1] | bytes[2] << 8) == length - 3 && bytes[3] == 2 && !bytes[4]) {
        *ret_challenge = 3 + 2 + 16;
        return PROVED;
    }
    if (length == 58 && !memcmp(bytes, "hvd\2", 4)) {
        *ret_challenge = 4 + 16;
        return PROVED;
    }
    if (length > 60 && length < WORD_BYTES && bytes[0] == 22 && bytes[1] == 3 && bytes[5] == 1)
        return TLS;
    return NO_WORD;
}

static bool is_same(const struct sockaddr_in *one, const struct sockaddr_in *other)
{
    return one->sin_port == other->sin_port && one->sin_addr.s_addr == other->sin_addr.s_addr;
}

/* Later words of the client of a TLS connection belong to its word, as far as there is room. */
static void word_append(const uint8_t *bytes, size_t length, const struct sockaddr_in *from,
                        const struct sockaddr_in *to)
{
    for (size_t i = 0; i < WORDS_MAX && i < word_count; i++) {
        struct word *word = &words[i];

        if (word->kind == TLS && is_same(&word->from, from) && is_same(&word->to, to)) {
            if (length > WORD_BYTES - word->length)
                length = WORD_BYTES - word->length;
            memcpy(word->bytes + word->length, bytes, length);
            word->length += length;
        }
    }
}

static void word_note(const uint8_t *bytes, size_t length, const struct sockaddr_in *from,
                      const struct sockaddr_in *to)
{
    size_t challenge;
    enum kind kind = word_kind(bytes, length, &challenge);
    struct word *word = &words[word_count % WORDS_MAX];

    if (kind == NO_WORD) {
        word_append(bytes, length, from, to);
        return;
    }
    for (size_t i = 0; i < WORDS_MAX && i < word_count; i++) {
        if (words[i].first == length && !memcmp(words[i].bytes, bytes, length))
            return; /* our own replay */
    }
    *word = (struct word){ .to = *to,
                           .from = *from,
                           .kind = kind,
                           .length = length,
                           .first = length,
                           .challenge = challenge };
    memcpy(word->bytes, bytes, length);
    next_word = word_count++ % WORDS_MAX; /* this one is replayed next */
}

/* Takes one packet: IPv4 and TCP; anything else is no concern of workers here. */
static void packet_take(const uint8_t *packet, size_t length, FILE *capture, bool replays)
{
    size_t ip = length > 20 ? (size_t)(packet[0] & 15) * 4 : 0, tcp, data;
    struct sockaddr_in from = { .sin_family = AF_INET }, to = from;

    if (ip < 20 || packet[0] >> 4 != 4 || packet[9] != IPPROTO_TCP || length < ip + 20)
        return;
    tcp = (size_t)(packet[ip + 12] >> 4) * 4;
    data = (size_t)(packet[2] << 8 | packet[3]);
    if (data > length || data <= ip + tcp)
        return;
    length = data - ip - tcp;
    memcpy(&from.sin_addr, packet + 12, 4);
    memcpy(&to.sin_addr, packet + 16, 4);
    packet += ip;
    memcpy(&from.sin_port, packet, 2);
    memcpy(&to.sin_port, packet + 2, 2);
    if (seen + length <= CAPTURE_BYTES)
        (void)fwrite(packet + tcp, 1, length, capture);
    seen += length;
    if (replays)
        word_note(packet + tcp, length, &from, &to);
}

/* ---- the replays ---- */

static void thief_end(struct thief *thief)
{
    close(thief->fd);
    thief->fd = -1;
}

static void thief_say(struct thief *thief, size_t from, size_t to)
{
    if (from < to)
        (void)!send(thief->fd, thief->word->bytes + from, to - from, MSG_NOSIGNAL);
}

static void thief_begin(const struct word *word)
{
    for (size_t i = 0; i < OPEN_MAX; i++) {
        struct thief *thief = &thieves[i];

        if (thief->fd >= 0)
            continue;
        *thief = (struct thief){ .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                                 .word = word,
                                 .until_us = clock_now_us() + PATIENCE_US };
        if (thief->fd < 0)
            return;
        if (connect(thief->fd, (const struct sockaddr *)&word->to, sizeof(word->to)))
            thief_end(thief);       /* the round or the worker is over */
        else if (word->kind == TLS) /* the client has the first word */
            thief_say(thief, 0, word->first);
        return;
    }
}

/* Says the word after the challenge, or the rest of it after the server's handshake; more that
 * comes then is an answer. */
static void thief_continue(struct thief *thief)
{
    const struct word *word = thief->word;
    size_t due = word->challenge, later = word->kind == TLS ? ALERT_BYTES : 0;
    uint8_t bytes[WORD_BYTES];
    ssize_t got = recv(thief->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0) {
        if (word->kind == TLS || (thief->said && thief->heard == due)) {
            refused++;
            if (refused % SOME == 0) {
                printf("wiretap: %llu replays were hung up on\n", refused);
                (void)fflush(stdout);
            }
        }
        thief_end(thief);
        return;
    }
    if (!thief->said && word->kind == TLS) {
        thief->said = true;
        replayed++;
        thief_say(thief, word->first, word->length);
        return; /* `heard` counts what comes after the server's handshake */
    }
    thief->heard += (size_t)got;
    if (thief->heard > due + later) {
        answered++;
        thief_end(thief);
    } else if (word->kind != TLS && thief->heard == due) {
        thief->said = true;
        replayed++;
        thief_say(thief, 0, word->length);
    }
}

static void listen_to(int fd, FILE *capture, bool replays)
{
    static uint8_t packet[70000];
    struct sockaddr_ll from = { 0 };
    socklen_t length = sizeof(from);
    ssize_t got;

    while ((got = recvfrom(fd, packet, sizeof(packet), MSG_DONTWAIT, (struct sockaddr *)&from,
                           &length)) > 0) {
        /* the loopback shows each packet twice; a router shows those that it has sent on again */
        if (from.sll_pkttype != PACKET_OUTGOING)
            packet_take(packet, (size_t)got, capture, replays);
        length = sizeof(from);
    }
}

static void listen_and_replay(int fd, FILE *capture, bool replays)
{
    struct pollfd polled[1 + OPEN_MAX];
    int64_t again_us = 0;
    size_t before = 0;

    while (!over) {
        polled[0] = (struct pollfd){ .fd = fd, .events = POLLIN };
        for (size_t i = 0; i < OPEN_MAX; i++)
            polled[1 + i] = (struct pollfd){ .fd = thieves[i].fd, .events = POLLIN };
        (void)poll(polled, 1 + OPEN_MAX, AGAIN_US / TIME_MS);
        listen_to(fd, capture, replays);
        if (before != word_count) {
            before = word_count;
            thief_begin(&words[next_word]);
        } else if (replays && word_count && clock_now_us() >= again_us) {
            again_us = clock_now_us() + AGAIN_US;
            thief_begin(&words[next_word++ % (word_count < WORDS_MAX ? word_count : WORDS_MAX)]);
        }
        for (size_t i = 0; i < OPEN_MAX; i++) {
            if (thieves[i].fd < 0 || polled[1 + i].fd != thieves[i].fd)
                continue;
            if (polled[1 + i].revents)
                thief_continue(&thieves[i]);
            else if (clock_now_us() > thieves[i].until_us)
                thief_end(&thieves[i]);
        }
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP) };
    int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_IP)), room = 64 << 20;
    FILE *capture = argc > 1 ? fopen(argv[1], "w") : NULL;

    if (fd < 0 || !capture) {
        fprintf(stderr, "wiretap: cannot listen; run it as root\n");
        return 77;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    at.sll_ifindex = argc > 3 ? 0 : (int)if_nametoindex("lo");
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
    if (bind(fd, (struct sockaddr *)&at, sizeof(at)))
        return 77;
    for (size_t i = 0; i < OPEN_MAX; i++)
        thieves[i].fd = -1;
    (void)signal(SIGTERM, on_signal);
    puts("wiretap: listens");
    (void)fflush(stdout);
    listen_and_replay(fd, capture, argc > 2);
    listen_to(fd, capture, false); /* packets that came before the signal */
    if (fclose(capture))
        return 2;
    printf("wiretap: %llu bytes seen, %zu words, %llu replayed, %llu hung up on, %llu answered\n",
           seen, word_count, replayed, refused, answered);
    return answered ? 1 : 0;
}
