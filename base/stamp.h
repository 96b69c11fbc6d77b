/*
 * stamp.h: moments as text, read into microseconds since 1970, UTC. time_stamp in base/time.h
 * writes the form that stamp_read reads.
 */
#ifndef BASE_STAMP_H
#define BASE_STAMP_H

#include "base/text.h"

/* Reads "2026-11-21T09:30:01Z", also with decimals and with an offset. false: no such text. */
bool stamp_read(struct span text, int64_t *ret_wall_us);

/* Reads "Mon, 19 Sep 2016 18:29:47 GMT", the form of dates in HTTP. false: no such text. */
bool stamp_read_http(struct span text, int64_t *ret_wall_us);

#endif
