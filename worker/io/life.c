/*
 * life.c: lets the agent notice at once that this worker dies. The worker's page, memory shared
 * with the agent, has a robust futex; when the thread that holds it ends, the kernel marks the
 * futex and wakes the agent. This file keeps the list in which the kernel finds the futex.
 *
 * Called by greeting.c, on the session's thread. Invariant: the thread may die at any instruction,
 * and the kernel finds the futex nevertheless: in the list, or noted as "pending"; or the futex
 * does not have this thread's id yet, so there is nothing to find.
 */
#include "worker/io/life.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The list that the kernel reads when the thread that holds a page's futex ends. Each thread has
 * its own struct, as it has a robust list of its own. */
struct robust {
    struct robust_list_head head;
    struct robust_list entry;
    /* the head of the list that the C library had set for this thread */
    struct robust_list_head *before;
    struct page *page; /* the page whose futex this thread holds; NULL: none */
};
static _Thread_local struct robust mine;

/* Tells the kernel where the robust list of the calling thread begins. */
static int set_list(struct robust_list_head *head)
{
    return (int)syscall(SYS_set_robust_list, head, sizeof(*head));
}

/* Wakes the agent if it waits for a change of the futex word. */
static void wake_waiters(struct page *page)
{
    (void)syscall(SYS_futex, &page->life, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Keeps the order of stores: the compiler must not move a store that the kernel may read at any
 * moment. */
static void compiler_fence(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

/* Makes the calling thread hold the page's futex. The kernel's rules for robust futexes
 * (set_robust_list(2)): when a thread ends, the kernel looks at each entry of the thread's list and
 * at `list_op_pending`. Where the futex word is that thread's id, the kernel sets FUTEX_OWNER_DIED
 * in the word and wakes a waiter. So this function writes the thread's id into the word, and puts
 * the futex into a list of its own. */
int life_hold(struct page *page)
{
    uint32_t word = atomic_load(&page->life);
    uint32_t self = (uint32_t)gettid();
    size_t bytes;

    if (mine.page)
        return mine.page == page ? 0 : HVD_E_STATE;
    /* Until the word has this thread's id the entry is only "pending": when a thread dies, the
     * kernel also looks at the pending entry, and does nothing if the word has another id. */
    if (syscall(SYS_get_robust_list, 0, &mine.before, &bytes))
        return HVD_E_UNSUPPORTED;
    mine.head = (struct robust_list_head){
        .list = { &mine.head.list },
        .futex_offset = (long)((intptr_t)&page->life - (intptr_t)&mine.entry),
        .list_op_pending = &mine.entry,
    };
    mine.entry.next = &mine.head.list;
    if (set_list(&mine.head))
        return HVD_E_UNSUPPORTED;
    compiler_fence();
    do {
        /* Another thread that lives holds the futex; a dead owner may be replaced. The kernel also
         * marks the owner as dead when its process calls exec. */
        if ((word & FUTEX_TID_MASK) && !(word & FUTEX_OWNER_DIED)) {
            (void)set_list(mine.before);
            return HVD_E_BUSY;
        }
    } while (!atomic_compare_exchange_strong(&page->life, &word, self));
    mine.page = page;
    mine.head.list.next = &mine.entry;
    compiler_fence();
    mine.head.list_op_pending = NULL;
    /* the agent waits until a thread holds the futex, and watches that thread from now on */
    wake_waiters(page);
    return 0;
}

/* Lets go of the page's futex before the thread ends normally, so that the kernel reports no death:
 * the word becomes 0, and the list is empty. The order of the stores keeps the kernel's rules (see
 * life_hold): from its removal from the list until the word is 0, the futex is noted in
 * `list_op_pending`, so a thread that dies in between is still noticed. Then the thread gets back
 * the list that the C library had set for it (`before`). */
void life_release(struct page *page)
{
    if (!mine.page || mine.page != page)
        return;
    mine.page = NULL;
    /* this process is a forked child of the one whose thread holds the page: the kernel has emptied
     * the child's robust list, and the futex is not the child's */
    if ((atomic_load(&page->life) & FUTEX_TID_MASK) != (uint32_t)gettid())
        return;
    mine.head.list_op_pending = &mine.entry;
    compiler_fence();
    mine.head.list.next = &mine.head.list;
    compiler_fence();
    atomic_store(&page->life, 0);
    wake_waiters(page);
    mine.head.list_op_pending = NULL;
    (void)set_list(mine.before);
}
