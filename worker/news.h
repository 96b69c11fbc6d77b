/*
 * news.h: the news of the running round, which the program asks for with hvd_news (a change of the
 * membership is coming, or the round is over), and what the program itself says about the round
 * (hvd_revoke, hvd_fail). struct news is a part of struct rounds, whose lock protects it.
 */
#ifndef WORKER_NEWS_H
#define WORKER_NEWS_H

#include "worker/rounds.h"

#include <stdatomic.h>

struct news {
    bool coming;     /* the session says that the membership is about to change */
    _Atomic int now; /* what hvd_news returns; may be read without the lock */
    int fd;          /* the eventfd of hvd_news_fd, readable while `now` is not 0; -1: none */
    char reason[ERR_TEXT_MAX]; /* the text of hvd_fail in this round; "": none */
};

void news_init(struct news *news);
void news_release(struct news *news);

/* Computes `now` anew, and makes the eventfd readable exactly if `now` is not 0. Called after each
 * change of a field on which the news depend. The caller holds the lock. */
void news_update(struct rounds *rounds);

/* Returns the eventfd, which is made when it is first asked for, so that a program that does not
 * call hvd_news_fd needs no descriptor for it. HVD_E_LIMIT: no descriptor is left. The caller holds
 * the lock. */
int news_open(struct news *news, struct hvd_err *err);

/* ---- rounds.c: the caller does not hold the lock ---- */

/* Notes whether a change of the membership is coming. The session's thread calls it. */
void rounds_watch(struct rounds *rounds, bool coming);

/* The results of hvd_news and hvd_news_fd. */
int rounds_news(struct rounds *rounds);
int rounds_news_fd(struct rounds *rounds, struct hvd_err *err);

/* Ends the running round for all members, without a failure. 0: the round is over, by this call or
 * by an earlier failure. HVD_E_STATE: train does not run, or was told to return. */
int rounds_revoke(struct rounds *rounds, const char *why, struct hvd_err *err) MUST_CHECK;

/* Keeps the text of hvd_fail, which says why train is about to return its code. HVD_E_STATE: train
 * does not run. */
int rounds_keep_reason(struct rounds *rounds, const char *text, struct hvd_err *err) MUST_CHECK;
/* Writes the text that rounds_keep_reason has kept in this round; false: there is none. */
bool rounds_reason(struct rounds *rounds, char text[ERR_TEXT_MAX]);

#endif
