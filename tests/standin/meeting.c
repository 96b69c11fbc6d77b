/*
 * meeting.c: the memory in which the members of a communicator of the NCCL stand-in meet, in one
 * process or in several, and how its last member removes it.
 */
#include "tests/standin/meeting.h"

#include "os/clock.h"
#include "tests/standin/driver.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ID_WORD "stand-in of NCCL"
#define WHILE_NS \
    20000000 /* a lost device wakes no member, so a wait checks again after this time */
/* ids that this process has made and whose members have not all arrived */
#define MADE_MAX 64U

struct id {
    char word[sizeof(ID_WORD)];
    int pid, fd;
    int64_t made_us;
};
_Static_assert(sizeof(struct id) <= NCCL_ID_BYTES, "an id holds it");

/* ---- ids ------------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    struct meeting *meeting;
    int fd;
} made[MADE_MAX];
static unsigned made_next;

static void forget(unsigned i)
{
    if (!made[i].meeting)
        return;
    meeting_close(made[i].meeting);
    close(made[i].fd);
    standin_count("ids", -1);
    made[i].meeting = NULL;
}

static struct meeting *map(int fd)
{
    void *at = mmap(NULL, sizeof(struct meeting), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (at == MAP_FAILED)
        standin_misuse("a meeting cannot be mapped");
    return at;
}

void meeting_make(struct nccl_id *ret_id)
{
    struct id id = { .word = ID_WORD, .pid = getpid(), .made_us = clock_now_us() };
    unsigned place;

    id.fd = memfd_create(ID_WORD, MFD_CLOEXEC);
    if (id.fd < 0 || ftruncate(id.fd, (off_t)sizeof(struct meeting)))
        standin_misuse("no memory for a meeting");
    pthread_mutex_lock(&lock);
    /* A free entry for a new id. An entry whose members have all arrived is free, because its
     * meeting is not opened again. If all entries are taken, the oldest is. */
    for (unsigned i = 0; i < MADE_MAX; i++)
        if (made[i].meeting) {
            uint32_t size = atomic_load(&made[i].meeting->size);

            if (size && atomic_load(&made[i].meeting->here) == size)
                forget(i);
        }
    made_next = (made_next + 1) % MADE_MAX;
    forget(made_next);
    place = made_next;
    made[place].fd = id.fd;
    made[place].meeting = map(id.fd);
    standin_count("ids", 1);
    pthread_mutex_unlock(&lock);
    memset(ret_id, 0, sizeof(*ret_id));
    memcpy(ret_id, &id, sizeof(id));
}

/* false: the descriptor now belongs to another file, because the process that made the id has
 * closed it. */
static bool is_meeting(int fd)
{
    char path[64];
    char name[64] = "";

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return readlink(path, name, sizeof(name) - 1) > 0 && strstr(name, ID_WORD);
}

struct meeting *meeting_open(const struct nccl_id *id)
{
    struct meeting *meeting = NULL;
    struct id said;
    char path[64];
    int fd;

    memcpy(&said, id, sizeof(said));
    if (memcmp(said.word, ID_WORD, sizeof(ID_WORD)) != 0)
        standin_misuse("the id does not come from ncclGetUniqueId");
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", said.pid, said.fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    if (is_meeting(fd))
        meeting = map(fd);
    close(fd);
    return meeting;
}

void meeting_close(struct meeting *meeting)
{
    if (meeting)
        munmap(meeting, sizeof(*meeting));
}

/* true: this member has left, so other members get nothing from it. Only other members ask this: an
 * operation of the member itself still runs to its end. */
bool meeting_has_left(const struct meeting_member *member)
{
    int64_t gone_us = atomic_load(&member->gone_us);

    return gone_us && clock_now_us() >= gone_us;
}

/* ---- the bell: a counter in shared memory; members sleep until it changes (futex) ------------ */

void meeting_ring(struct meeting *meeting)
{
    atomic_fetch_add(&meeting->bell, 1);
    syscall(SYS_futex, &meeting->bell, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

uint32_t meeting_see(struct meeting *meeting)
{
    return atomic_load(&meeting->bell);
}

void meeting_wait(struct meeting *meeting, uint32_t seen)
{
    struct timespec a_while = { .tv_nsec = WHILE_NS };

    syscall(SYS_futex, &meeting->bell, FUTEX_WAIT, seen, &a_while, NULL, 0);
}
