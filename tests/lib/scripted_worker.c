/*
 * scripted_worker.c: a worker for tests, which carries out its arguments one after the other:
 *
 *     say TEXT       to standard output, with a newline
 *     pid            says its process id
 *     hold FIFO      reads the path of its page from FIFO; a thread holds the page's life futex
 *     release        that thread releases the futex, and ends
 *     leave          that thread ends and still holds the futex
 *     memory MIB     touches so much memory
 *     wait FIFO      until a process opens FIFO for writing and closes it
 *     raise NUMBER   a signal to itself
 *     exec ARG...    becomes another program
 *     exit CODE
 */
#include "worker/io/life.h"

#include "base/panic.h"
#include "base/text.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static struct {
    struct page *page;
    pthread_t thread;
    sem_t held;
    sem_t go;
    bool release;
} life;

static void read_fifo(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    ssize_t got;

    ASSERT(fd >= 0);
    while (length + 1 < size && (got = read(fd, text + length, size - 1 - length)) > 0)
        length += (size_t)got;
    text[length] = '\0';
    close(fd);
}

static void *live(void *arg)
{
    (void)arg;
    if (life_hold(life.page))
        abort();
    sem_post(&life.held);
    while (sem_wait(&life.go))
        ;
    if (life.release)
        life_release(life.page);
    return NULL;
}

static uint64_t number(const char *text)
{
    uint64_t value = 0;

    ASSERT(!text_parse_u64((struct span){ text, strlen(text) }, 0, UINT32_MAX, "number", &value,
                           NULL));
    return value;
}

static void say(const char *text)
{
    printf("%s\n", text);
    fflush(stdout);
}

/* Carries out a verb without an argument. false: the verb is none of these. */
static bool do_plain(const char *verb)
{
    char text[64];

    if (!strcmp(verb, "pid")) {
        snprintf(text, sizeof(text), "pid %d", (int)getpid());
        say(text);
    } else if (!strcmp(verb, "release") || !strcmp(verb, "leave")) {
        life.release = *verb == 'r';
        sem_post(&life.go);
        pthread_join(life.thread, NULL);
    } else {
        return false;
    }
    return true;
}

static void do_one(const char *verb, char **argument)
{
    char text[256];

    if (!strcmp(verb, "say")) {
        say(*argument);
    } else if (!strcmp(verb, "hold")) {
        char path[256];
        int fd;

        read_fifo(*argument, path, sizeof(path));
        fd = open(path, O_RDWR | O_CLOEXEC);
        ASSERT(fd >= 0);
        life.page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        ASSERT(life.page != MAP_FAILED && life.page->magic == PAGE_MAGIC);
        close(fd);
        sem_init(&life.held, 0, 0);
        sem_init(&life.go, 0, 0);
        ASSERT(!pthread_create(&life.thread, NULL, live, NULL));
        while (sem_wait(&life.held))
            ;
    } else if (!strcmp(verb, "memory")) {
        size_t bytes = (size_t)number(*argument) << 20;
        char *memory =
            mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        ASSERT(memory != MAP_FAILED);
        memset(memory, 1, bytes);
    } else if (!strcmp(verb, "wait")) {
        read_fifo(*argument, text, sizeof(text));
    } else if (!strcmp(verb, "raise")) {
        raise((int)number(*argument));
    } else if (!strcmp(verb, "exec")) {
        execvp(*argument, argument);
        abort();
    } else {
        ASSERT(!strcmp(verb, "exit"));
        _exit((int)number(*argument));
    }
}

int main(int argc, char **argv)
{
    const struct rlimit none = { 0, 0 };

    setrlimit(RLIMIT_CORE, &none);
    for (int i = 1; i < argc; i++)
        if (!do_plain(argv[i])) {
            ASSERT(i + 1 < argc);
            do_one(argv[i], argv + i + 1);
            i++;
        }
    return 0;
}
