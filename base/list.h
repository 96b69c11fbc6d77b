/*
 * list.h: an intrusive, circular, doubly linked list. The head is a struct list, too. An element
 * that is in no list points at itself, so removing an element twice is harmless.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include "base/base.h"

struct list {
    struct list *next;
    struct list *prev;
};

#define LIST_INIT(name)  \
    {                    \
        &(name), &(name) \
    }

/* Loops over the elements in order. In LIST_EACH_SAFE the body may remove the visited element. */
#define LIST_EACH(it, head) for (struct list *it = (head)->next; (it) != (head); (it) = (it)->next)
#define LIST_EACH_SAFE(it, after, head)                                       \
    for (struct list *it = (head)->next, *after = (it)->next; (it) != (head); \
         (it) = (after), (after) = (it)->next)

static inline void list_init(struct list *head)
{
    head->next = head;
    head->prev = head;
}

static inline bool list_empty(const struct list *head)
{
    return head->next == head;
}

/* Puts an element, which is in no list, before `where`; before the head means at the end. */
static inline void list_insert_before(struct list *where, struct list *element)
{
    element->next = where;
    element->prev = where->prev;
    where->prev->next = element;
    where->prev = element;
}

static inline void list_append(struct list *head, struct list *element)
{
    list_insert_before(head, element);
}

/* Takes an element out of its list; it then points at itself, so a second call does no harm. */
static inline void list_remove(struct list *element)
{
    element->next->prev = element->prev;
    element->prev->next = element->next;
    list_init(element);
}

static inline size_t list_length(const struct list *head)
{
    size_t length = 0;

    for (const struct list *it = head->next; it != head; it = it->next)
        length++;
    return length;
}

#endif
