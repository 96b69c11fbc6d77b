/*
 * life_watch.c: the page that a worker shares with its agent, and the thread that waits for the
 * death of the owner of the futex in it. Called by child.c and children.c. Invariant: the thread
 * uses only its page and the eventfd; all other work is done in the agent's loop.
 */
#include "agent/processes/life_watch.h"
#include "os/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* a small stack: each worker has a thread, which only waits */
#define STACK_BYTES (256 * 1024)

/* Makes the page that a worker and its agent share, and the descriptor for the worker. The seals
 * keep the worker from shrinking the page, which would crash the agent. */
int life_page_make(uint64_t incarnation, struct page **ret_page, int *ret_fd, struct hvd_err *err)
{
    struct page *page = MAP_FAILED;
    int fd = memfd_create("hvd-page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int number;

    if (fd >= 0 && !ftruncate(fd, PAGE_BYTES) &&
        !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    number = errno;
    if (page == MAP_FAILED) {
        if (fd >= 0)
            close(fd);
        return err_set(err,
                       number == EMFILE || number == ENFILE ? HVD_E_LIMIT
                       : number == ENOMEM                   ? HVD_E_NOMEM
                                                            : HVD_E_IO,
                       "the page that the agent shares with a worker cannot be made: %s; raise "
                       "ulimit -n, or free memory",
                       strerror(number));
    }
    page->magic = PAGE_MAGIC;
    page->version = PAGE_VERSION;
    page->bytes = PAGE_BYTES;
    page->incarnation = incarnation;
    *ret_page = page;
    *ret_fd = fd;
    return 0;
}

/* Gives the agent's mapping and descriptor back; the worker keeps its own. */
void life_page_free(struct page *page, int fd)
{
    if (page)
        munmap(page, PAGE_BYTES);
    if (fd >= 0)
        close(fd);
}

/* The thread: waits until the kernel or life_watch_stop sets FUTEX_OWNER_DIED, then tells the
 * agent's loop. */
static void *life_watch_main(void *arg)
{
    struct life_watch *watch = arg;
    struct page *page = watch->page;
    uint32_t word = atomic_load(&page->life);

    while (!(word & FUTEX_OWNER_DIED)) {
        bool held = (word & FUTEX_TID_MASK) != 0;

        /* While the worker holds the futex, FUTEX_WAITERS asks the kernel to wake this thread when
         * the owner dies. While no worker holds the futex, its next owner wakes this thread. */
        if (held && !(word & FUTEX_WAITERS)) {
            if (!atomic_compare_exchange_strong(&page->life, &word, word | FUTEX_WAITERS))
                continue;
            word |= FUTEX_WAITERS;
        }
        (void)syscall(SYS_futex, &page->life, FUTEX_WAIT, word, NULL, NULL, 0);
        word = atomic_load(&page->life);
    }
    atomic_store(&watch->over, true);
    (void)eventfd_write(watch->tell, 1); /* a full eventfd is readable already */
    return NULL;
}

/* Starts the thread that waits for the death of the process that holds the page's futex. */
int life_watch_start(struct life_watch *watch, struct page *page, int tell, struct hvd_err *err)
{
    uint32_t word = atomic_load(&page->life);
    int rc;

    /* clears the death of an earlier owner; a word that changes meanwhile is read again */
    while (word & FUTEX_OWNER_DIED)
        if (atomic_compare_exchange_strong(&page->life, &word, 0))
            break;
    watch->page = page;
    watch->tell = tell;
    atomic_store(&watch->over, false);
    rc = thread_start(&watch->thread, STACK_BYTES, life_watch_main, watch);
    watch->runs = rc == 0;
    if (rc)
        return err_set(err, rc, "no thread can be started to watch a worker; raise ulimit -u");
    return 0;
}

/* true: the owner of the futex has died, and life_watch_stop was not called since. */
bool life_watch_is_over(const struct life_watch *watch)
{
    return watch->runs && atomic_load(&watch->over);
}

/* Ends the thread, also while the worker lives: sets FUTEX_OWNER_DIED, the bit that the kernel sets
 * when the worker dies, and wakes the thread. life_watch_start clears the bit again. */
void life_watch_stop(struct life_watch *watch)
{
    if (!watch->runs)
        return;
    atomic_fetch_or(&watch->page->life, FUTEX_OWNER_DIED);
    (void)syscall(SYS_futex, &watch->page->life, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    pthread_join(watch->thread, NULL);
    watch->runs = false;
}
