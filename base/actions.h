/*
 * actions.h: the list that one step of a pure core fills: actions in their order, and the memory to
 * which the actions point. The cores of driver, agent and worker have one list type each:
 *
 *   ACTION_LIST(agent_action_list, struct agent_action, SIZE_MAX / 2)
 *
 * declares struct agent_action_list, a VEC of actions whose memory is at most the last argument in
 * bytes, and its functions agent_action_list_init, agent_action_list_clear and
 * agent_action_list_release (NULL is fine). `failed` is set when no memory is left: then actions
 * are missing in the list.
 */
#ifndef BASE_ACTIONS_H
#define BASE_ACTIONS_H

#include "base/arena.h"
#include "base/vec.h"

#define ACTION_LIST(list_name, action_type, memory_max)            \
    struct list_name {                                             \
        struct VEC(action_type);                                   \
        struct arena memory;                                       \
        bool failed;                                               \
    };                                                             \
    static inline void list_name##_init(struct list_name *list)    \
    {                                                              \
        *list = (struct list_name){ .failed = false };             \
        arena_init(&list->memory, memory_max);                     \
    }                                                              \
    static inline void list_name##_clear(struct list_name *list)   \
    {                                                              \
        list->count = 0;                                           \
        list->failed = false;                                      \
        arena_release(&list->memory);                              \
    }                                                              \
    static inline void list_name##_release(struct list_name *list) \
    {                                                              \
        if (list) {                                                \
            VEC_RELEASE(list);                                     \
            arena_release(&list->memory);                          \
        }                                                          \
    }

#endif
