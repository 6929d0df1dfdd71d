#include "executor/marks.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"

#define FIRST_CAP 16

void
exec_marks_init(struct exec_marks *marks)
{
    *marks = (struct exec_marks){0};
    TOC_ASSERT(pthread_mutex_init(&marks->lock, NULL) == 0);
}

void
exec_marks_done(struct exec_marks *marks)
{
    pthread_mutex_destroy(&marks->lock);
    toc_free(marks->items);
}

/* The partition's mark, of whatever generation: a newer one replaces it. */
static struct exec_mark *
find(struct exec_marks *marks, const struct exec_place *place)
{
    for (size_t i = 0; i < marks->n; i++) {
        const struct exec_place *there = &marks->items[i].place;

        if (there->lane == place->lane && there->topic == place->topic &&
            there->partition == place->partition)
            return &marks->items[i];
    }
    return NULL;
}

static struct exec_mark *
add(struct exec_marks *marks)
{
    if (marks->n == marks->cap) {
        marks->cap = marks->cap > 0 ? marks->cap * 2 : FIRST_CAP;
        marks->items =
            toc_realloc(marks->items, marks->cap * sizeof *marks->items);
    }
    return &marks->items[marks->n++];
}

void
exec_marks_put(struct exec_marks *marks, const struct exec_place *place,
               int64_t next_offset)
{
    struct exec_mark *mark;

    pthread_mutex_lock(&marks->lock);
    mark = find(marks, place);
    if (mark == NULL)
        mark = add(marks);
    *mark = (struct exec_mark){*place, next_offset};
    pthread_mutex_unlock(&marks->lock);
}

bool
exec_marks_take(struct exec_marks *marks, uint16_t lane,
                struct exec_mark *ret_mark)
{
    bool found = false;

    pthread_mutex_lock(&marks->lock);
    for (size_t i = 0; i < marks->n && !found; i++) {
        if (marks->items[i].place.lane != lane)
            continue;
        *ret_mark = marks->items[i];
        marks->items[i] = marks->items[--marks->n];
        found = true;
    }
    pthread_mutex_unlock(&marks->lock);
    return found;
}
