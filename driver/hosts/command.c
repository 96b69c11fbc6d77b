#include "driver/hosts/command.h"

#include "base/mem.h"
#include "base/time.h"
#include "os/process.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define READ_BYTES 65536
/* What is read after its end, at most: a pipe holds less, and an orphan may go on printing. */
#define DRAIN_READS 32

/* One end of a pipe, in non-blocking mode, and the event that waits for it. */
struct channel {
    int fd;
    struct event event;
};

/*
 *     running ── exits ─────────────────────────► ended
 *        └── too late, too long ... ──► killed ──────┘   (also COMMAND_REAP_US later)
 */
struct command {
    struct event_base *base;
    struct command_ops ops;
    void *arg;
    pid_t pid;        /* 0: reaped, or given up */
    int report;       /* whether the program runs: see process_report */
    const char *name; /* borrowed, as its owner's argv[0] */
    struct channel end;
    struct channel in;
    struct channel out;
    struct channel err;
    struct event timer;
    bool killed;
    enum command_how how; /* of one that was killed by us */
    struct hvd_err failure;
    int64_t linger_us;
    bool lingers; /* the timer runs for this */
    char *input;
    size_t input_length;
    size_t input_sent;
    struct buf output;
    struct complaint complaint;
};

static void channel_init(struct channel *channel)
{
    channel->fd = -1;
}

static void channel_close(struct channel *channel)
{
    if (channel->fd < 0)
        return;
    if (event_initialized(&channel->event))
        event_del(&channel->event);
    close(channel->fd);
    channel->fd = -1;
}

static bool channel_wait(struct channel *channel, struct command *command, short what,
                         event_callback_fn called)
{
    return !event_assign(&channel->event, command->base, channel->fd, (short)(what | EV_PERSIST),
                         called, command) &&
           !event_add(&channel->event, NULL);
}

static bool set_timer(struct command *command, int64_t us)
{
    const struct timeval wait = { .tv_sec = (time_t)(us / TIME_S),
                                  .tv_usec = (suseconds_t)(us % TIME_S) };

    return us == TIME_NEVER || !event_add(&command->timer, &wait);
}

/* Also what the program has left behind. As long as the first of them is not reaped nobody else can
 * have its number. */
static void kill_group(const struct command *command)
{
    if (command->pid)
        (void)kill(-command->pid, SIGKILL);
}

static void end_it(struct command *command, enum command_how how)
{
    if (command->killed)
        return;
    command->killed = true;
    command->how = how;
    kill_group(command);
    event_del(&command->timer);
    (void)set_timer(command, COMMAND_REAP_US);
}

static void out_of_memory(struct command *command)
{
    err_set(&command->failure, HVD_E_NOMEM, "%s: no memory to run it", command->name);
    end_it(command, COMMAND_FAILED);
}

static void write_input(evutil_socket_t fd, short what, void *arg)
{
    struct command *command = arg;
    ssize_t sent;

    (void)what;
    sent = write(fd, command->input + command->input_sent,
                 command->input_length - command->input_sent);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (sent > 0)
        command->input_sent += (size_t)sent;
    if (sent < 0 || command->input_sent == command->input_length)
        channel_close(&command->in); /* one that does not read says by its end what it thinks */
}

/* Once; 0 when nothing more will come, negative when nothing is there. */
static ssize_t read_once(int fd, void *bytes, size_t room)
{
    ssize_t got = read(fd, bytes, room);

    return got < 0 && errno != EAGAIN && errno != EINTR ? 0 : got;
}

static ssize_t read_output(struct command *command)
{
    struct buf *output = &command->output;
    size_t room = output->max - output->length;
    ssize_t got;

    if (room > READ_BYTES)
        room = READ_BYTES;
    if (buf_reserve(output, room)) {
        out_of_memory(command);
        return 0;
    }
    got = read_once(command->out.fd, output->data + output->length, room);
    if (got <= 0)
        return got;
    output->length += (size_t)got;
    output->data[output->length] = '\0';
    if (command->ops.output)
        command->ops.output(command->arg, output);
    if (output->length < output->max)
        return got;
    end_it(command, COMMAND_TOO_LONG);
    return 0;
}

static ssize_t read_complaint(struct command *command)
{
    char bytes[LIMIT_COMPLAINT_BYTES];
    ssize_t got = read_once(command->err.fd, bytes, sizeof(bytes));

    if (got <= 0)
        return got;
    complaint_add(&command->complaint, bytes, (size_t)got);
    if (command->ops.complained)
        command->ops.complained(command->arg, &command->complaint);
    return got;
}

static void output_readable(evutil_socket_t fd, short what, void *arg)
{
    struct command *command = arg;

    (void)fd;
    (void)what;
    if (read_output(command) != 0)
        return;
    channel_close(&command->out);
    if (command->killed || command->linger_us == TIME_NEVER)
        return;
    command->lingers = true;
    if (!set_timer(command, command->linger_us))
        out_of_memory(command);
}

static void complaint_readable(evutil_socket_t fd, short what, void *arg)
{
    struct command *command = arg;

    (void)fd;
    (void)what;
    if (read_complaint(command) == 0)
        channel_close(&command->err);
}

static void drain(struct command *command)
{
    for (int i = 0; i < DRAIN_READS && command->out.fd >= 0 && read_output(command) > 0; i++)
        ;
    for (int i = 0; i < DRAIN_READS && command->err.fd >= 0 && read_complaint(command) > 0; i++)
        ;
}

static void set_end(struct command *command, struct command_end *end)
{
    int status;
    bool reaped = waitpid(command->pid, &status, WNOHANG) == command->pid;

    if (command->killed) {
        end->how = command->how;
    } else if (process_report(command->report, &command->failure)) {
        end->how = COMMAND_FAILED;
    } else if (!reaped) {
        end->how = COMMAND_LOST;
    } else if (WIFSIGNALED(status)) {
        end->how = COMMAND_SIGNALED;
        end->value = WTERMSIG(status);
    } else {
        end->how = COMMAND_EXITED;
        end->value = WEXITSTATUS(status);
    }
    command->pid = 0;
    if (end->how == COMMAND_FAILED)
        end->why = command->failure.text;
}

static void close_all(struct command *command)
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

static void finish(struct command *command)
{
    struct command_end end = { .output = &command->output, .complaint = &command->complaint };

    kill_group(command);
    drain(command);
    set_end(command, &end);
    close_all(command);
    command->ops.ended(command->arg, &end);
}

static void ended(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    finish(arg);
}

/* The second time it was killed and is still there: nobody can wait for it. */
static void time_is_up(evutil_socket_t fd, short what, void *arg)
{
    struct command *command = arg;

    (void)fd;
    (void)what;
    if (command->killed)
        finish(command);
    else
        end_it(command, command->lingers ? COMMAND_LINGERED : COMMAND_TOO_LATE);
}

/* Ours is the non-blocking end; the program's end is for it alone, and closed once it runs. */
static int open_pipe(struct channel *channel, bool we_write, int *ret_theirs)
{
    int fds[2];
    int ours = we_write ? 1 : 0;

    if (pipe2(fds, O_CLOEXEC))
        return -1;
    channel->fd = fds[ours];
    *ret_theirs = fds[!ours];
    return fcntl(channel->fd, F_SETFL, O_NONBLOCK);
}

static int open_pipes(struct command *command, const struct command_spec *spec, int theirs[3])
{
    if (spec->input && open_pipe(&command->in, true, &theirs[0]))
        return -1;
    if (spec->output_max && open_pipe(&command->out, false, &theirs[1]))
        return -1;
    return open_pipe(&command->err, false, &theirs[2]);
}

static bool watch(struct command *command, const struct command_spec *spec)
{
    command->end.fd = process_watch(command->pid);
    return command->end.fd >= 0 && channel_wait(&command->end, command, EV_READ, ended) &&
           channel_wait(&command->err, command, EV_READ, complaint_readable) &&
           (command->out.fd < 0 ||
            channel_wait(&command->out, command, EV_READ, output_readable)) &&
           (command->in.fd < 0 || channel_wait(&command->in, command, EV_WRITE, write_input)) &&
           set_timer(command, spec->limit_us);
}

static int start(struct command *command, const struct command_spec *spec, struct hvd_err *err)
{
    int theirs[3] = { -1, -1, -1 };
    struct process_spec process = { .argv = spec->argv,
                                    .group = true,
                                    .dies_with_us = spec->dies_with_us };
    int rc;

    if (open_pipes(command, spec, theirs)) {
        rc = err_set(err, HVD_E_LIMIT, "%s: no pipe to start it: %s; raise ulimit -n",
                     spec->argv[0], strerror(errno));
    } else {
        process.in = theirs[0];
        process.out = theirs[1];
        process.err = theirs[2];
        rc = process_start(&process, &command->pid, &command->report, err);
    }
    for (int i = 0; i < 3; i++)
        if (theirs[i] >= 0)
            close(theirs[i]);
    if (!rc && !watch(command, spec))
        rc = err_set(err, HVD_E_LIMIT, "%s: cannot be watched: %s; raise ulimit -n, or free memory",
                     spec->argv[0], strerror(errno));
    return rc;
}

static struct command *make(struct event_base *base, const struct command_spec *spec,
                            const struct command_ops *ops, void *arg)
{
    struct command *command = mem_zalloc(sizeof(*command));

    if (!command)
        return NULL;
    command->base = base;
    command->ops = *ops;
    command->arg = arg;
    command->linger_us = spec->linger_us;
    command->name = spec->argv[0];
    command->report = -1;
    channel_init(&command->end);
    channel_init(&command->in);
    channel_init(&command->out);
    channel_init(&command->err);
    complaint_init(&command->complaint);
    buf_init(&command->output, spec->output_max + 1);
    event_assign(&command->timer, base, -1, 0, time_is_up, command);
    if (spec->input) {
        command->input_length = strlen(spec->input);
        command->input = mem_strndup(spec->input, command->input_length);
        if (!command->input) {
            command_free(command);
            return NULL;
        }
    }
    return command;
}

int command_run(struct event_base *base, const struct command_spec *spec,
                const struct command_ops *ops, void *arg, struct command **ret_command,
                struct hvd_err *err)
{
    struct command *command = make(base, spec, ops, arg);
    int rc;

    if (!command)
        return err_set(err, HVD_E_NOMEM, "%s: no memory to start it", spec->argv[0]);
    rc = start(command, spec, err);
    if (rc)
        command_free(command);
    else
        *ret_command = command;
    return rc;
}

static void kill_and_reap(struct command *command)
{
    struct pollfd watched = { .fd = command->end.fd, .events = POLLIN };
    int flags = command->end.fd < 0 ? 0 : WNOHANG; /* one that cannot be watched has just begun */

    if (!command->pid)
        return;
    kill_group(command);
    if (watched.fd >= 0)
        while (poll(&watched, 1, (int)(COMMAND_REAP_US / TIME_MS)) < 0 && errno == EINTR)
            ;
    while (waitpid(command->pid, NULL, flags) < 0 && errno == EINTR)
        ;
}

void command_free(struct command *command)
{
    if (!command)
        return;
    kill_and_reap(command);
    close_all(command);
    buf_release(&command->output);
    if (command->input)
        explicit_bzero(command->input, command->input_length); /* it may hold a key */
    mem_free(command->input);
    mem_free(command);
}

const char *command_how(const struct command_spec *spec, const struct command_end *end,
                        char text[COMMAND_HOW_MAX])
{
    int64_t us = end->how == COMMAND_LINGERED ? spec->linger_us : spec->limit_us;
    char time[TIME_TEXT_MAX];

    switch (end->how) {
    case COMMAND_EXITED: snprintf(text, COMMAND_HOW_MAX, "exit code %d", end->value); break;
    case COMMAND_SIGNALED: snprintf(text, COMMAND_HOW_MAX, "ended by signal %d", end->value); break;
    case COMMAND_TOO_LATE:
        snprintf(text, COMMAND_HOW_MAX, "not done within %s, and killed", time_format(us, time));
        break;
    case COMMAND_LINGERED:
        snprintf(text, COMMAND_HOW_MAX, "still there %s after the end of its output, and killed",
                 time_format(us, time));
        break;
    case COMMAND_TOO_LONG:
        snprintf(text, COMMAND_HOW_MAX, "printed more than %zu bytes, and killed",
                 spec->output_max);
        break;
    case COMMAND_FAILED: return end->why;
    case COMMAND_LOST: snprintf(text, COMMAND_HOW_MAX, "ended in an unknown way"); break;
    }
    return text;
}
