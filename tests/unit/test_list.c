/*
 * test_list.c: base/list: order, removal while visiting, and agreement with an array.
 */
#include "base/list.h"
#include "base/rng.h"
#include "tests/lib/fixture.h"

struct item {
    int number;
    struct list link;
};

static struct item *item_of(struct list *link)
{
    return CONTAINER_OF(link, struct item, link);
}

static void make_items(struct item *items, int count)
{
    for (int i = 0; i < count; i++) {
        items[i].number = i;
        list_init(&items[i].link);
    }
}

/* The numbers in order as one decimal, read forwards; -1 when the way back says otherwise. */
static long long order(struct list *head)
{
    long long forwards = 0;
    long long backwards = 0;
    long long weight = 1;

    LIST_EACH (it, head)
        forwards = forwards * 10 + item_of(it)->number;
    for (struct list *it = head->prev; it != head; it = it->prev) {
        backwards += weight * item_of(it)->number;
        weight *= 10;
    }
    return forwards == backwards ? forwards : -1;
}

TEST(keeps_order)
{
    struct list head = LIST_INIT(head);
    struct item items[6];

    make_items(items, 6);
    CHECK(t, list_empty(&head));
    CHECK_INT(t, list_length(&head), ==, 0);
    list_append(&head, &items[2].link);
    CHECK(t, !list_empty(&head));
    list_append(&head, &items[3].link);
    list_insert_before(head.next, &items[1].link);
    list_insert_before(&items[3].link, &items[5].link);
    list_insert_before(&head, &items[4].link);
    CHECK_INT(t, order(&head), ==, 12534);
    CHECK_INT(t, list_length(&head), ==, 5);
}

TEST(removing_twice_is_harmless)
{
    struct list head;
    struct item items[4];

    list_init(&head);
    make_items(items, 4);
    list_remove(&items[1].link);
    for (int i = 1; i < 4; i++)
        list_append(&head, &items[i].link);
    list_remove(&items[2].link);
    list_remove(&items[2].link);
    CHECK(t, list_empty(&items[2].link));
    CHECK_INT(t, order(&head), ==, 13);
    list_remove(&items[1].link);
    list_remove(&items[3].link);
    CHECK(t, list_empty(&head));
    list_append(&head, &items[2].link);
    CHECK_INT(t, order(&head), ==, 2);
}

TEST(an_empty_list_is_not_visited)
{
    struct list head = LIST_INIT(head);
    int visited = 0;

    LIST_EACH (it, &head)
        visited++;
    LIST_EACH_SAFE (it, after, &head)
        visited++;
    CHECK_INT(t, visited, ==, 0);
}

TEST(a_visited_item_may_be_removed)
{
    struct list head = LIST_INIT(head);
    struct list others = LIST_INIT(others);
    struct item items[8];
    int visited = 0;

    make_items(items, 8);
    for (int i = 1; i < 8; i++)
        list_append(&head, &items[i].link);
    LIST_EACH_SAFE (it, after, &head) {
        visited++;
        if (item_of(it)->number % 2) {
            list_remove(it);
            list_insert_before(others.next, it);
        }
    }
    CHECK_INT(t, visited, ==, 7);
    CHECK_INT(t, order(&head), ==, 246);
    CHECK_INT(t, order(&others), ==, 7531);
    LIST_EACH_SAFE (it, after, &head)
        list_remove(it);
    CHECK(t, list_empty(&head));
}

#define MODEL_ITEMS 9

/* Where number stands in the model, or -1. */
static int model_find(const int *model, int count, int number)
{
    for (int i = 0; i < count; i++) {
        if (model[i] == number)
            return i;
    }
    return -1;
}

static int model_insert(int *model, int count, int at, int number)
{
    for (int i = count; i > at; i--)
        model[i] = model[i - 1];
    model[at] = number;
    return count + 1;
}

static int model_remove(int *model, int count, int at)
{
    for (int i = at; i < count - 1; i++)
        model[i] = model[i + 1];
    return count - 1;
}

/* The same random moves in a list and in an array that cannot be wrong. */
TEST(agrees_with_an_array)
{
    struct list head = LIST_INIT(head);
    struct item items[MODEL_ITEMS];
    int model[MODEL_ITEMS];
    int count = 0;
    struct rng rng;

    make_items(items, MODEL_ITEMS);
    rng_seed(&rng, 5);
    for (int step = 0; step < 20000; step++) {
        struct item *item = &items[rng_below(&rng, MODEL_ITEMS)];
        int at = model_find(model, count, item->number);
        long long expected = 0;

        if (at >= 0) {
            list_remove(&item->link);
            count = model_remove(model, count, at);
        } else if (count && rng_below(&rng, 3) == 0) {
            at = (int)rng_below(&rng, (uint64_t)count);
            list_insert_before(&items[model[at]].link, &item->link);
            count = model_insert(model, count, at, item->number);
        } else if (rng_below(&rng, 2)) {
            list_append(&head, &item->link);
            count = model_insert(model, count, count, item->number);
        } else {
            list_insert_before(head.next, &item->link);
            count = model_insert(model, count, 0, item->number);
        }
        for (int i = 0; i < count; i++)
            expected = expected * 10 + model[i];
        CHECK_INT(t, order(&head), ==, expected);
        CHECK_INT(t, list_length(&head), ==, count);
        CHECK_INT(t, list_empty(&head), ==, count == 0);
    }
}
