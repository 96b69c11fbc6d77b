/*
 * event_facts.h: the facts of an event (base/facts.h) as a text, "job=j TAB kind=... TAB round=7".
 * A line of the event log has this text behind its own text, after a tab, both in memory and in
 * events.log; and each JSON of an event is made from it. So events of an earlier driver are shown
 * like new ones. Lines of old drivers, which wrote no facts, have no such text.
 */
#ifndef DRIVER_CONTROL_EVENT_FACTS_H
#define DRIVER_CONTROL_EVENT_FACTS_H

#include "base/facts.h"
#include "driver/control/json.h"

/* The size of the text. A field that has no room is left out; the last field, the cause, is cut. */
#define EVENT_FACTS_MAX 640

/* Writes the name of the job and the facts of an event. facts NULL: only the name of the job is
 * known. */
void event_facts_write(const char *job, const struct facts *facts, char text[EVENT_FACTS_MAX]);

/* Writes the facts in `text` as fields of an open JSON object. A field that is unknown or damaged
 * is left out. If the text ends in a tab, its last field is left out too: the driver that wrote it
 * has died inside this field. */
void event_facts_json(const char *text, struct json *json);

#endif
