/*
 * autopsy_text.h: an autopsy (autopsy_file.h) for operators, in one line or whole, and for
 * programs. Names in the JSON stay as they are. The output of the worker is passed on as it is:
 * the caller makes it fit for a terminal (base/text_show.h).
 */
#ifndef DRIVER_CONTROL_AUTOPSY_TEXT_H
#define DRIVER_CONTROL_AUTOPSY_TEXT_H

#include "driver/control/autopsy_file.h"
#include "driver/control/json.h"

/* Both append lines. 0, or the codes of buf. */
int autopsy_text_line(const struct autopsy *autopsy, struct buf *out) MUST_CHECK;
int autopsy_text_whole(const struct autopsy *autopsy, struct buf *out) MUST_CHECK;

/* Adds an object to a list. */
void autopsy_text_json(const struct autopsy *autopsy, struct json *json);

#endif
