#include "worker/io/life.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What the kernel reads when the thread ends. It belongs to the thread, as the C library's does. */
struct robust {
    struct robust_list_head head;
    struct robust_list entry;
    struct robust_list_head *before; /* the C library's */
    struct page *page;               /* NULL: not held */
};
static _Thread_local struct robust mine;

static int set_list(struct robust_list_head *head)
{
    return (int)syscall(SYS_set_robust_list, head, sizeof(*head));
}

static void wake(struct page *page)
{
    (void)syscall(SYS_futex, &page->life, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Until the word is ours it is only "pending": if we die in between, the kernel looks whether it
 * had become ours. */
static int install(struct page *page)
{
    size_t bytes;

    if (syscall(SYS_get_robust_list, 0, &mine.before, &bytes))
        return HVD_E_UNSUPPORTED;
    mine.head = (struct robust_list_head){
        .list = { &mine.head.list },
        .futex_offset = (long)((intptr_t)&page->life - (intptr_t)&mine.entry),
        .list_op_pending = &mine.entry,
    };
    mine.entry.next = &mine.head.list;
    return set_list(&mine.head) ? HVD_E_UNSUPPORTED : 0;
}

/* The compiler must not move what the kernel may read at any moment. */
static void fence(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

int life_hold(struct page *page)
{
    uint32_t word = atomic_load(&page->life);
    uint32_t self = (uint32_t)gettid();
    int rc;

    if (mine.page)
        return mine.page == page ? 0 : HVD_E_STATE;
    rc = install(page);
    if (rc)
        return rc;
    fence();
    do {
        if ((word & FUTEX_TID_MASK) && !(word & FUTEX_OWNER_DIED)) {
            (void)set_list(mine.before);
            return HVD_E_BUSY;
        }
    } while (!atomic_compare_exchange_strong(&page->life, &word, self));
    mine.page = page;
    mine.head.list.next = &mine.entry;
    fence();
    mine.head.list_op_pending = NULL;
    wake(page); /* whoever waits for an owner watches us from now on */
    return 0;
}

void life_release(struct page *page)
{
    if (!mine.page || mine.page != page)
        return;
    mine.page = NULL;
    if ((atomic_load(&page->life) & FUTEX_TID_MASK) != (uint32_t)gettid())
        return; /* a fork of the holder: the life is not its, and the kernel has emptied its list */
    mine.head.list_op_pending = &mine.entry;
    fence();
    mine.head.list.next = &mine.head.list;
    fence();
    atomic_store(&page->life, 0);
    wake(page);
    mine.head.list_op_pending = NULL;
    (void)set_list(mine.before);
}
