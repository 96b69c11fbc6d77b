/*
 * test_thread.c: os/thread: the end of a process while one of its threads hangs.
 */
#include "os/thread.h"
#include "tests/lib/test.h"
#include "tests/lib/torture.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *thread_hangs(void *arg)
{
    (void)arg;
    for (;;)
        thread_pause(INT64_C(3600000000));
    return NULL;
}

/* Stands for a handler of a library that frees what a thread still uses. */
static void thread_handler_breaks(void)
{
    abort();
}

/* Ends a child whose exit handler breaks. Returns its wait status. */
static int thread_end_of_child(bool hangs)
{
    pthread_t thread;
    int status = -1;
    pid_t child = fork();

    if (child < 0)
        abort();
    if (child == 0) {
        test_die_with_parent();
        if (atexit(thread_handler_breaks))
            _exit(1);
        if (hangs && thread_start(&thread, 0, thread_hangs, NULL))
            _exit(1);
        if (hangs)
            thread_abandon(thread);
        thread_end_process(7);
    }
    if (waitpid(child, &status, 0) != child)
        abort();
    return status;
}

TEST_FLAGS(a_process_ends_beside_a_thread_that_hangs, TEST_NO_TORTURE)
{
    int status = thread_end_of_child(true);

    CHECK(t, WIFEXITED(status) && WEXITSTATUS(status) == 7);
out:;
}

TEST_FLAGS(exit_handlers_run_when_no_thread_hangs, TEST_NO_TORTURE)
{
    int status = thread_end_of_child(false);

    CHECK(t, WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
out:;
}
