/*
 * command.c: a child process with pipes on the event loop. Discovery runs its scripts with this
 * file, and the launcher runs ssh and local agents. ops.ended is called once, after the program's
 * process group was killed and the pipes were read. After COMMAND_REAP_US a program that the kernel
 * does not let die is given up.
 */
#include "os/command/command.h"

#include "base/mem.h"
#include "base/text.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/process.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define READ_BYTES 65536
/* The most reads of each pipe after the end of the program. A pipe holds fewer bytes than these
 * reads can take; the limit is needed because an orphan of the program may go on printing. */
#define DRAIN_READS 32

/* A descriptor of the event loop: our end of a pipe, in non-blocking mode, or the pidfd; and the
 * event that waits for it. */
struct channel {
    int fd;
    struct event event;
};

/*
 * The life of a program (after COMMAND_REAP_US a killed program counts as ended):
 *
 *     running ── exits ─────────────────────────► ended
 *        └── too late, too long ... ──► killed ──────┘   (or COMMAND_REAP_US later)
 */
struct command {
    struct event_base *base;
    struct command_ops ops;
    void *arg;
    pid_t pid;          /* of the program; 0: it was reaped, or counts as ended */
    int report;         /* a pipe from which process_report reads whether the program runs */
    const char *name;   /* argv[0]; borrowed from the owner */
    struct channel end; /* the pidfd of the program: readable when the program has ended */
    struct channel in;  /* our end of the program's standard input */
    struct channel out; /* our end of the program's standard output */
    struct channel err; /* our end of the program's standard error */
    struct event timer;
    bool killed;
    enum command_how how; /* the reason why the program was killed */
    struct hvd_err failure;
    int64_t linger_us; /* how long the program may run after it has closed its output */
    bool lingers;      /* the output is closed: the timer measures linger_us */
    struct {
        char *text; /* the input of the program; may hold a key */
        size_t length;
        size_t sent;
    } input;
    struct buf output;
    struct stderr_tail stderr_tail;
    size_t stderr_max; /* more bytes of standard error end the program; 0: no limit */
    size_t stderr_got; /* bytes of standard error that were read */
};

/* Closes our end of a pipe, or the pidfd; a closed channel is left as it is. */
static void channel_close(struct channel *channel)
{
    if (channel->fd < 0)
        return;
    if (event_initialized(&channel->event))
        event_del(&channel->event);
    close(channel->fd);
    channel->fd = -1;
}

/* Waits for `what` (EV_READ or EV_WRITE) on the channel's descriptor: the event loop calls `called`
 * each time. false: no memory is left. */
static bool channel_wait(struct channel *channel, struct command *command, short what,
                         event_callback_fn called)
{
    return !event_assign(&channel->event, command->base, channel->fd, (short)(what | EV_PERSIST),
                         called, command) &&
           !event_add(&channel->event, NULL);
}

/* Starts the command's timer; with TIME_NEVER no timer is started, which is no failure. false: no
 * memory is left. */
static bool command_set_timer(struct command *command, int64_t us)
{
    const struct timeval wait = clock_timeval(us);

    return us == TIME_NEVER || !event_add(&command->timer, &wait);
}

/* Kills the program and all its children. As long as the program is not reaped, the kernel gives
 * the number of its process group to no other process. */
static void command_kill_group(const struct command *command)
{
    if (command->pid)
        (void)kill(-command->pid, SIGKILL);
}

/* Kills the program with its children, and notes why; the first reason counts. If the program is
 * not dead after COMMAND_REAP_US, command_on_timer gives it up. */
static void command_kill(struct command *command, enum command_how how)
{
    if (command->killed)
        return;
    command->killed = true;
    command->how = how;
    command_kill_group(command);
    event_del(&command->timer);
    (void)command_set_timer(command, COMMAND_REAP_US);
}

/* Kills the program because this process has no memory left; ops.ended gets COMMAND_FAILED. */
static void command_out_of_memory(struct command *command)
{
    err_set(&command->failure, HVD_E_NOMEM,
            "%s: no memory to run this program; free memory on this host", command->name);
    command_kill(command, COMMAND_FAILED);
}

/* Writes the next bytes of the input to the program, and closes the pipe after the last byte. */
static void command_on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct command *command = arg;
    ssize_t sent;

    (void)what;
    sent = write(fd, command->input.text + command->input.sent,
                 command->input.length - command->input.sent);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (sent > 0)
        command->input.sent += (size_t)sent;
    if (sent < 0 || command->input.sent == command->input.length)
        /* a program that does not read its input is judged by how it ends */
        channel_close(&command->in);
}

/* Reads from a pipe: the number of bytes; 0 at the end of the pipe or on an error; negative when no
 * byte is there now. */
static ssize_t channel_read(int fd, void *bytes, size_t room)
{
    ssize_t got = read(fd, bytes, room);

    return got < 0 && errno != EAGAIN && errno != EINTR ? 0 : got;
}

/* Reads standard output. Returns the number of bytes; 0 at the end of the pipe, or after the
 * program was killed; negative: no byte is there now. The buffer has room for one byte more than
 * the program may print, so a full buffer ends the program; bytes that the owner's callback has
 * consumed do not count. */
static ssize_t command_read_output(struct command *command)
{
    struct buf *output = &command->output;
    size_t room = output->max - output->length;
    ssize_t got;

    if (room > READ_BYTES)
        room = READ_BYTES;
    if (buf_reserve(output, room)) {
        command_out_of_memory(command);
        return 0;
    }
    got = channel_read(command->out.fd, output->data + output->length, room);
    if (got <= 0)
        return got;
    output->length += (size_t)got;
    output->data[output->length] = '\0';
    if (command->ops.output)
        command->ops.output(command->arg, output);
    if (output->length < output->max)
        return got;
    command_kill(command, COMMAND_TOO_LONG);
    return 0;
}

/* Reads standard error. Returns the number of bytes; 0 at the end of the pipe, or when the program
 * was killed because it has printed more than `stderr_max` bytes; negative: no byte is there
 * now. */
static ssize_t command_read_stderr(struct command *command)
{
    char bytes[LIMIT_STDERR_TAIL_BYTES];
    ssize_t got = channel_read(command->err.fd, bytes, sizeof(bytes));

    if (got <= 0)
        return got;
    stderr_tail_add(&command->stderr_tail, bytes, (size_t)got);
    if (command->ops.stderr_grew)
        command->ops.stderr_grew(command->arg, &command->stderr_tail);
    if (!command->stderr_max || (command->stderr_got += (size_t)got) <= command->stderr_max)
        return got;
    command_kill(command, COMMAND_TOO_LONG);
    return 0;
}

/* Closes all descriptors of the command, and stops its timer. */
static void command_close(struct command *command)
{
    channel_close(&command->end);
    channel_close(&command->in);
    channel_close(&command->out);
    channel_close(&command->err);
    event_del(&command->timer);
    if (command->report >= 0)
        close(command->report);
    command->report = -1;
}

/* Ends the command: kills the process group, reads the rest of the pipes, and calls ops.ended. */
static void command_finish(struct command *command)
{
    struct command_end end = { .output = &command->output, .stderr_tail = &command->stderr_tail };
    bool reaped;
    int status;

    command_kill_group(command);
    for (int i = 0; i < DRAIN_READS && command->out.fd >= 0; i++)
        if (command_read_output(command) <= 0)
            break;
    for (int i = 0; i < DRAIN_READS && command->err.fd >= 0; i++)
        if (command_read_stderr(command) <= 0)
            break;
    reaped = waitpid(command->pid, &status, WNOHANG) == command->pid;
    if (command->killed) {
        end.how = command->how;
    } else if (process_report(command->report, &command->failure)) {
        end.how = COMMAND_FAILED;
    } else if (!reaped) {
        end.how = COMMAND_LOST;
    } else if (WIFSIGNALED(status)) {
        end.how = COMMAND_SIGNALED;
        end.value = WTERMSIG(status);
    } else {
        end.how = COMMAND_EXITED;
        end.value = WEXITSTATUS(status);
    }
    command->pid = 0;
    if (end.how == COMMAND_FAILED)
        end.why = command->failure.text;
    command_close(command);
    command->ops.ended(command->arg, &end);
}

/* The program has ended, or its standard error or standard output is readable. A read of 0 bytes is
 * the end of a pipe. After the end of its output the program may still run for `linger_us`. */
static void command_on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct command *command = arg;

    (void)what;
    if (fd == command->end.fd) {
        command_finish(command);
        return;
    }
    if (fd == command->err.fd) {
        if (command_read_stderr(command) == 0)
            channel_close(&command->err);
        return;
    }
    if (command_read_output(command) != 0)
        return;
    channel_close(&command->out);
    if (command->killed || command->linger_us == TIME_NEVER)
        return;
    command->lingers = true;
    if (!command_set_timer(command, command->linger_us))
        command_out_of_memory(command);
}

/* A time limit has passed. Which one depends on the state: the end after SIGKILL (`killed`), the
 * time after the end of the output (`lingers`), or the whole time of the program. */
static void command_on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct command *command = arg;

    (void)fd;
    (void)what;
    /* The program was killed COMMAND_REAP_US ago and is not dead yet: its end is not waited for. */
    if (command->killed)
        command_finish(command);
    else
        command_kill(command, command->lingers ? COMMAND_LINGERED : COMMAND_TOO_LATE);
}

/* Opens a pipe. Our end is non-blocking. The program's end is closed in this process once the
 * program has been started. `we_write`: our end is the one for writing. *ret_theirs is the
 * program's end. */
static int channel_open(struct channel *channel, bool we_write, int *ret_theirs)
{
    int fds[2];
    int ours = we_write ? 1 : 0;

    if (pipe2(fds, O_CLOEXEC))
        return -1;
    channel->fd = fds[ours];
    *ret_theirs = fds[!ours];
    return fcntl(channel->fd, F_SETFL, O_NONBLOCK);
}

/* Starts the program and waits for its end, its pipes and its time limit. After a failure
 * command_free closes what was opened. */
static int command_start(struct command *command, const struct command_spec *spec,
                         struct hvd_err *err)
{
    int theirs[3] = { -1, -1, -1 };
    int rc = 0;

    /* true: this process writes to the pipe; false: it reads */
    if ((spec->input && channel_open(&command->in, true, &theirs[0])) ||
        (spec->output_max && channel_open(&command->out, false, &theirs[1])) ||
        channel_open(&command->err, false, &theirs[2])) {
        rc = err_set(err, HVD_E_LIMIT,
                     "%s: no pipe for this program: %s; raise the limit of open files (ulimit -n)",
                     spec->argv[0], strerror(errno));
    } else {
        const struct process_spec process = { .argv = spec->argv,
                                              .envp = spec->envp,
                                              .in = theirs[0],
                                              .out = theirs[1],
                                              .err = theirs[2],
                                              .group = true,
                                              .dies_with_us = spec->dies_with_us };

        rc = process_start(&process, &command->pid, &command->report, err);
    }
    for (int i = 0; i < 3; i++)
        if (theirs[i] >= 0)
            close(theirs[i]);
    if (rc)
        return rc;
    command->end.fd = process_watch(command->pid);
    if (command->end.fd < 0 ||
        !channel_wait(&command->end, command, EV_READ, command_on_readable) ||
        !channel_wait(&command->err, command, EV_READ, command_on_readable) ||
        (command->out.fd >= 0 &&
         !channel_wait(&command->out, command, EV_READ, command_on_readable)) ||
        (command->in.fd >= 0 &&
         !channel_wait(&command->in, command, EV_WRITE, command_on_writable)) ||
        !command_set_timer(command, spec->limit_us))
        rc = err_set(err, HVD_E_LIMIT,
                     "%s: the program cannot be watched: %s; raise the limit of open files (ulimit "
                     "-n), or free memory on this host",
                     spec->argv[0], strerror(errno));
    return rc;
}

/* Makes the command and starts the program. A program that cannot be executed is reported by
 * `ended` later. */
int command_run(struct event_base *base, const struct command_spec *spec,
                const struct command_ops *ops, void *arg, struct command **ret_command,
                struct hvd_err *err)
{
    struct command *command = mem_zalloc(sizeof(*command));
    int rc = 0;

    if (!command)
        return err_set(err, HVD_E_NOMEM,
                       "%s: no memory to start this program; free memory on this host",
                       spec->argv[0]);
    command->base = base;
    command->ops = *ops;
    command->arg = arg;
    command->linger_us = spec->linger_us;
    command->stderr_max = spec->stderr_max;
    command->name = spec->argv[0];
    command->report = -1;
    command->end.fd = command->in.fd = command->out.fd = command->err.fd = -1;
    buf_init(&command->output, spec->output_max + 1);
    event_assign(&command->timer, base, -1, 0, command_on_timer, command);
    if (spec->input) {
        command->input.length = strlen(spec->input);
        command->input.text = mem_strndup(spec->input, command->input.length);
        if (!command->input.text)
            rc = err_set(err, HVD_E_NOMEM,
                         "%s: no memory to start this program; free memory on this host",
                         spec->argv[0]);
    }
    if (!rc)
        rc = command_start(command, spec, err);
    if (rc)
        command_free(command);
    else
        *ret_command = command;
    return rc;
}

/* Kills a program that still runs, waits a moment for its end, and frees the command. The input is
 * wiped, because it may hold a key. */
void command_free(struct command *command)
{
    struct pollfd watched;

    if (!command)
        return;
    if (command->pid) {
        command_kill_group(command);
        watched = (struct pollfd){ .fd = command->end.fd, .events = POLLIN };
        if (watched.fd >= 0)
            (void)TEMP_FAILURE_RETRY(poll(&watched, 1, (int)(COMMAND_REAP_US / TIME_MS)));
        /* The descriptor watched.fd is missing if process_watch has failed. The program was then
         * killed just after its start, so it dies at once, and this wait for it may block. */
        (void)TEMP_FAILURE_RETRY(waitpid(command->pid, NULL, watched.fd < 0 ? 0 : WNOHANG));
    }
    command_close(command);
    buf_release(&command->output);
    if (command->input.text)
        explicit_bzero(command->input.text, command->input.length);
    mem_free(command->input.text);
    mem_free(command);
}

/* Returns in words how the program has ended. The words stand in `text`; for COMMAND_FAILED they
 * are end->why. */
const char *command_how(const struct command_spec *spec, const struct command_end *end,
                        char text[COMMAND_HOW_MAX])
{
    int64_t us = end->how == COMMAND_LINGERED ? spec->linger_us : spec->limit_us;
    char time[TIME_TEXT_MAX], signal[TEXT_SIGNAL_MAX];

    switch (end->how) {
    case COMMAND_EXITED: snprintf(text, COMMAND_HOW_MAX, "exit code %d", end->value); break;
    case COMMAND_SIGNALED:
        snprintf(text, COMMAND_HOW_MAX, "ended by %s", text_signal(end->value, signal));
        break;
    case COMMAND_TOO_LATE:
        snprintf(text, COMMAND_HOW_MAX, "did not end within %s, and was killed",
                 time_format(us, time));
        break;
    case COMMAND_LINGERED:
        snprintf(text, COMMAND_HOW_MAX, "still ran %s after the end of its output, and was killed",
                 time_format(us, time));
        break;
    case COMMAND_TOO_LONG:
        snprintf(text, COMMAND_HOW_MAX, "printed more than %zu bytes, and was killed",
                 spec->output_max ? spec->output_max : spec->stderr_max);
        break;
    case COMMAND_FAILED: return end->why;
    case COMMAND_LOST: snprintf(text, COMMAND_HOW_MAX, "ended in an unknown way"); break;
    }
    return text;
}
