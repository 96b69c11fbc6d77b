/*
 * event_facts.h: the facts of an event (base/facts.h) as a text, "job=j TAB kind=... TAB
 * round=7". An event's line in memory and in events.log has this text behind its own,
 * after a tab, and each JSON of an event is made from it. So events that an earlier driver has
 * written down are told like new ones. A line of a driver that wrote no facts has none.
 */
#ifndef DRIVER_CONTROL_EVENT_FACTS_H
#define DRIVER_CONTROL_EVENT_FACTS_H

#include "base/facts.h"
#include "driver/control/json.h"

/* A longer text ends early: a field that has no room is left out, and the cause, the last, is
 * cut. */
#define EVENT_FACTS_MAX 640

/* Writes the facts; NULL: only the name of the job is known. */
void event_facts_write(const char *job, const struct facts *facts, char text[EVENT_FACTS_MAX]);

/* Writes the facts of a text into an open object. A field that is unknown or damaged is left out,
 * and so is the last field of a text that ends in a tab: its writer died inside that field. */
void event_facts_json(const char *text, struct json *json);

#endif
