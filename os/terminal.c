/*
 * terminal.c: takes the terminal for a picture, and gives it back. driver/cli/top.c calls it.
 *
 * The terminal is as it was before whenever the process ends or stops by a signal that can be
 * caught: the signals are blocked and read as keys are, so no picture is cut in two.
 */
#include "os/terminal.h"

#include "os/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define ENTER_SCREEN "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J"
#define LEAVE_SCREEN "\x1b[?25h\x1b[?1049l"
/* how long the next byte of a key may be late; the bytes of one key come at once */
#define KEY_PAUSE_MS  20
#define KEY_BYTES_MAX 8

/* Shows the screen of this program, with keys that come one by one. */
static void terminal_enter(const struct terminal *terminal)
{
    struct termios raw = terminal->before;

    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    /* A read never waits: Ctrl-C empties the input that poll has just reported. */
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    fputs(ENTER_SCREEN, stdout);
    fflush(stdout);
}

/* Shows the screen as it was before this program, with the terminal's own settings for keys. */
static void terminal_leave(const struct terminal *terminal)
{
    fputs(LEAVE_SCREEN, stdout);
    fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal->before);
}

/* Takes the terminal for this program. The signals that would end or stop the program are blocked
 * and come by a signalfd, so that terminal_key can leave the terminal first. */
int terminal_open(struct terminal *terminal, struct hvd_err *err)
{
    sigset_t signals;

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ||
        tcgetattr(STDIN_FILENO, &terminal->before))
        return err_set(
            err, HVD_E_STATE,
            "standard input or output is not a terminal; run this command in a terminal");
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGWINCH);
    sigaddset(&signals, SIGTSTP);
    terminal->signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (terminal->signals < 0)
        return err_set(err, HVD_E_LIMIT, "no file descriptor is left: %s; close other programs",
                       strerror(errno));
    sigprocmask(SIG_BLOCK, &signals, &terminal->mask_before);
    terminal_enter(terminal);
    return 0;
}

/* Gives the terminal back as it was before terminal_open, and unblocks the signals. */
void terminal_close(struct terminal *terminal)
{
    terminal_leave(terminal);
    close(terminal->signals);
    sigprocmask(SIG_SETMASK, &terminal->mask_before, NULL);
}

/* Gives the size of the terminal; 80 columns and 24 lines if it is not known. */
void terminal_size(uint32_t *ret_columns, uint32_t *ret_lines)
{
    struct winsize size;
    bool known = !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);

    *ret_columns = known && size.ws_col ? size.ws_col : 80;
    *ret_lines = known && size.ws_row ? size.ws_row : 24;
}

/* true: the locale says that the terminal shows UTF-8. */
bool terminal_is_utf8(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    const char *value = NULL;

    /* The first variable that is set counts, as in the C library. */
    for (size_t i = 0; i < ARRAY_SIZE(names) && (!value || !*value); i++)
        value = getenv(names[i]);
    return value && (strcasestr(value, "utf-8") || strcasestr(value, "utf8"));
}

/* Reads one key, whose bytes may come one by one. A byte that is not the beginning of a sequence is
 * the key itself. No byte: the terminal is gone (`hung`, or an error), or Ctrl-C has emptied the
 * input, and its signal comes next. */
static int terminal_read_key(bool hung)
{
    static const struct {
        const char *bytes;
        enum terminal_event key;
    } keys[] = {
        {"[A",   TERMINAL_UP       },
        { "OA",  TERMINAL_UP       },
        { "[B",  TERMINAL_DOWN     },
        { "OB",  TERMINAL_DOWN     },
        { "[5~", TERMINAL_PAGE_UP  },
        { "[6~", TERMINAL_PAGE_DOWN},
    };
    struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
    char bytes[KEY_BYTES_MAX + 1] = "";
    size_t count = 0;
    char key;
    ssize_t got = read(STDIN_FILENO, &key, 1);

    if (got != 1)
        return hung || got < 0 ? TERMINAL_END : TERMINAL_OTHER;
    if (key != '\x1b')
        return (unsigned char)key;
    while (count < KEY_BYTES_MAX && poll(&input, 1, KEY_PAUSE_MS) > 0 &&
           read(STDIN_FILENO, &bytes[count], 1) == 1) {
        count++;
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
            if (!strcmp(keys[i].bytes, bytes))
                return (int)keys[i].key;
        /* a sequence of bytes for a key ends with a byte from '@' on */
        if (count > 1 && bytes[count - 1] >= '@')
            break;
    }
    return count ? TERMINAL_OTHER : '\x1b';
}

/* Waits for a key or a signal until `until_us` of the monotonic clock. Returns the byte of the key,
 * or a value of enum terminal_event. */
int terminal_key(struct terminal *terminal, int64_t until_us)
{
    struct pollfd fds[] = {
        {.fd = terminal->signals, .events = POLLIN},
        { .fd = STDIN_FILENO,     .events = POLLIN},
    };
    int64_t left_us = until_us - clock_now_us();
    struct signalfd_siginfo info;
    int ready = poll(fds, ARRAY_SIZE(fds), left_us > 0 ? (int)(left_us / 1000) + 1 : 0);

    if (ready < 0)
        return errno == EINTR ? TERMINAL_OTHER : TERMINAL_END;
    if (!fds[0].revents)
        return fds[1].revents ? terminal_read_key(fds[1].revents & POLLHUP) : TERMINAL_TIMEOUT;
    if (read(terminal->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return TERMINAL_OTHER;
    /* Ctrl-Z: SIGTSTP is blocked, so SIGSTOP stops the process; it goes on here after SIGCONT. */
    if (info.ssi_signo == SIGTSTP) {
        terminal_leave(terminal);
        raise(SIGSTOP);
        terminal_enter(terminal);
        return TERMINAL_RESIZED;
    }
    return info.ssi_signo == SIGWINCH ? TERMINAL_RESIZED : TERMINAL_END;
}
