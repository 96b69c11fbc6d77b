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

#define ID_WORD  "stand-in of NCCL"
#define WHILE_NS 20000000 /* a device that is lost strikes no bell */
#define MADE_MAX 64U      /* ids of this process that wait for their members */

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

/* The lock is held. Once all are there nobody opens it any more; the oldest goes if there are too
 * many. */
static unsigned free_place(void)
{
    for (unsigned i = 0; i < MADE_MAX; i++)
        if (made[i].meeting) {
            uint32_t size = atomic_load(&made[i].meeting->size);

            if (size && atomic_load(&made[i].meeting->here) == size)
                forget(i);
        }
    made_next = (made_next + 1) % MADE_MAX;
    forget(made_next);
    return made_next;
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
    place = free_place();
    made[place].fd = id.fd;
    made[place].meeting = map(id.fd);
    standin_count("ids", 1);
    pthread_mutex_unlock(&lock);
    memset(ret_id, 0, sizeof(*ret_id));
    memcpy(ret_id, &id, sizeof(id));
}

/* The number may be another file's by now, if the maker has forgotten it. */
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
        standin_misuse("that is no id of ncclGetUniqueId");
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

/* What runs here is not cut, as it is by its own end: this is what the others see of it. */
bool meeting_has_left(const struct meeting_member *member)
{
    int64_t gone_us = atomic_load(&member->gone_us);

    return gone_us && clock_now_us() >= gone_us;
}

/* ---- the bell -------------------------------------------------------------------------------- */

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
